"""Routes of health."""

"""Routes of access keys."""

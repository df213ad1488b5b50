"""Routes of sessions."""

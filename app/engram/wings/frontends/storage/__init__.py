"""SQL of the wing, and its table."""

"""SQL of sessions, and their tables."""

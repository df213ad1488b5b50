"""SQL of facts, and their tables."""

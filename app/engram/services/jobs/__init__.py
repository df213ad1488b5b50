"""Long work: opened once, run by workers."""

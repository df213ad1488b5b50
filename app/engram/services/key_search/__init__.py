"""Search by passage keys alone: the dense baseline."""

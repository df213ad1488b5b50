"""The mathematics of Engram: pure functions over NumPy arrays, no I/O."""

"""A service under load whose parts are killed: ``python benchmarks/soak``."""

"""The log as an explanation reads it."""

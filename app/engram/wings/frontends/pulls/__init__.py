"""Scores that people give in other products, read there and sent to the service as ratings."""

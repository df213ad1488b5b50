"""Expansion units, credits, evolved keys and their generations."""

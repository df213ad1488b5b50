"""Statements of the wing."""

"""Revocations, and copies of a collection as it was."""

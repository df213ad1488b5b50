"""Postgres's own programs."""

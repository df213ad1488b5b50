"""Outcomes of queries, by arm."""

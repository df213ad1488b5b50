"""Verdicts on the queries that a collection served."""

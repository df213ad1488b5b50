"""Tuning: verdicts teach a collection's question encoder, and held-out verdicts decide whether that is used."""

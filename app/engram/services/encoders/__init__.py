"""Encoders: which one made a collection's vectors, and whether it is here."""

"""Erasure: what is stored of a person goes, on request."""

"""Requests of the wing to the language model: their wording, and how replies are read."""

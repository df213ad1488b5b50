"""Prompts of the wing to the language model."""

"""Passage keys that evolve: what a verdict credits to them, when they change, going back."""

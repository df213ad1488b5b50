"""Searches by passage keys without the graph: expansion of questions, and the dense baseline. They keep nothing."""

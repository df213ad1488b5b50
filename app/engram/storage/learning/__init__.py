"""Learned rows: memories, supports of questions, learned weights, settings of judges."""

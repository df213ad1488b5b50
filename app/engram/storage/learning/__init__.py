"""Learned rows: memories, supports of questions, ranking weights, settings of judges."""

"""Measuring retrieval: data sets, protocols, metrics."""

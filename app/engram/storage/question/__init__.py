"""Reads of a query, and the episode it writes."""

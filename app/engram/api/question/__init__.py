"""Routes of queries."""

"""Routes of queries and expansions."""

"""Collections, passages and the lexical index."""

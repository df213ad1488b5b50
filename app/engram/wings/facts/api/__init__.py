"""Routes of facts and of their graph."""

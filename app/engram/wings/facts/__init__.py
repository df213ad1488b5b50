"""The wing of facts: statements that sources make, beliefs in them, their graph and its search."""

"""Mathematics of facts: beliefs, alignment of names, functional predicates and paths."""

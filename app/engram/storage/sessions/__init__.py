"""Sessions as rows: what they asked, their rounds, and their pool in ids."""

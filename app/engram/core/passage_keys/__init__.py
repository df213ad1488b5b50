"""Keys of passages: what they are made of, and how they evolve."""

"""The corpus: passages on their way in, and the graph they become."""

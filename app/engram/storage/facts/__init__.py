"""Facts: the graph of what is said, what is believed of it, and what was said of it."""

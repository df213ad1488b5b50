"""What can be found: passages on their way in, and the graph they become."""

"""Facts and their entities."""

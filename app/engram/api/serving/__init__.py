"""Routes of how a collection serves."""

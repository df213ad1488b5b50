"""Routes of passage keys and their generations."""

"""Routes of measured lift and of comparisons."""

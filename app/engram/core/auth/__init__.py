"""Access keys and token buckets."""

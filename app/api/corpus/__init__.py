"""Routes of collections, passages and jobs."""

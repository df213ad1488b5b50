"""Routes of collections and passages."""

"""Routes of documents."""

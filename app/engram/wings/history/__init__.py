"""The wing of history: a collection as it was at a past moment, in a collection of its own."""

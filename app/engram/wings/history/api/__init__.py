"""The route that brings back a past moment."""

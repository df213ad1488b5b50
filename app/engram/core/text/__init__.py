"""Text: time expressions, spelling, sizes, identifiers."""

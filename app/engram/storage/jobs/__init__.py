"""Jobs, their staged lines, and first answers of keyed writes."""

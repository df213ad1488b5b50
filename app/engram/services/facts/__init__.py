"""Facts: what is said is learned, revised, searched and taken back."""

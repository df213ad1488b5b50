"""Pattern of valid names."""

COLLECTION = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}$"
"""Names of collections, as a regular expression; they stand in addresses and file names as they are."""

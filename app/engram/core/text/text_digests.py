"""Digests of texts, by which a stored answer tells which texts it showed."""

import hashlib


def digest_text(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()

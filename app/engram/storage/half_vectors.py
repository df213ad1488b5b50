"""Vectors in half precision, as passages, sentences, names and time expressions have them.

Half precision moves a cosine of unit vectors by less than 1e-4 and takes half the room. What is learned, and what
is kept of questions, is in full precision.
"""


def halve(vector: str) -> str:
    """A vector to compare stored ones with: halved once, and not for each of them."""
    return f"(SELECT {vector}::halfvec)"


def unhalve(column: str) -> str:
    """A stored vector in full precision, and of length 1, which rounding changed."""
    return f"l2_normalize({column}::vector)"


HALVED_QUESTION = halve("%(q)s")
"""The question's vector, parameter ``q``."""

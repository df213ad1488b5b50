"""Rewards of the tree search, in [0, 1]."""

HIGHEST_RATING = 10.0
"""Best rating of a judge who has no gold to go by."""


def convert_rating(rating: float) -> float:
    """A judge's rating from 0 to 10 as a reward in [0, 1].

    Raises:
        ValueError: it lies outside.
    """
    if not 0.0 <= rating <= HIGHEST_RATING:
        raise ValueError(f"a rating lies between 0 and {HIGHEST_RATING:g}, unlike {rating}")
    return rating / HIGHEST_RATING

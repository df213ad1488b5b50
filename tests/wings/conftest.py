"""Applications beside the shared one, and counts of rows, as the tests of the API have them."""

from tests.api.conftest import counts, variant

__all__ = ["counts", "variant"]

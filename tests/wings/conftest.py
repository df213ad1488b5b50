"""Applications beside the shared one, and counts of rows, as the tests of the API have them."""

from tests.api.conftest import counts, lasting, variant, without_postgres

__all__ = ["counts", "lasting", "variant", "without_postgres"]

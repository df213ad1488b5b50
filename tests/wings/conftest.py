"""Applications beside the shared one, as the tests of the API have them."""

from tests.api.conftest import variant

__all__ = ["variant"]

"""A collection that verdicts taught all there is to teach, as the tests of storage have it."""

from tests.storage.conftest import taught

__all__ = ["taught"]

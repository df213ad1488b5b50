"""Collections that learned, as the tests of revocation and of storage have them."""

from tests.services.revocation.conftest import taught
from tests.storage.conftest import taught as twins

__all__ = ["taught", "twins"]

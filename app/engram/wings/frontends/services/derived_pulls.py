"""The ledgers of pulls in erasures."""

from collections.abc import Mapping

from engram.services.revocation.derived_state import DerivedState
from engram.storage.database import Writer
from engram.storage.erasure.erased_log import Selection
from engram.wings.frontends.storage import pulled_scores


class DerivedPulls(DerivedState):
    """Scores of other products that were sent as ratings."""

    def erase(
        self, writer: Writer, collection_id: int, selection: Selection, random_name: str
    ) -> Mapping[str, int]:
        """Remove the person's scores from the ledgers."""
        return {"pulled_score": pulled_scores.erase(writer, collection_id, selection)}

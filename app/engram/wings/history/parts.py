"""Services of the wing."""

from dataclasses import dataclass

from engram.composition.hooks import Hooks
from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.wings import WingHolder
from engram.storage.database import Database
from engram.wings.history.services.past_state import PastService
from engram.wings.history.services.restored_verdicts import VerdictRestorer


@dataclass(frozen=True, eq=False)
class HistoryServices:
    """Services of past moments. Each is made when first used."""

    database: Database
    models: Models
    hooks: Hooks

    @locked_property
    def past(self) -> PastService:
        """Reconstruction of past states."""
        restore = VerdictRestorer(self.database, self.models.weight_priors, self.hooks.verdict_effects)
        return PastService(self.database, restore, self.hooks.derived_states)


def history_of(application: WingHolder) -> HistoryServices:
    """Return the services of past moments of an application.

    Raises:
        LookupError: the wing is off.
    """
    return application.wing(HistoryServices)

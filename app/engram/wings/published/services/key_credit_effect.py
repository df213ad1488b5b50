"""Effect on passage keys: the expansions of verdicts are credited with the passages that they helped to find."""

from collections.abc import Sequence

import structlog

from engram.context.errors import UnavailableError
from engram.services.verdict.learn import BatchEffect, VerdictBatch
from engram.storage.database import Writer
from engram.telemetry.stages import stage
from engram.wings.published.services.attribution import Attribution, PreparedUnits
from engram.wings.published.services.key_evolution import KeyEvolutionService
from engram.wings.published.storage import evolved_keys

log = structlog.get_logger(__name__)


def prepare_key_credit(
    attribution: Attribution, evolution: KeyEvolutionService, collection_id: int, events: Sequence[int]
) -> BatchEffect:
    """Embed the expansions of the events.

    Args:
        attribution: credits expansions.
        evolution: composes keys.

    Raises:
        NotFoundError: the collection is gone.
        EmbeddingSpaceMismatchError: there are new expansions, and its vectors are of another encoder.
    """
    prepared = attribution.prepare(collection_id, events)
    if not prepared.is_taught:
        return _PassedVerdicts()
    return KeyCreditEffect(attribution, evolution, prepared) if prepared.units else BatchEffect()


class _PassedVerdicts(BatchEffect):
    """Verdicts that teach no key, because the collection said so when they were prepared."""

    def record(self, writer: Writer, batch: VerdictBatch) -> None:
        """Note that there is something to credit, also if the collection learns again by now."""
        evolved_keys.note_behind(writer, batch.collection.id)


class KeyCreditEffect(BatchEffect):
    """Credits expansions, and makes passage keys of them once that is due."""

    def __init__(self, attribution: Attribution, evolution: KeyEvolutionService, prepared: PreparedUnits) -> None:
        self._attribution = attribution
        self._evolution = evolution
        self._units = prepared.units
        self.space = prepared.space

    def record(self, writer: Writer, batch: VerdictBatch) -> None:
        """Credit the units. Those of new judges get nothing."""
        credited_events = [event for event in batch.events if not batch.constants[event.id].is_new]
        self._attribution.credit(writer, batch.collection.id, credited_events, self._units)

    def finish(self, batch: VerdictBatch) -> None:
        """Evolve the passage keys if that is due. A failure is logged, and the evolution stays due."""
        try:
            with stage("evolve"):
                self._evolution.evolve_if_due(batch.collection.id)
        except UnavailableError as error:
            log.warning("keys not evolved", collection_id=batch.collection.id, error=error.detail)
        except Exception:
            log.exception("keys not evolved", collection_id=batch.collection.id)

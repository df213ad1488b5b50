"""Teaching of weights by verdicts."""

from collections.abc import Callable, Collection, Mapping, Sequence

from engram.core.filter.constants import FilterConstants
from engram.core.ranking.corpus_kind import CorpusKind
from engram.core.ranking.ranking_weights import Prior, PriorIdentity
from engram.services.feedback_log.weight_terms import PlacedVerdict, WeightModel, observe_statements
from engram.storage.corpus import passages
from engram.storage.database import Reader
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.learning.learned_weights import WeightTerm


class WeightTeaching:
    """Computes the terms that verdicts add to the weights of each model.

    Args:
        priors_of: returns the priors of the models that verdicts teach in a collection of this kind.
        models: those beside the models of answers and rerankers, by their names.
    """

    def __init__(
        self,
        priors_of: Callable[[CorpusKind], Mapping[PriorIdentity, Prior]],
        models: Mapping[str, WeightModel],
    ) -> None:
        self._priors_of = priors_of
        self._models = models

    def holders(self, reader: Reader, collection_id: int, events: Sequence[PendingEvent]) -> dict[int, int]:
        """Read sentence -> its passage, for events on a ranked answer or on rounds of a session, not for others."""
        judged = sorted({s for event in events if event.ranked or event.verdict.rounds for s in event.targets})
        return passages.holders(reader, collection_id, judged)

    def terms(
        self,
        kind: CorpusKind,
        events: Sequence[PendingEvent],
        constants: Mapping[int, FilterConstants],
        holders: Mapping[int, int],
        contested: Collection[int] = (),
    ) -> dict[PriorIdentity, list[WeightTerm]]:
        """Compute the terms of the events in the weights of each model, in the order of locking.

        Args:
            kind: kind of the collection's corpus.
            constants: event -> constants by which it is applied.
            holders: as the method of this name reads them.
            contested: events that contradict what other judges said.
        """
        statements = [
            PlacedVerdict.from_verdict(
                event, holders, constants[event.id].observation_noise(1, event.verdict.confidence)
            )
            for event in events
        ]
        taught: dict[PriorIdentity, list[WeightTerm]] = {}
        for identity, prior in sorted(self._priors_of(kind).items(), key=lambda pair: pair[0]):
            for event, statement, seen in zip(
                events, statements, observe_statements(identity, prior, statements, self._models), strict=True
            ):
                if seen is not None:
                    taught.setdefault(identity, []).append(
                        WeightTerm(
                            event.id,
                            event.judge,
                            event.day,
                            constants[event.id].comparisons,
                            seen.evidence,
                            statement.noise,
                            seen.surprise,
                            contested=event.id in contested,
                        )
                    )
        return taught

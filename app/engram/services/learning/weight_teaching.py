"""Teaching of the ranking weights by verdicts."""

from collections.abc import Callable, Mapping, Sequence

from engram.core.ranking.corpus_kind import CorpusKind
from engram.core.ranking.ranking_weights import Prior, PriorIdentity
from engram.services.feedback_log.weight_terms import JudgedStatement, observe_statements
from engram.services.learning.feedback_policy import FeedbackPolicy
from engram.services.learning.verdict_batch import Targets
from engram.storage.corpus import collections, passages
from engram.storage.database import Reader
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.learning.learned_weights import WeightTerm


class WeightTeaching:
    """Computes the terms that verdicts add to the weights of each model.

    Args:
        priors_of: returns the priors of the models that verdicts teach in a collection of this kind.
    """

    def __init__(self, priors_of: Callable[[CorpusKind], Mapping[PriorIdentity, Prior]]) -> None:
        self._priors_of = priors_of

    def holders(
        self, reader: Reader, collection_id: int, events: Sequence[PendingEvent], targets: Targets
    ) -> dict[int, int]:
        """Read sentence -> its passage, for the sentences of events that teach weights."""
        judged = sorted({s for event in events if event.ranked or event.verdict.rounds for s in targets[event.id]})
        return passages.holders(reader, collection_id, judged)

    def terms(
        self,
        kind: CorpusKind,
        events: Sequence[PendingEvent],
        targets: Targets,
        policies: Mapping[int, FeedbackPolicy],
        holders: Mapping[int, int],
    ) -> dict[PriorIdentity, list[WeightTerm]]:
        """Compute the terms of the events in the weights of each model, in the order of locking.

        Args:
            kind: kind of the collection's corpus.
            policies: event -> policy of its judge.
            holders: as the method of this name reads them.
        """
        statements = [
            JudgedStatement.from_verdict(
                event,
                targets[event.id],
                holders,
                policies[event.id].observation_noise(1, event.verdict.confidence),
            )
            for event in events
        ]
        taught: dict[PriorIdentity, list[WeightTerm]] = {}
        for identity, prior in sorted(self._priors_of(kind).items(), key=lambda pair: pair[0]):
            for event, statement, seen in zip(
                events, statements, observe_statements(identity, prior, statements), strict=True
            ):
                if seen is not None:
                    cap = policies[event.id].comparisons
                    taught.setdefault(identity, []).append(
                        WeightTerm(
                            event.id, event.judge, event.day, cap, seen.evidence, statement.noise, seen.surprise
                        )
                    )
        return taught

    def load_terms(
        self,
        reader: Reader,
        collection_id: int,
        events: Sequence[PendingEvent],
        targets: Targets,
        policies: Mapping[int, FeedbackPolicy],
    ) -> dict[PriorIdentity, list[WeightTerm]]:
        """Read what ``terms`` needs of a collection, and compute them."""
        kind = collections.load_by_id(reader, collection_id).corpus_kind
        holders = self.holders(reader, collection_id, events, targets)
        return self.terms(kind, events, targets, policies, holders)

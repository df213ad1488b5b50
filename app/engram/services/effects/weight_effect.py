"""Effect on weights: each verdict adds a term to the weights of sufficiency and of a reranker."""

from collections.abc import Callable, Collection, Mapping, Sequence

from engram.core.filter.constants import FilterConstants
from engram.core.ranking.corpus_kind import CorpusKind
from engram.core.ranking.weight_beliefs import PriorIdentity, WeightBelief
from engram.services.feedback_log.weight_terms import observe_verdicts
from engram.services.verdict.learn import BatchEffect, VerdictBatch
from engram.storage.corpus import passages
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.learning import learned_weights
from engram.storage.learning.learned_weights import WeightTerm


class WeightEffect:
    """Computes the terms that verdicts add to the weights of each model.

    Args:
        priors_of: returns the priors of the models that verdicts teach in a collection of this kind.
    """

    def __init__(self, priors_of: Callable[[CorpusKind], Mapping[PriorIdentity, WeightBelief]]) -> None:
        self._priors_of = priors_of

    def begin(self, collection_id: int, events: Sequence[int]) -> BatchEffect:
        """Prepare nothing."""
        return _AddedTerms(self)

    def place(
        self,
        reader: Reader,
        collection_id: int,
        events: Sequence[PendingEvent],
        constants: Mapping[int, FilterConstants],
    ) -> list[PendingEvent]:
        """Place the events, with the passages of those on a ranked answer.

        Args:
            constants: event -> constants by which it is applied.
        """
        judged = sorted({s for event in events if event.ranked for s in event.targets})
        holders = passages.holders(reader, collection_id, judged)
        return [
            event.place(holders, constants[event.id].observation_noise(1, event.verdict.confidence))
            for event in events
        ]

    def compute_terms(
        self,
        kind: CorpusKind,
        events: Sequence[PendingEvent],
        constants: Mapping[int, FilterConstants],
        contested: Collection[int] = (),
    ) -> dict[PriorIdentity, list[WeightTerm]]:
        """Compute the terms of placed events in the weights of each model, in the order of locking.

        Args:
            kind: of the collection's corpus.
            constants: as for ``place``.
            contested: events that contradict what other judges said.
        """
        taught: dict[PriorIdentity, list[WeightTerm]] = {}
        for identity, prior in sorted(self._priors_of(kind).items(), key=lambda pair: pair[0]):
            for event, seen in zip(events, observe_verdicts(identity, prior, events), strict=True):
                if seen is not None:
                    taught.setdefault(identity, []).append(
                        WeightTerm(
                            event.id,
                            event.judge,
                            event.day,
                            constants[event.id].weight_verdicts,
                            seen.evidence,
                            event.noise,
                            seen.surprise,
                            contested=event.id in contested,
                        )
                    )
        return taught


class _AddedTerms(BatchEffect):
    _placed: Sequence[PendingEvent]
    _terms: Mapping[PriorIdentity, Sequence[WeightTerm]]

    def __init__(self, effect: WeightEffect) -> None:
        self._effect = effect

    def load(self, reader: Reader, batch: VerdictBatch) -> None:
        """Read the passages of the judged sentences."""
        self._placed = self._effect.place(reader, batch.collection.id, batch.events, batch.constants)

    def apply(self, writer: Writer, batch: VerdictBatch) -> None:
        """Compute the terms."""
        self._terms = self._effect.compute_terms(
            batch.collection.corpus_kind, self._placed, batch.constants, batch.contested
        )

    def record(self, writer: Writer, batch: VerdictBatch) -> None:
        """Add the terms to the sums of weights."""
        for model_prior, terms in self._terms.items():
            learned_weights.add(writer, batch.collection.id, model_prior, terms)

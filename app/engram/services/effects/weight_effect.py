"""Effect on weights: each verdict adds a term to the weights of sufficiency and of a reranker."""

from collections.abc import Callable, Collection, Mapping, Sequence

from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.core.ranking.corpus_kind import CorpusKind
from engram.core.ranking.weight_beliefs import PriorIdentity, WeightBelief
from engram.services.feedback_log.weight_terms import observe_verdicts
from engram.services.verdict.learn import BatchEffect, VerdictBatch
from engram.storage.corpus import passages
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.learning import learned_weights
from engram.storage.learning.learned_weights import WeightTerm

WeightPriors = Callable[[CorpusKind], Mapping[PriorIdentity, WeightBelief]]
"""Returns the priors of the models that verdicts teach in a collection of a kind."""


class WeightEffect(BatchEffect):
    """Adds terms to the weights of each model."""

    _placed: Sequence[PendingEvent]
    _terms: Mapping[PriorIdentity, Sequence[WeightTerm]]

    def __init__(self, priors_of: WeightPriors) -> None:
        self._priors_of = priors_of

    def load(self, reader: Reader, batch: VerdictBatch) -> None:
        """Read the passages of the judged sentences."""
        self._placed = place_events(reader, batch.collection.id, batch.events, batch.constants)

    def change(self, writer: Writer, batch: VerdictBatch) -> None:
        """Compute the terms."""
        priors = self._priors_of(batch.collection.corpus_kind)
        self._terms = compute_terms(priors, self._placed, batch.constants, batch.contested)

    def record(self, writer: Writer, batch: VerdictBatch) -> None:
        """Add the terms to the sums of weights."""
        for model_prior, terms in self._terms.items():
            learned_weights.add(writer, batch.collection.id, model_prior, terms)


def place_events(
    reader: Reader, collection_id: int, events: Sequence[PendingEvent], constants: Mapping[int, NoiseAndCaps]
) -> list[PendingEvent]:
    """Place the events, with the passages of those on a ranked answer.

    Args:
        constants: event -> constants by which it is applied.
    """
    judged = sorted({s for event in events if event.ranked for s in event.targets})
    holders = passages.holders(reader, collection_id, judged)
    return [
        event.place(holders, constants[event.id].observation_noise(1, event.verdict.confidence)) for event in events
    ]


def compute_terms(
    priors: Mapping[PriorIdentity, WeightBelief],
    events: Sequence[PendingEvent],
    constants: Mapping[int, NoiseAndCaps],
    contested: Collection[int] = (),
) -> dict[PriorIdentity, list[WeightTerm]]:
    """Compute the terms of placed events in the weights of each model, in the order of locking.

    Args:
        constants: as for ``place_events``.
        contested: events that contradict what other judges said.
    """
    taught: dict[PriorIdentity, list[WeightTerm]] = {}
    for identity, prior in sorted(priors.items(), key=lambda pair: pair[0]):
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

"""Verdicts that raised or lowered the results of a query, and by how much.

A verdict's say is what a score is, less what it were if the verdict had never come: the states that it touched are
replayed without it. What leads from hop to hop, the candidates included, is left as it was, and so are the members
of the pool. So the numbers are exact for what the first hop
reached, and for later hops as far as the same entities lead there, where the same passages are looked at again.

The work is bounded by the constants here and in ``left_out``. It is done after the search, and only for a query
that asks for it.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from itertools import chain, zip_longest

import numpy as np

from engram.providers.ranking_prior import RankingPrior, RankingPriors
from engram.services.answers.key_explainer import KeyExplainer
from engram.services.question.question_spreads import QuestionSpreads
from engram.services.question.search import RetrievalResult
from engram.services.question.trace import (
    Cause,
    HopTrace,
    KeyTrace,
    PassageInfluence,
    PassageTrace,
    RejectionTrace,
    SentenceInfluence,
    Trace,
)
from engram.storage.corpus import passages
from engram.storage.database import Reader
from engram.wings.why.services.counterfactual_scores import (
    FeatureScoring,
    PastJudgements,
    RetrieverScoring,
    Scoring,
)
from engram.wings.why.services.counterfactual_states import Memories, Supports, Version
from engram.wings.why.services.score_factors import UNKNOWN_FACTORS, factors
from engram.wings.why.services.sufficiency_causes import add_causes
from engram.wings.why.storage import influence_rows as log
from engram.wings.why.storage.influence_rows import LoggedCause

MOST_SHOWN = 10
"""Verdicts that are shown of a sentence, a passage or a unit."""
LEFT_OUT = 40
"""Verdicts, the strongest, that are left out one by one: bounds time."""
LEAST_DIFFERENCE = 1e-9
"""What differs by less does so by rounding."""

Causes = Mapping[int, LoggedCause]
Effects = Mapping[int, tuple[float, ...]]
"""Event -> by how much it moved each of some numbers."""


@dataclass(frozen=True, slots=True)
class Influences:
    """Explains what queries found, and changes nothing.

    Attributes:
        spreads: what was measured of collections' questions.
        key_explainer: explains evolved keys; without it none is explained.
    """

    priors: RankingPriors
    spreads: QuestionSpreads
    key_explainer: KeyExplainer | None = None

    def explain_trace(
        self, reader: Reader, retrieved: RetrievalResult, plain: Mapping[int, int], trace: Trace
    ) -> Trace:
        """The trace with the verdicts behind every selected sentence and every passage shown.

        Args:
            reader: the snapshot that the query was answered from.
            plain: passage -> its rank without memory, from 1.
        """
        if not retrieved.plan.focus.use_memory:
            return replace(
                trace,
                passages=_build_untouched_traces(retrieved, plain, _list_text_since(reader, retrieved)),
                rejected=[],
            )
        prior = self.priors.select_kind(retrieved.plan.collection.corpus_kind)
        versions = _Versions(reader, retrieved, prior, self.spreads)
        selected = [
            {row.sentence_id: versions.explain_sentence(at, row.sentence_id) for row in hop.sentences}
            for at, hop in enumerate(trace.hops)
        ]
        ranked = versions.explain_passages()
        passages = [passage for passage, _, _ in retrieved.shown_passages]
        keys = self.key_explainer and self.key_explainer.find_causes(
            reader, retrieved.plan.focus, passages, MOST_SHOWN
        )
        events = {
            event for of_hop in selected for effects in of_hop.values() for event in _select_strongest(effects)
        }
        events |= {event for effects in ranked.values() for event in _select_strongest(effects)}
        events |= {event for rejecting in versions.rejecting.values() for event in rejecting}
        if keys:
            events |= set(keys.events)
        causes = log.causes(reader, retrieved.plan.focus.collection.id, sorted(events))
        return replace(
            trace,
            hops=[
                _hop(hop, effects, causes, versions.cut) for hop, effects in zip(trace.hops, selected, strict=True)
            ],
            passages=_passages(
                retrieved,
                plain,
                versions,
                ranked,
                keys.build_traces({event: Cause(*astuple(cause)) for event, cause in causes.items()})
                if keys
                else {},
                causes,
                _list_text_since(reader, retrieved),
            ),
            rejected=_list_rejections(reader, retrieved, versions, ranked, causes),
            sufficiency=None
            if trace.sufficiency is None
            else add_causes(reader, retrieved, prior, trace.sufficiency, MOST_SHOWN),
        )


class _Versions:
    """States of the query, with all verdicts and without single ones.

    Attributes:
        recalled: passage -> what recall adds to its score.
        lowered: passage -> what rejections change of its score.
        rejecting: rejected passage -> verdicts that reject it; none where the log of past questions is too long.
        without: event -> without it.
        cut: sentences of which verdicts are missing.
    """

    def __init__(
        self, reader: Reader, retrieved: RetrievalResult, prior: RankingPrior, spreads: QuestionSpreads
    ) -> None:
        focus, walk, target = retrieved.plan.focus, retrieved.walk, retrieved.plan.focus.collection.id
        channels = sorted({channel for hop in walk.hops for channel in hop.candidates.memories})
        movers = (
            log.list_strongest_events(reader, target, _list_concerned_sentences(retrieved), channels, MOST_SHOWN)
            if channels
            else []
        )
        recalls = retrieved.plan.profile.recalls
        supports = Supports(reader, retrieved.plan, walk, spreads, MOST_SHOWN) if recalls else None
        past = (
            PastJudgements(walk.recall.probabilities, walk.recall.rejections)
            if supports is None
            else supports.find_judgements()
        )
        moving = [[mover.event_id for mover in movers], [] if supports is None else supports.strongest]
        self._scoring: Scoring = (
            FeatureScoring(retrieved, {} if supports is None else supports.placed, prior.base_weights)
            if len(retrieved.ranking.candidates)
            else RetrieverScoring(retrieved)
        )
        recalled = self._scoring.compute_recall(retrieved.ranking.features, past)
        self.recalled = dict(zip(self._scoring.passages, recalled.tolist(), strict=True))
        unrejected = self._scoring.compute_recall(
            retrieved.ranking.features, PastJudgements(past.recall_probabilities, {})
        )
        self.lowered = dict(zip(self._scoring.passages, (recalled - unrejected).tolist(), strict=True))
        self.rejecting = {
            passage: [] if supports is None else supports.list_rejecting_events(passage)
            for passage in walk.recall.rejections
        }
        in_turn = dict.fromkeys(chain.from_iterable(zip_longest(*moving)))
        every = [event for event in in_turn if event is not None]
        events = every[:LEFT_OUT]
        memories = Memories(reader, focus, walk, channels, events if movers else [])
        self._whole = Version(memories.scores(), past)
        self.without: dict[int, Version] = {}
        if supports is not None:
            supports.leave_out(events)
        too_long = supports is not None and supports.too_long
        for event in events:
            if memories.can_leave_out(event) and not too_long:
                self.without[event] = Version(
                    memories.scores(event),
                    past if supports is None else supports.find_judgements(event),
                )
        self._walk = walk
        self._moved: dict[int, set[int]] = {}
        self.cut: set[int] = set()
        for mover in movers:
            self._moved.setdefault(mover.sentence_id, set()).add(mover.event_id)
            if mover.total > MOST_SHOWN or mover.event_id not in self.without:
                self.cut.add(mover.sentence_id)
        if supports is not None:
            fewer = too_long or len(every) > LEFT_OUT
            self.cut |= {s for s in walk.evidence if fewer or supports.count_verdicts(s) > MOST_SHOWN}

    def explain_sentence(self, at: int, sentence: int) -> dict[int, tuple[float, ...]]:
        """Event -> by how much it moved the sentence's score in a hop, and its recall probability.

        A score is also moved by what happened to the other sentences that the hop reached, by which it is divided;
        told are only verdicts on the sentence itself.
        """
        position = self._walk.hops[at].position(sentence)
        own = self._moved.get(sentence, set())
        score, prior = self._whole.scores[at][position], self._whole.past.recall_probabilities.get(sentence, 0.0)
        return {
            event: (
                float(score - version.scores[at][position]) if event in own else 0.0,
                0.0 if at else prior - version.past.recall_probabilities.get(sentence, 0.0),
            )
            for event, version in self.without.items()
        }

    def explain_passages(self) -> dict[int, dict[int, tuple[float, ...]]]:
        """Passage shown -> event -> by how much it moved the score: in all, by memories, and by recall."""
        scoring, whole = self._scoring, self._whole
        features = scoring.passage_features(whole.scores, whole.past.recall_probabilities)
        current_scores = scoring.compute_scores(features, whole.past)
        ranked: dict[int, dict[int, tuple[float, ...]]] = {passage: {} for passage in scoring.passages}
        for event, version in self.without.items():
            moved, recall_changed = (
                version.scores is not whole.scores,
                version.past is not whole.past,
            )
            without_memories = (
                scoring.passage_features(version.scores, whole.past.recall_probabilities) if moved else features
            )
            without_recall = (
                scoring.passage_features(whole.scores, version.past.recall_probabilities)
                if recall_changed
                else features
            )
            without_both = (
                scoring.passage_features(version.scores, version.past.recall_probabilities)
                if moved and recall_changed
                else without_memories
                if moved
                else without_recall
            )
            scores_without = (
                scoring.compute_scores(without_both, version.past),
                scoring.compute_scores(without_memories, whole.past),
                scoring.compute_scores(without_recall, version.past),
            )
            effects = np.stack([current_scores - left for left in scores_without], axis=1)
            for passage, effect in zip(scoring.passages, effects.tolist(), strict=True):
                ranked[passage][event] = tuple(effect)
        return ranked


def _list_concerned_sentences(retrieved: RetrievalResult) -> list[int]:
    """The sentences whose verdicts are told first: those selected, and those reached of the passages shown."""
    passages = [passage for passage, _, _ in retrieved.shown_passages]
    concerned = set(retrieved.walk.evidence)
    for hop in retrieved.walk.hops:
        of_shown = np.isin(hop.candidates.passage_ids, passages)
        concerned.update(hop.candidates.sentence_ids[of_shown].tolist())
    return sorted(concerned)


def _select_strongest(effects: Effects) -> list[int]:
    """The events that moved anything, those that moved it most first, ``MOST_SHOWN`` of them."""
    return _list_moving_events(effects)[:MOST_SHOWN]


def _list_moving_events(effects: Effects) -> list[int]:
    strength = {event: max(map(abs, moved)) for event, moved in effects.items()}
    return sorted(
        (event for event in effects if strength[event] > LEAST_DIFFERENCE), key=lambda e: (-strength[e], -e)
    )


def _hop(hop: HopTrace, sentence_effects: Mapping[int, Effects], causes: Causes, cut: set[int]) -> HopTrace:
    sentences = []
    for row in hop.sentences:
        effects = sentence_effects[row.sentence_id]
        influences = [
            SentenceInfluence(*astuple(causes[event]), *effects[event]) for event in _select_strongest(effects)
        ]
        more = row.sentence_id in cut or len(_list_moving_events(effects)) > MOST_SHOWN
        sentences.append(replace(row, influences=influences, influences_cut=more))
    return replace(hop, sentences=sentences)


def _passages(
    retrieved: RetrievalResult,
    plain: Mapping[int, int],
    versions: _Versions,
    ranked: Mapping[int, Effects],
    keys: Mapping[int, KeyTrace],
    causes: Causes,
    text_since: Mapping[int, datetime],
) -> list[PassageTrace]:
    """Why each passage shown has its score, and what memory did to it."""
    scored = factors(retrieved)
    evidence = retrieved.walk.evidence
    uncertain = {evidence[sentence].passage_id for sentence in versions.cut if sentence in evidence}
    traces = []
    for rank, (passage, name, score) in enumerate(retrieved.shown_passages, start=1):
        effects = ranked.get(passage, {})
        of_score = scored.get(passage, UNKNOWN_FACTORS)
        traces.append(
            PassageTrace(
                id=passage,
                passage_id=name,
                rank=rank,
                rank_without_memory=plain.get(passage),
                score=score,
                features=of_score.features,
                completes=of_score.completes,
                completes_id=of_score.completes_id,
                recall=versions.recalled.get(passage, 0.0),
                key=keys.get(passage),
                influences=[
                    PassageInfluence(*astuple(causes[event]), *effects[event])
                    for event in _select_strongest(effects)
                ],
                influences_cut=passage in uncertain or len(_list_moving_events(effects)) > MOST_SHOWN,
                text_since=text_since[passage],
            )
        )
    return traces


def _list_rejections(
    reader: Reader,
    retrieved: RetrievalResult,
    versions: _Versions,
    ranked: Mapping[int, Effects],
    causes: Causes,
) -> list[RejectionTrace]:
    """List the rejected passages, the surest rejection first, with the verdicts that reject each."""
    probabilities = retrieved.walk.recall.rejections
    stored = passages.load_by_id(reader, retrieved.plan.collection.id, probabilities)
    ranks = {passage: rank for rank, (passage, _, _) in enumerate(retrieved.shown_passages, start=1)}
    traces = []
    for passage in sorted(stored, key=lambda one: (-probabilities[one], one)):
        effects = ranked.get(passage, {})
        unmoved = (0.0, 0.0, 0.0)
        events = sorted(
            (event for event in versions.rejecting[passage] if event in causes),
            key=lambda event: (-abs(effects.get(event, unmoved)[0]), -event),
        )
        traces.append(
            RejectionTrace(
                id=passage,
                passage_id=stored[passage].external_id,
                title=stored[passage].title,
                rank=ranks.get(passage),
                probability=probabilities[passage],
                score=versions.lowered.get(passage, 0.0),
                judges=len({causes[event].judge for event in events}) or None,
                influences=[
                    PassageInfluence(*astuple(causes[event]), *effects.get(event, unmoved))
                    for event in events[:MOST_SHOWN]
                ],
                influences_cut=not events or len(events) > MOST_SHOWN,
            )
        )
    return traces


def _list_text_since(reader: Reader, retrieved: RetrievalResult) -> dict[int, datetime]:
    """Passage shown -> when its text became what it is."""
    return log.list_text_since(
        reader, retrieved.plan.collection.id, [passage for passage, _, _ in retrieved.shown_passages]
    )


def _build_untouched_traces(
    retrieved: RetrievalResult, plain: Mapping[int, int], text_since: Mapping[int, datetime]
) -> list[PassageTrace]:
    """Return traces of a query that read no memory."""
    scored = factors(retrieved)
    return [
        PassageTrace(
            id=passage,
            passage_id=name,
            rank=rank,
            rank_without_memory=plain.get(passage),
            score=score,
            features=of_score.features,
            completes=of_score.completes,
            completes_id=of_score.completes_id,
            recall=0.0,
            key=None,
            influences=[],
            influences_cut=False,
            text_since=text_since[passage],
        )
        for rank, (passage, name, score) in enumerate(retrieved.shown_passages, start=1)
        for of_score in (scored.get(passage, UNKNOWN_FACTORS),)
    ]

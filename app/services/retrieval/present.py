"""What a walk found, as the answer and its trace show it."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.core import propagation
from app.services.retrieval.propagate import Hop, Walk
from app.services.retrieval.query import (
    EntityAnswer,
    HopTrace,
    PassageAnswer,
    RecallTrace,
    SentenceAnswer,
    SentenceTrace,
    Trace,
)
from app.storage.corpus.passages import StoredPassage, StoredSentence


def trace(walk: Walk, constraint: str | None, aligned: Sequence[EntityAnswer], *, learned_only: bool) -> Trace:
    """How an answer came about."""
    return Trace(constraint, list(aligned), _recall_trace(walk), _hop_traces(walk, learned_only))


def passage(
    stored: StoredPassage, score: float, walk: Walk, sentences: Sequence[StoredSentence] | None
) -> PassageAnswer:
    """The passage with its selected sentences, or with all of them if ``sentences`` are given."""
    hops: dict[int, list[int]] = {}
    best: dict[int, float] = {}
    for number, hop in enumerate(walk.hops, start=1):
        for sentence in hop.selected:
            hops.setdefault(sentence, []).append(number)
            best[sentence] = max(best.get(sentence, 0.0), hop.score(sentence), walk.priors.get(sentence, 0.0))
    if sentences is None:
        chosen: list[Any] = [e for e in walk.evidence.values() if e.passage_id == stored.id]
        shown = [(e.sentence_id, e.position, e.text) for e in chosen]
    else:
        shown = [(sentence.id, sentence.position, sentence.text) for sentence in sentences]
    return PassageAnswer(
        stored.external_id,
        stored.title,
        stored.text,
        stored.metadata,
        score,
        [
            SentenceAnswer(identity, position, text, best.get(identity), hops.get(identity, []))
            for identity, position, text in sorted(shown, key=lambda row: row[1])
        ],
    )


def _recall_trace(walk: Walk) -> list[RecallTrace]:
    return [
        RecallTrace(
            past.sentence_id,
            past.question,
            past.similarity,
            past.support,
            past.perplexity,
            walk.priors.get(past.sentence_id, 0.0),
        )
        for past in walk.recalled
    ]


def _hop_traces(walk: Walk, learned_only: bool) -> list[HopTrace]:
    return [
        HopTrace(
            number,
            {hop.names[entity]: score for entity, score in hop.activation.items()},
            len(hop.candidates),
            _sentence_traces(hop, walk.priors if number == 1 else {}, learned_only),
            hop.coverage,
        )
        for number, hop in enumerate(walk.hops, start=1)
    ]


def _sentence_traces(hop: Hop, priors: Mapping[int, float], learned_only: bool) -> list[SentenceTrace]:
    rows = hop.candidates
    task = propagation.task_factor(rows, learned_only=learned_only)
    timed = propagation.time_factor(rows)
    traces = []
    for sentence in hop.selected:
        at = hop.position(sentence)
        evidence = hop.evidence[sentence]
        traces.append(
            SentenceTrace(
                sentence,
                evidence.external_id,
                evidence.text,
                float(hop.scores[at]),
                float(rows.activation[at]),
                [hop.names[entity] for entity in evidence.entities if entity in hop.activation],
                float(rows.semantic[at]),
                float(task[at]),
                float(rows.task_perplexity[at]),
                float(timed[at]),
                float(rows.time_perplexity[at]),
                priors.get(sentence, 0.0),
            )
        )
    return traces

"""The passages that are ranked, and how each of them is like the question."""

from collections.abc import Collection as Collected
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.complementarity import QuestionWords
from engram.storage.column_parameters import Numbers, decode_column, integers
from engram.storage.corpus import lexical_index
from engram.storage.database import Reader
from engram.storage.half_vectors import HALVED_QUESTION
from engram.storage.question import passages_by_key
from engram.storage.question.query_focus import Focus

NO_COSINE = -1.0
"""Cosine of a title without a vector: no cosine is lower."""


@dataclass(frozen=True, slots=True)
class CandidatePassages:
    """Passages in id order.

    Attributes:
        ids: (n,).
        similarity: cosine of each one's key and the question, (n,).
        titles: of each.
        word_scores: BM25 of each, in single precision, 0 for one that has no word of the question, (n,).
        words: words of the question that a term of the collection stands for.
    """

    ids: NDArray[np.int64]
    similarity: NDArray[np.float64]
    titles: Sequence[str | None]
    word_scores: NDArray[np.float64]
    words: QuestionWords

    def select(self, mask: NDArray[np.bool_]) -> "CandidatePassages":
        """Return the candidates that the mask, (n,), selects."""
        return CandidatePassages(
            ids=self.ids[mask],
            similarity=self.similarity[mask],
            titles=[self.titles[at] for at in np.flatnonzero(mask).tolist()],
            word_scores=self.word_scores[mask],
            words=QuestionWords(self.words.weight, self.words.in_passages[mask]),
        )


@dataclass(frozen=True, slots=True)
class PassageLikeness:
    """Cosines of n passages with a question, in [-1, 1].

    Attributes:
        titles: cosine of each title, (n,); ``NO_COSINE`` where there is none or it is not embedded yet.
        sentences: cosine of each passage's best sentence, (n,); 0 for a passage without sentences.
    """

    titles: NDArray[np.float64]
    sentences: NDArray[np.float64]


def build_word_search(focus: Focus) -> str:
    """The statement of the best passages word for word: by all terms where few passages are left."""
    is_bounded = not focus.is_narrowed or (focus.among is None and "passage" in focus.collection.indexed)
    return lexical_index.build_word_search(
        condition=focus.passage_condition if focus.is_narrowed else None,
        among="" if focus.among is None else "%(among)s::bigint[]",
        is_bounded=is_bounded,
        evolved=focus.evolved,
    )


def find(
    reader: Reader,
    focus: Focus,
    terms: Mapping[str, float],
    limit: int,
    touched: Collected[int] = (),
    near: Sequence[int] = (),
) -> CandidatePassages:
    """The ``limit`` passages whose keys are nearest, as many that match best word for word, and those ``touched``.

    Args:
        terms: of the question, each with its weight > 0.
        near: the nearest passages, best first, if they are known already: they are not looked for again.
    """
    known = list(near[:limit]) if len(near) >= limit else []
    worded = "ARRAY(SELECT passage_id FROM worded UNION SELECT unnest(%(ids)s::bigint[]))"
    row = reader.row(
        f"""
        WITH {lexical_index.question(reader, evolved=focus.evolved)},
        worded AS MATERIALIZED ({build_word_search(focus)}),
        nearest AS MATERIALIZED ({passages_by_key.build_nearest_query(focus, "%(nearest)s")}),
        keyed AS MATERIALIZED ({passages_by_key.build_query_with_given(focus, worded)}),
        said AS MATERIALIZED (
            {lexical_index.contributions("ARRAY(SELECT id FROM keyed)", evolved=focus.evolved)}
        )
        SELECT passages.*, words.*, question.* FROM (
            SELECT array_send(array_agg(id)) AS ids, array_send(array_agg(similarity)) AS similarities,
                   array_agg(title) AS titles
            FROM keyed
        ) AS passages CROSS JOIN (
            SELECT array_send(array_agg(passage_id)) AS saying, array_send(array_agg(place)) AS said,
                   array_send(array_agg(score)) AS scores
            FROM said
        ) AS words CROSS JOIN (
            SELECT array_send(array_agg(place)) AS places, array_send(array_agg(weight)) AS weights FROM asked
        ) AS question
        """,
        focus.parameters(
            **lexical_index.parameters(
                focus.collection,
                terms,
                limit=limit,
                nearest=0 if known else limit,
                ids=integers((*touched, *known)),
            )
        ),
    )
    ids = decode_column(row.ids, np.int64)
    order = np.argsort(ids)
    weight = np.zeros(len(terms))
    weight[decode_column(row.places, np.int64) - 1] = decode_column(row.weights, np.float64)
    at = np.searchsorted(ids[order], decode_column(row.saying, np.int64)), decode_column(row.said, np.int64) - 1
    score, has_term = np.zeros((len(ids), len(terms))), np.zeros((len(ids), len(terms)), dtype=bool)
    np.add.at(score, at, decode_column(row.scores, np.float64))
    has_term[at] = True
    is_present = has_term.any(axis=0)
    return CandidatePassages(
        ids=ids[order],
        similarity=decode_column(row.similarities, np.float64)[order],
        titles=[row.titles[at] for at in order.tolist()],
        word_scores=score.sum(axis=1).astype(np.float32).astype(np.float64),
        words=QuestionWords(weight[is_present], has_term[:, is_present]),
    )


def measure_likeness(
    reader: Reader, focus: Focus, passages: NDArray[np.int64], names: Sequence[str | None]
) -> PassageLikeness:
    """Compare a question with the titles and sentences of passages.

    A title is a name in its passage's sentences, so the vector of the entity with that name stands for it.

    Args:
        passages: ids, (n,).
        names: normalised title of each passage; None for an untitled one.
    """
    row = reader.row(
        f"""
        SELECT array_send(array_agg(coalesce(title.similarity, %(unknown)s::float8) ORDER BY candidate.place))
                   AS titles,
               array_send(array_agg(coalesce(own.similarity, 0) ORDER BY candidate.place)) AS sentences
        FROM unnest(%(ids)s::bigint[], %(names)s::text[]) WITH ORDINALITY AS candidate(id, name, place)
        CROSS JOIN LATERAL (
            SELECT max(-(s.embedding <#> {HALVED_QUESTION})) AS similarity FROM sentence s
            WHERE s.collection_id = %(collection)s AND s.passage_id = candidate.id
        ) AS own
        LEFT JOIN LATERAL (
            SELECT -(e.embedding <#> {HALVED_QUESTION}) AS similarity FROM entity e
            WHERE e.collection_id = %(collection)s AND e.name = candidate.name OFFSET 0
        ) AS title ON true
        """,
        focus.parameters(ids=Numbers(passages), names=list(names), unknown=NO_COSINE),
    )
    return PassageLikeness(decode_column(row.titles, np.float64), decode_column(row.sentences, np.float64))

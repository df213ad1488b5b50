"""The lexical index as it is stored, and as it would be if it were made anew."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import bm25s
import numpy as np
from numpy.typing import ArrayLike, NDArray
from psycopg.types.json import Jsonb

from engram.composition.container import Application
from engram.core.ranking.bm25 import K1, B
from engram.core.ranking.profiles import Policy
from engram.providers.language import terms
from engram.storage.column_parameters import integers
from engram.storage.corpus import collections, lexical_index, passages
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.lexical_index import TermCounts
from engram.storage.corpus.passages import PassageRow
from engram.storage.database import Reader
from engram.storage.question import passage_candidates
from engram.storage.question.passage_candidates import CandidatePassages
from engram.storage.question.query_focus import Focus, GraphLimits
from tests.support import state

logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG
Tokens = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Index:
    """A collection's index by names; what belongs to no passage or no term would show up as None.

    Attributes:
        postings: (passage, term) -> (frequency, length).
        counts: term -> passages that hold it.
        length: of all passages together.
        kept: passage -> (length, terms), as kept for taking it out again.
    """

    postings: dict[tuple[str | None, str | None], tuple[float, float]]
    counts: dict[str, int]
    length: float
    kept: dict[str, tuple[float, set[str | None]]]


def fresh(corpus: Mapping[str, Mapping[str, float]]) -> Index:
    """What indexing this corpus (passage -> term -> frequency) must come to."""
    lengths = {passage: float(sum(counted.values())) for passage, counted in corpus.items()}
    return Index(
        {
            (passage, term): (frequency, lengths[passage])
            for passage, counted in corpus.items()
            for term, frequency in counted.items()
        },
        dict(Counter(term for counted in corpus.values() for term in counted)),
        sum(lengths.values()),
        {passage: (lengths[passage], set(counted)) for passage, counted in corpus.items() if counted},
    )


def load_index(application: Application, name: str) -> Index:
    """What the collection has."""
    with application.database.read() as reader:
        collection = {"c": collections.find(reader, name).id}
        names = dict(_pairs(reader, "SELECT id, external_id FROM passage WHERE collection_id = %(c)s", collection))
        words = dict(_pairs(reader, "SELECT id, term FROM lexical_term WHERE collection_id = %(c)s", collection))
        postings = reader.rows("SELECT * FROM lexical_posting WHERE collection_id = %(c)s", collection)
        kept = reader.rows("SELECT * FROM lexical_passage WHERE collection_id = %(c)s", collection)
        counts = _pairs(
            reader, "SELECT term, passage_count FROM lexical_term WHERE collection_id = %(c)s", collection
        )
        length = reader.scalar("SELECT lexical_length FROM collection WHERE id = %(c)s", collection)
    return Index(
        {(names.get(row.passage_id), words.get(row.term_id)): (row.frequency, row.length) for row in postings},
        dict(counts),
        length,
        {names[row.passage_id]: (row.length, {words.get(term) for term in row.term_ids}) for row in kept},
    )


def from_texts(application: Application, name: str) -> Index:
    """What the collection ought to have: all its passages, analysed anew."""
    with application.database.read() as reader:
        rows = reader.rows(
            "SELECT external_id, title, text FROM passage WHERE collection_id = %(c)s",
            {"c": collections.find(reader, name).id},
        )
    return fresh(
        {
            row.external_id: Counter(terms(f"{row.title}. {row.text}" if row.title else row.text, "en"))
            for row in rows
        }
    )


def put(application: Application, name: str, corpus: Mapping[str, Mapping[str, float]], analyser: int = 1) -> None:
    """Write passages (id -> term -> frequency) as an ingest would, their vectors apart."""
    vector = np.zeros(application.models.embedder.dimension, dtype=np.float32)
    with application.database.write() as writer:
        collection = collections.open_for_writing(writer, name, application.models.encoder.id).collection.id
        collections.lock_graph(writer, collection)
        known = passages.versions(writer, collection, corpus)
        placed = passages.upsert(
            writer,
            collection,
            [PassageRow(key, None, key, "en", {"even": len(key) % 2 == 0}, b"", vector) for key in corpus],
        )
        counted = [TermCounts(placed[key], frequencies) for key, frequencies in corpus.items()]
        length = lexical_index.index(writer, collection, counted, analyser)
        collections.add_counts(
            writer, collection, passages=len(placed) - len(known), sentences=0, entities=0, lexical_length=length
        )


def search(
    application: Application,
    name: str,
    weights: Mapping[str, float],
    limit: int = 1000,
    *,
    metadata: Mapping[str, Any] | None = None,
    among: Sequence[str] | None = None,
    is_bounded: bool | None = None,
    evolved: bool = False,
) -> dict[str, float]:
    """External id -> score, best first; what ``matches`` says of the same passages must be the same.

    Args:
        among: external ids.
        is_bounded: by default, if nothing is left out.
    """
    ids = [state.passages(application, name)[key] for key in among or ()]
    with application.database.read() as reader:
        collection = collections.find(reader, name)
        statement = lexical_index.build_word_search(
            condition=None if metadata is None else "p.metadata @> %(metadata)s",
            among="" if among is None else "%(among)s::bigint[]",
            is_bounded=metadata is None and among is None if is_bounded is None else is_bounded,
            evolved=evolved,
        )
        values = {"metadata": Jsonb(metadata), "among": integers(ids)}
        found = lexical_index.search(reader, collection, weights, limit, statement, evolved=evolved, **values)
        matches = match_passages(reader, collection, weights, list(found), evolved=evolved)
        assert dict(zip(matches.ids.tolist(), matches.word_scores.tolist(), strict=True)) == found
        assert list(found.items()) == sorted(found.items(), key=lambda item: (-item[1], item[0]))
        stored = passages.load_by_id(reader, collection.id, found)
    return {stored[passage].external_id: score for passage, score in found.items()}


def match_passages(
    reader: Reader,
    collection: Collection,
    weights: Mapping[str, float],
    ids: Sequence[int],
    *,
    evolved: bool = False,
) -> CandidatePassages:
    """How these passages, and no others, match the question, as a ranking reads it."""
    nowhere = np.zeros(reader.scalar("SELECT vector_dims(embedding) FROM passage LIMIT 1"), dtype=np.float32)
    focus = Focus(
        replace(collection, key_generation=int(evolved)),
        nowhere,
        limits=GraphLimits(1, 1, exact=True),
        use_memory=True,
        policy=Policy(),
    )
    return passage_candidates.find(reader, focus, weights, 0, ids)


def reference(corpus: Tokens, question: Sequence[str]) -> dict[str, float]:
    """External id -> the score that bm25s (Lucene's BM25, k1 1.5, b 0.75) gives, if it is above 0; in no order."""
    index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    index.index(list(corpus.values()), show_progress=False)
    known = [token for token in question if token in index.vocab_dict]
    if not known:
        return {}
    return {
        passage: float(score) for passage, score in zip(corpus, index.get_scores(known), strict=True) if score > 0
    }


def _pairs(reader: Reader, statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    return [(row[0], row[1]) for row in reader.rows(statement, parameters)]


def saturation(
    frequency: ArrayLike, length: ArrayLike, mean_length: float, *, k1: float = K1, b: float = B
) -> NDArray[np.float64]:
    """f / (f + k1 (1 - b + b length / mean length)): what a term's repetitions in one passage count, in [0, 1).

    Args:
        frequency: f, how often the passage has the term, >= 0; a weight need not be whole.
        length: how many terms the passage has, repetitions counted; of frequency's shape.
        mean_length: the collection's mean of that, > 0.
    """
    if mean_length <= 0:
        raise ValueError("a collection in which a term occurs has a positive mean length")
    f = np.asarray(frequency, dtype=np.float64)
    return f / (f + k1 * (1 - b + b * np.asarray(length, dtype=np.float64) / mean_length))

"""Lexical index: which terms each passage holds, how often, and BM25 over them (``engram.core.ranking.bm25``).

Everything is exact at any moment: a term's passage count and the collection's length change in the transaction that
changes the postings, under ``collections.lock_graph``. A passage's postings are found again by the term ids that
were stored for it, never by analysing its text anew, so they leave exactly as they came, whatever analyser is next.

Keys that evolved have more of some terms. How rare a term is and how long passages are stays a matter of base keys,
so what one passage's key gained moves no other passage's score.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.bm25 import K1, B
from engram.storage.column_parameters import Numbers, decode_column, floats, integers
from engram.storage.corpus.collections import Collection
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import LAST_CHARACTER, WANTED_IDS, id_rows, join_by_index, join_once

POSTINGS = 10_000
"""Postings that a search scans at most, unless the rarest term alone has more: some milliseconds."""
LOOKED_UP = 16
"""Times as many passages as are wanted whose other terms are looked up."""
COUNTED = 1_000
"""Passages with a term up to which those that a caller sees are counted. Larger counts are rounded up."""
SAMPLED_PASSAGES = 10
"""Passages of a term whose texts are looked at for the words that it stands for."""
SAMPLED_CHARACTERS = 10_000
"""Of each of these texts, at most."""
COMPARED_TERMS = 1_000
"""Terms with one beginning that a mistyped word is compared with, at most."""
ROUNDED_BY = 1.25
"""Ratio of neighbouring rounded numbers: one hidden passage hardly ever moves one."""
_HAS_READERS = "(SELECT EXISTS (SELECT FROM reader_set WHERE collection_id = %(collection)s))"


@dataclass(frozen=True, slots=True)
class TermCounts:
    """Counts (> 0) of the terms of a passage."""

    passage_id: int
    frequencies: Mapping[str, float]

    @property
    def length(self) -> float:
        """The passage's length in terms, in the precision in which it is stored."""
        return float(np.float32(sum(self.frequencies.values())))


def _round_up(number: str) -> str:
    """Return SQL that rounds a number > 0 up to a power of ``ROUNDED_BY``, and to a whole number."""
    return f"ceil(power({ROUNDED_BY}::float8, ceil(ln(greatest({number}, 1)::float8) / ln({ROUNDED_BY}::float8))))"


def _count_visible(stored: str) -> str:
    """Return SQL for the passages with a ``lexical_term term`` that the caller sees; of common terms, roughly all.

    A count of all passages would tell which words hidden ones have.
    """
    return f"""
        CASE WHEN NOT {_HAS_READERS} THEN {stored}::float8
             WHEN {stored} > {COUNTED} THEN {_round_up(stored)}
             ELSE (SELECT count(*) FROM lexical_posting seen
                   WHERE seen.collection_id = %(collection)s AND seen.term_id = term.id)::float8 END
    """


def _count_visible_passages() -> str:
    """Return SQL for the passages of a ``collection`` that the caller sees; of many, roughly all."""
    return f"""
        CASE WHEN NOT {_HAS_READERS} THEN passage_count::float8
             WHEN passage_count > {COUNTED} THEN {_round_up("passage_count")}
             ELSE (SELECT count(*) FROM passage seen WHERE seen.collection_id = %(collection)s)::float8 END
    """


def _measure_visible_length(stored: str) -> str:
    """Return SQL for the mean length of the passages that the caller sees; of many, roughly that of all."""
    return f"""
        CASE WHEN NOT {_HAS_READERS} THEN {stored}
             WHEN passage_count > {COUNTED} THEN {_round_up(stored)}
             ELSE (SELECT avg(seen.length::float8) FROM lexical_passage seen
                   WHERE seen.collection_id = %(collection)s) END
    """


# MATERIALIZED: what is the same for all postings of a term is computed once, not for each of them.
# A term that only evolved keys have is no lexical_term: no passage's base key holds it.
_QUESTION = """
    corpus AS (
        SELECT {passages} AS passages, %(k1)s::float8 * (1 - %(b)s::float8) AS base,
               %(k1)s::float8 * %(b)s::float8 / nullif({length}, 0) AS slope
        FROM collection WHERE id = %(collection)s
    ), asked AS MATERIALIZED (
        SELECT term.id, asked.place, {columns} corpus.base, corpus.slope,
               sum({held}) OVER rarest <= %(postings)s OR row_number() OVER rarest = 1 AS scanned,
               asked.weight * ln(1 + (corpus.passages - {held} + 0.5::float8)
                                     / ({held} + 0.5::float8)) AS weight
        FROM unnest(%(terms)s::text[], %(weights)s::float8[]) WITH ORDINALITY AS asked(term, weight, place)
        {terms} CROSS JOIN corpus
        WINDOW rarest AS (ORDER BY {held}, asked.place ROWS UNBOUNDED PRECEDING)
    )
"""

_CONTRIBUTION = """
    asked.weight * posting.frequency / (posting.frequency + asked.base + asked.slope * posting.length)
"""

_POSTINGS = f"FROM asked {join_by_index('lexical_posting posting', 'posting.term_id = asked.id {chosen}')}"

# What a term adds for having become more frequent comes on top of what it counts at its base frequency.
_CORRECTIONS = f"""
    FROM asked {join_by_index("evolved_posting posting", "posting.term = asked.term {chosen}")}
    CROSS JOIN LATERAL (SELECT asked.base + asked.slope * posting.length AS value) AS norm
"""
_BEST_FIRST = "ORDER BY score DESC, passage_id"


def search(
    reader: Reader,
    collection: Collection,
    weights: Mapping[str, float],
    limit: int,
    statement: str,
    *,
    evolved: bool = False,
    **values: Any,
) -> dict[int, float]:
    """The ``limit`` passages with the highest BM25 score, best first, equal ones in id order.

    Args:
        weights: the question's terms, each with its weight > 0: how often the question has it.
        statement: see ``build_word_search``; the statistics stay those of the whole collection.
        evolved: count terms as often as evolved keys have them, where passages have some (``Focus.evolved``).
        values: parameters of the statement's condition.

    Returns:
        passage -> score, > 0, in single precision. Passages that share no term with the question are absent.
    """
    rows = reader.rows(
        f"WITH {question(reader, evolved=evolved)} {statement}",
        parameters(collection, weights, limit=limit, **values),
    )
    return {row.passage_id: row.score for row in rows}


def question(reader: Reader, *, evolved: bool) -> str:
    """Return SQL for the tables ``corpus`` and ``asked``: the question's terms with their places and weights.

    How rare a term is goes by what the caller sees; see ``_count_visible``.

    Args:
        reader: that the statement is for.
        evolved: with those that no base key has.
    """
    held = "coalesce(term.passage_count, 0)" if evolved else "term.passage_count"
    terms = join_by_index("lexical_term term", "term.term = asked.term", outer=evolved)
    passages, length = "passage_count", "lexical_length / nullif(passage_count, 0)"
    if reader.reader_sets is not None:
        is_there = "true" if evolved else "held.passages > 0"
        terms += f" JOIN LATERAL (SELECT {_count_visible(held)} AS passages OFFSET 0) AS held ON {is_there}"
        held = "held.passages"
        passages, length = _count_visible_passages(), _measure_visible_length(length)
    return _QUESTION.format(
        columns="asked.term," if evolved else "", terms=terms, held=held, passages=passages, length=length
    )


def build_word_search(
    *, condition: str | None = None, among: str = "", is_bounded: bool = True, evolved: bool
) -> str:
    """The statement, after ``question``, of the %(limit)s passages with the highest score, best first.

    The rarest terms are scanned, up to ``POSTINGS``; of the best that have one of them the other terms, if any are
    left, are looked up. Where more passages share common words only than that, those are not found: they say
    little, and to read all of them takes as long as the corpus is large.

    Args:
        condition: only rows ``passage p`` of which this SQL is true.
        among: an array of passages, to leave out all others; empty for none.
        is_bounded: False: scan all terms, where few passages are left that may have any of them.
    """
    # Rounded, so that the order in which Postgres happens to add cannot part passages of equal score.
    score = "sum(score)::real AS score"
    if not is_bounded:
        added = contributions(among, evolved=evolved)
        scored = f"SELECT passage_id, {score} FROM ({added}) AS said GROUP BY passage_id"
        return f"{_keep_meeting(condition, scored)} {_BEST_FIRST} LIMIT %(limit)s"
    scanned, others = (
        contributions(chosen, evolved=evolved).replace(
            "FROM asked", f"FROM (SELECT * FROM asked WHERE {which}) AS asked"
        )
        for chosen, which in ((among, "scanned"), ("ARRAY(SELECT passage_id FROM scanned)", "NOT scanned"))
    )
    scored = f"SELECT passage_id, sum(score) AS score FROM ({scanned}) AS said GROUP BY passage_id"
    return f"""
        SELECT passage_id, {score} FROM (
            WITH scanned AS MATERIALIZED (
                {_keep_meeting(condition, scored)}
                ORDER BY score::real DESC, passage_id
                LIMIT %(limit)s * (SELECT CASE WHEN bool_and(scanned) THEN 1 ELSE {LOOKED_UP} END FROM asked)
            )
            SELECT passage_id, score FROM scanned UNION ALL SELECT passage_id, score FROM ({others}) AS said
        ) AS said GROUP BY passage_id {_BEST_FIRST} LIMIT %(limit)s
    """


def _keep_meeting(condition: str | None, scored: str) -> str:
    """Keep, of a statement's rows ``passage_id`` and ``score``, those that meet a condition on ``passage p``."""
    passage = "" if condition is None else join_by_index("passage p", f"p.id = found.passage_id AND {condition}")
    return f"SELECT found.passage_id, found.score FROM ({scored} OFFSET 0) AS found {passage}"


def contributions(passages: str, *, evolved: bool) -> str:
    """The statement, after ``question``, of what each term adds to each passage: passage_id, place, score.

    A term that has become more frequent comes twice.

    Args:
        passages: an array, to leave out all others; empty for none.
    """
    chosen = f"AND posting.passage_id = ANY({passages})" if passages else ""
    base = f"SELECT posting.passage_id, asked.place, {_CONTRIBUTION} AS score {_POSTINGS.format(chosen=chosen)}"
    if not evolved:
        return base
    return f"""
        {base} UNION ALL
        SELECT posting.passage_id, asked.place,
               asked.weight * (posting.frequency / (posting.frequency + norm.value)
                               - posting.base / (posting.base + norm.value))
        {_CORRECTIONS.format(chosen=chosen)}
    """


def term_rows(
    reader: Reader, collection_id: int, passages: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Passage and term of each term that one of the passages has by its base key, (n,) each."""
    row = reader.row(
        f"""
        SELECT array_send(array_agg(held.passage_id)) AS passages, array_send(array_agg(term.id)) AS terms
        FROM {WANTED_IDS} {join_by_index("lexical_passage held", "held.passage_id = wanted.id")}
        CROSS JOIN unnest(held.term_ids) AS term(id)
        """,
        {"collection": collection_id, "ids": integers(passages)},
    )
    return decode_column(row.passages, np.int64), decode_column(row.terms, np.int64)


@dataclass(frozen=True, slots=True)
class HeldTerm:
    """A term, and how many passages hold it."""

    id: int
    passages: int


def passage_counts(reader: Reader, collection: Collection, terms: Sequence[str]) -> tuple[int, dict[str, int]]:
    """All passages of the collection, and term -> those that hold it, see ``find_terms``."""
    passages, held = find_terms(reader, collection, terms)
    return passages, {term: one.passages for term, one in held.items()}


def find_terms(reader: Reader, collection: Collection, terms: Sequence[str]) -> tuple[int, dict[str, HeldTerm]]:
    """All passages of the collection, and the terms that some hold, of one moment.

    To a caller who does not see all, both counts are as in ``question``.
    """
    passages, holding = "collection.passage_count", "term.passage_count"
    if reader.reader_sets is not None:
        passages = _count_visible_passages()
        holding = _count_visible(holding)
    rows = reader.rows(
        f"""
        SELECT ({passages})::bigint AS passages, held.term, held.id, held.holding::bigint AS holding
        FROM collection LEFT JOIN LATERAL (
            SELECT term.term, term.id, {holding} AS holding
            FROM {id_rows("terms", "text")} {join_by_index("lexical_term term", "term.term = wanted.id")}
        ) AS held ON true
        WHERE collection.id = %(collection)s
        """,
        {"collection": collection.id, "terms": list(terms)},
    )
    held = {row.term: HeldTerm(row.id, row.holding) for row in rows if row.holding}
    return (rows[0].passages if rows else 0), held


@dataclass(frozen=True, slots=True)
class CollectionWords:
    """Words of a collection, as far as the caller sees it."""

    reader: Reader
    collection_id: int

    def count_passages(self, terms: Iterable[str]) -> dict[str, int]:
        """Count the passages that have each term by its base key; terms that none has are absent.

        To a caller who does not see all, the counts are as in ``question``.
        """
        holding = "term.passage_count"
        if self.reader.reader_sets is not None:
            holding = _count_visible(holding)
        rows = self.reader.rows(
            f"""
            SELECT term.term, ({holding})::bigint AS holding
            FROM {join_once("lexical_term term", "term", "string_to_array(%(terms)s, ' ')")}
            """,  # The driver writes hundreds of terms as one text in a tenth of an array's time.
            {"collection": self.collection_id, "terms": " ".join(terms)},
        )
        return {row.term: row.holding for row in rows if row.holding}

    def list_terms(self, beginning: str, shortest: int, longest: int) -> list[str]:
        """List the first ``COMPARED_TERMS`` terms of so many letters that begin so.

        Those that only hidden passages have are among them.
        """
        rows = self.reader.rows(
            """
            SELECT term FROM lexical_term WHERE collection_id = %(collection)s
                AND term ~>=~ %(beginning)s AND term ~<~ %(end)s
                AND length(term) BETWEEN %(shortest)s AND %(longest)s
            ORDER BY term USING ~<~ LIMIT %(compared)s
            """,
            {
                "collection": self.collection_id,
                "beginning": beginning,
                "end": beginning + LAST_CHARACTER,
                "shortest": shortest,
                "longest": longest,
                "compared": COMPARED_TERMS,
            },
        )
        return [row.term for row in rows]

    def list_containing(self, part: str) -> list[str]:
        """List ``COMPARED_TERMS`` terms that contain a part: reads all of the collection.

        Those that only hidden passages have are among them.
        """
        rows = self.reader.rows(
            """
            SELECT term FROM lexical_term
            WHERE collection_id = %(collection)s AND strpos(term, %(part)s) > 0
            LIMIT %(compared)s
            """,
            {"collection": self.collection_id, "part": part, "compared": COMPARED_TERMS},
        )
        return [row.term for row in rows]

    def sample_texts(self, terms: Sequence[str]) -> dict[str, list[str]]:
        """Return titles and texts of the first passages that have each term.

        Where the caller does not see all, none of terms that more than ``COUNTED`` passages have: the time of a
        search among these would tell how many are hidden.
        """
        rare = "" if self.reader.reader_sets is None else f"WHERE term.passage_count <= {COUNTED}"
        rows = self.reader.rows(
            f"""
            SELECT term.term, concat_ws(' ', p.title, left(p.text, {SAMPLED_CHARACTERS})) AS text
            FROM {id_rows("terms", "text")} {join_by_index("lexical_term term", "term.term = wanted.id")}
            CROSS JOIN LATERAL (
                SELECT posting.passage_id FROM lexical_posting posting
                WHERE posting.collection_id = %(collection)s AND posting.term_id = term.id
                ORDER BY posting.passage_id LIMIT {SAMPLED_PASSAGES}
            ) AS holding
            {join_by_index("passage p", "p.id = holding.passage_id")}
            {rare}
            """,
            {"collection": self.collection_id, "terms": list(terms)},
        )
        texts: dict[str, list[str]] = {}
        for row in rows:
            texts.setdefault(row.term, []).append(row.text)
        return texts


def index(writer: Writer, collection_id: int, passages: Sequence[TermCounts], analyser: int) -> float:
    """Make these passages' postings exactly the given ones, which come in place of what they had.

    Args:
        analyser: the version of the analysis that gave the terms, recorded with each passage.

    Returns:
        By how much the collection's length changed, for ``collections.add_counts``.
    """
    freed, emptied = _remove(writer, collection_id, [passage.passage_id for passage in passages])
    containing = Counter(term for passage in passages for term in passage.frequencies)
    ids = _count(writer, collection_id, containing)
    lengths = [passage.length for passage in passages]  # once: it adds up all terms
    postings = np.fromiter(
        (
            (ids[term], passage.passage_id, frequency, length)
            for passage, length in zip(passages, lengths, strict=True)
            for term, frequency in passage.frequencies.items()
        ),
        dtype=[("term", np.int64), ("passage", np.int64), ("frequency", np.float32), ("length", np.float32)],
        count=containing.total(),
    )
    postings.sort(order=["term", "passage"])  # the index's order: neighbours go to the same page
    writer.execute(
        f"""
        WITH posting AS (
            SELECT * FROM unnest(
                %(terms)s::bigint[], %(passages)s::bigint[], %(frequencies)s::real[], %(lengths)s::real[]
            ) AS row(term_id, passage_id, frequency, length)
        ), inserted AS (
            INSERT INTO lexical_posting (collection_id, term_id, passage_id, frequency, length, reader_set_id)
            SELECT %(collection)s, posting.*, p.reader_set_id
            FROM posting {join_by_index("passage p", "p.id = posting.passage_id")}
        )
        INSERT INTO lexical_passage (collection_id, passage_id, analyser, length, term_ids)
        SELECT %(collection)s, passage_id, %(analyser)s, max(length), array_agg(term_id)
        FROM posting GROUP BY passage_id
        """,
        {
            "collection": collection_id,
            "terms": Numbers(postings["term"]),
            "passages": Numbers(postings["passage"]),
            "frequencies": Numbers(postings["frequency"]),
            "lengths": Numbers(postings["length"]),
            "analyser": analyser,
        },
    )
    _forget_terms(writer, collection_id, emptied)
    return sum(lengths) - freed


def remove(writer: Writer, collection_id: int, passages: Sequence[int]) -> float:
    """Take passages out of the index, before they are deleted themselves.

    Returns:
        By how much the collection's length changed (<= 0), for ``collections.add_counts``.
    """
    freed, emptied = _remove(writer, collection_id, passages)
    _forget_terms(writer, collection_id, emptied)
    return -freed


def parameters(collection: Collection, weights: Mapping[str, float], **more: Any) -> dict[str, Any]:
    """Return the parameters of these statements."""
    return {
        "collection": collection.id,
        "k1": K1,
        "b": B,
        "postings": POSTINGS,
        "terms": list(weights),
        "weights": floats(weights.values()),
        **more,
    }


def _remove(writer: Writer, collection_id: int, passages: Sequence[int]) -> tuple[float, list[int]]:
    """Remove the passages' postings, if they have any; their summed length, and the terms left with none."""
    row = writer.row(
        f"""
        WITH old AS (
            DELETE FROM lexical_passage held USING {WANTED_IDS}
            WHERE held.collection_id = wanted.collection_id AND held.passage_id = wanted.id
            RETURNING held.collection_id, held.passage_id, held.length, held.term_ids
        ), gone AS MATERIALIZED (
            SELECT old.collection_id, old.passage_id, term.id AS term_id
            FROM old CROSS JOIN unnest(old.term_ids) AS term(id)
        ), deleted AS (
            DELETE FROM lexical_posting posting USING gone
            WHERE posting.collection_id = gone.collection_id
              AND posting.term_id = gone.term_id AND posting.passage_id = gone.passage_id
        ), counted AS (
            UPDATE lexical_term term SET passage_count = term.passage_count - lost.passages
            FROM (SELECT collection_id, term_id, count(*) AS passages FROM gone GROUP BY 1, 2) AS lost
            WHERE term.collection_id = lost.collection_id AND term.id = lost.term_id
            RETURNING term.id, term.passage_count
        )
        SELECT (SELECT coalesce(sum(length::float8), 0) FROM old) AS freed,
               (SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM counted WHERE passage_count = 0) AS emptied
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    return row.freed, row.emptied


def _count(writer: Writer, collection_id: int, containing: Mapping[str, int]) -> dict[str, int]:
    """Count that many more passages for each term, which is made where it is new; term -> id."""
    names = sorted(containing)
    rows = writer.rows(
        """
        INSERT INTO lexical_term AS held (collection_id, term, passage_count)
        SELECT %(collection)s, row.* FROM unnest(%(terms)s::text[], %(counts)s::bigint[]) AS row
        ON CONFLICT (collection_id, term) DO UPDATE SET passage_count = held.passage_count + excluded.passage_count
        RETURNING term, id
        """,
        {"collection": collection_id, "terms": names, "counts": [containing[name] for name in names]},
    )
    return {row.term: row.id for row in rows}


def _forget_terms(writer: Writer, collection_id: int, terms: Sequence[int]) -> None:
    """Remove those of the given terms that no passage holds any more."""
    if terms:
        writer.execute(
            f"""
            DELETE FROM lexical_term term USING {WANTED_IDS}
            WHERE term.collection_id = wanted.collection_id AND term.id = wanted.id AND term.passage_count = 0
            """,
            {"collection": collection_id, "ids": list(terms)},
        )

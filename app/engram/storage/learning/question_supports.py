"""Question memory: the sentences that supported past questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.context import tenancy
from engram.core.learning.state_rows import NO_SHARES, RemainingShares, SupportRows
from engram.core.learning.states import SUPPORT_BEFORE_VERDICTS
from engram.core.ranking.same_need import SameNeed
from engram.storage.column_parameters import Documents, Numbers, decode_column, integers, vectors
from engram.storage.corpus.current_vectors import renew_question_version
from engram.storage.database import Reader, Writer
from engram.storage.question.nearest_neighbours import nearness
from engram.storage.question.query_focus import Focus
from engram.storage.row_lookups import WANTED_IDS, alias_rows, id_rows, join_by_index


@dataclass(frozen=True, slots=True)
class PastSupport:
    """A sentence that supported a past question near to the present one.

    Attributes:
        similarity: cosine of the two questions.
        same_need: the probability of the same need and its signals; None before it was computed.
    """

    question_id: int
    question: str
    similarity: float
    sentence_id: int
    passage_id: int
    support: float
    perplexity: float
    acceptance: float
    complete: bool
    answered: float = 0.0
    sufficiency: float = 0.0
    same_need: SameNeed | None = None


# ``net_support`` and ``net_acceptance`` of ``core.ranking.question_memory``.
_NET = f"2 * ({{row}}.{{state}} - {SUPPORT_BEFORE_VERDICTS} * {{row}}.perplexity) - (1 - {{row}}.perplexity)"
NET_SUPPORT = f"greatest({_NET.format(row='{row}', state='support')}, 0)"
_NET_ACCEPTANCE = _NET.format(row="supported", state="acceptance")


def recall(reader: Reader, focus: Focus, questions: int) -> list[PastSupport]:
    """Read the supports of the ``questions`` nearest past questions, nearest first.

    Sentences that were rejected are among them: their passages go down. One that was supported, and later rejected
    as often, recalls nothing. An answer that it leads is as sufficient as the judged one was.
    """
    rows = reader.rows(build_recall_query(focus), focus.parameters(questions=questions))
    return [PastSupport(**row._asdict()) for row in rows]


def build_recall_query(focus: Focus) -> str:
    """The statement of ``recall``."""
    past = nearness(focus.collection, "question", "embedding", "%(q)s")
    passage_join = join_by_index("passage p", f"p.id = s.passage_id AND {focus.passage_condition}")
    return f"""
        WITH near AS MATERIALIZED (
            SELECT id, text, -(embedding <#> %(q)s) AS similarity FROM question
            WHERE {past.rows} {build_seen_condition("question")} ORDER BY {past.order} LIMIT %(questions)s
        ), known AS MATERIALIZED (
            SELECT near.*, supported.sentence_id, supported.support, supported.perplexity,
                   supported.acceptance, supported.complete,
                   supported.answered, supported.sufficiency
            FROM near {join_by_index("question_support supported", "supported.question_id = near.id")}
            WHERE {_NET_ACCEPTANCE} <> 0 OR supported.answered > 0
        )
        SELECT known.id AS question_id, known.text AS question, known.similarity, s.id AS sentence_id, s.passage_id,
               known.support, known.perplexity, known.acceptance, known.complete, known.answered, known.sufficiency
        FROM known {join_by_index("sentence s", "s.id = known.sentence_id")}
        {passage_join if focus.is_narrowed else ""}
        ORDER BY known.similarity DESC, known.id, s.id
    """


def build_seen_condition(alias: str) -> str:
    """Return the further condition on past questions of which the caller may see some evidence.

    So that one whose evidence is hidden takes no place among the nearest. Empty where all is visible.
    """
    if tenancy.get_visibility().readers is None:
        return ""
    return f"""
        AND EXISTS (
            SELECT FROM question_support of_past JOIN sentence of_support
              ON of_support.collection_id = of_past.collection_id AND of_support.id = of_past.sentence_id
            WHERE of_past.collection_id = {alias}.collection_id AND of_past.question_id = {alias}.id
        )
    """


def build_seen_list(alias: str) -> str:
    """Return ``build_seen_condition`` of a statement that compares all questions many times, as one list."""
    if tenancy.get_visibility().readers is None:
        return ""
    return f"""
        AND {alias}.id = ANY (ARRAY(
            SELECT of_past.question_id FROM question_support of_past JOIN sentence of_support
              ON of_support.collection_id = of_past.collection_id AND of_support.id = of_past.sentence_id
            WHERE of_past.collection_id = %(collection)s
        ))
    """


def lock_questions(
    writer: Writer, collection_id: int, questions: Mapping[bytes, tuple[str, NDArray[np.float32]]]
) -> dict[bytes, int]:
    """Hash -> the question with this text hash, made if it is new, locked until the transaction ends.

    New ones are made before any other is locked, both in order of hash: whoever waits for a question that is being
    made holds none but earlier ones.

    Args:
        questions: text hash -> text and embedding, (d,).
    """
    hashes = sorted(questions)
    writer.execute(
        """
        INSERT INTO question (collection_id, text_hash, text, embedding)
        SELECT %(collection)s, new.* FROM unnest(%(hashes)s::bytea[], %(texts)s::text[], %(embeddings)s::vector[])
            AS new(hash, text, embedding)
        ORDER BY new.hash ON CONFLICT DO NOTHING
        """,
        {
            "collection": collection_id,
            "hashes": hashes,
            "texts": [questions[key][0] for key in hashes],
            "embeddings": vectors([questions[key][1] for key in hashes]),
        },
    )
    rows = writer.rows(
        f"""
        SELECT question.text_hash, question.id FROM {id_rows("hashes", "bytea")} JOIN question
          ON question.collection_id = wanted.collection_id AND question.text_hash = wanted.id
        ORDER BY question.text_hash FOR UPDATE OF question
        """,
        {"collection": collection_id, "hashes": hashes},
    )
    return {row.text_hash: row.id for row in rows}


def load_supports(
    reader: Reader, collection_id: int, questions: Sequence[int], sentences: NDArray[np.int64] | None = None
) -> SupportRows:
    """The supports of these questions as they stand, by question and sentence; ``sentences``: only of these."""
    row = reader.row(
        f"""
        WITH known AS MATERIALIZED (
            SELECT known.*
            FROM {id_rows("questions")} {join_by_index("question_support known", "known.question_id = wanted.id")}
            WHERE %(sentences)s::bigint[] IS NULL OR known.sentence_id = ANY(%(sentences)s)
            ORDER BY known.question_id, known.sentence_id
        )
        SELECT array_send(array_agg(question_id)) AS questions, array_send(array_agg(sentence_id)) AS sentences,
               array_send(array_agg(support)) AS supports, array_send(array_agg(perplexity)) AS perplexities,
               array_send(array_agg(acceptance)) AS acceptance,
               array_send(array_agg(update_count::bigint)) AS counts,
               array_send(array_agg(complete)) AS complete,
               array_send(array_agg(answered)) AS answered, array_send(array_agg(sufficiency)) AS sufficiency,
               json_agg(gain_budgets) AS gain_budgets, json_agg(judge_statements) AS judge_statements
        FROM known
        """,
        {
            "collection": collection_id,
            "questions": integers(questions),
            "sentences": None if sentences is None else Numbers(sentences),
        },
    )
    days, kept = list_gain_budgets(row.gain_budgets or ())
    return SupportRows(
        question_ids=decode_column(row.questions, np.int64),
        sentence_ids=decode_column(row.sentences, np.int64),
        supports=decode_column(row.supports, np.float64),
        perplexities=decode_column(row.perplexities, np.float64),
        acceptance=decode_column(row.acceptance, np.float64),
        update_counts=decode_column(row.counts, np.int64),
        complete=decode_column(row.complete, np.bool_),
        days=days,
        remaining_shares=kept,
        statements=[
            tuple(tuple(map(tuple, statements)) for statements in texts) for texts in row.judge_statements or ()
        ],
        answered=decode_column(row.answered, np.float64),
        sufficiency=decode_column(row.sufficiency, np.float64),
    )


_NEW_SUPPORTS = alias_rows(
    """
    unnest(
        %(questions)s::bigint[], %(sentences)s::bigint[], %(supports)s::float8[], %(perplexities)s::float8[],
        %(acceptance)s::float8[], %(counts)s::bigint[], %(complete)s::boolean[], %(gain_budgets)s::jsonb[],
        %(judge_statements)s::jsonb[],
        %(answered)s::float8[], %(sufficiency)s::float8[]
    ) AS given(question_id, sentence_id, support, perplexity, acceptance, update_count, complete, gain_budgets,
               judge_statements, answered, sufficiency)
    """
)


def _build_parameters(supports: SupportRows) -> dict[str, Any]:
    """Build the parameters of ``_NEW_SUPPORTS``, one array per column; for the columns see ``Support``."""
    return {
        "questions": Numbers(supports.question_ids),
        "sentences": Numbers(supports.sentence_ids),
        "supports": Numbers(supports.supports),
        "perplexities": Numbers(supports.perplexities),
        "acceptance": Numbers(supports.acceptance),
        "counts": Numbers(supports.update_counts),
        "complete": Numbers(supports.complete),
        "gain_budgets": gain_budgets_as_json(supports.days, supports.remaining_shares),
        "judge_statements": Documents(supports.statements),
        "answered": Numbers(supports.answered),
        "sufficiency": Numbers(supports.sufficiency),
    }


def store_supports(writer: Writer, collection_id: int, supports: SupportRows) -> None:
    """Write supports of sentences as they are now, by question and sentence; those that are there are replaced."""
    renew_question_version(writer, collection_id, len(np.unique(supports.question_ids)))
    writer.execute(
        f"""
        INSERT INTO question_support (collection_id, question_id, sentence_id, support, perplexity, acceptance,
                                      update_count, complete, gain_budgets, judge_statements, answered, sufficiency)
        SELECT new.* FROM {_NEW_SUPPORTS}
        ON CONFLICT (collection_id, question_id, sentence_id) DO UPDATE SET
            support = excluded.support, perplexity = excluded.perplexity,
            acceptance = excluded.acceptance, update_count = excluded.update_count,
            complete = excluded.complete, gain_budgets = excluded.gain_budgets,
            judge_statements = excluded.judge_statements,
            answered = excluded.answered, sufficiency = excluded.sufficiency
        """,
        {"collection": collection_id, **_build_parameters(supports)},
    )


def replace_supports(
    writer: Writer, collection_id: int, changed: SupportRows, removed: Sequence[tuple[int, int]]
) -> None:
    """Write these supports, which are there already, and remove those of the (question, sentence) ``removed``."""
    renew_question_version(writer, collection_id)
    writer.execute(
        f"""
        UPDATE question_support SET support = new.support, perplexity = new.perplexity,
            acceptance = new.acceptance, update_count = new.update_count, complete = new.complete,
            gain_budgets = new.gain_budgets, judge_statements = new.judge_statements,
            answered = new.answered, sufficiency = new.sufficiency
        FROM {_NEW_SUPPORTS}
        WHERE question_support.collection_id = new.collection_id AND question_support.question_id = new.question_id
          AND question_support.sentence_id = new.sentence_id
        """,
        {"collection": collection_id, **_build_parameters(changed)},
    )
    removed_rows = "unnest(%(questions)s::bigint[], %(sentences)s::bigint[]) AS gone(question_id, sentence_id)"
    writer.execute(
        f"""
        DELETE FROM question_support known
        USING {alias_rows(removed_rows)}
        WHERE known.collection_id = new.collection_id AND known.question_id = new.question_id
          AND known.sentence_id = new.sentence_id
        """,
        {
            "collection": collection_id,
            "questions": integers(question for question, _ in removed),
            "sentences": integers(sentence for _, sentence in removed),
        },
    )


def find_questions(reader: Reader, collection_id: int, events: Sequence[int]) -> dict[int, list[int]]:
    """Question -> sentences that the events' verdicts said something of for it, by the audit."""
    rows = reader.rows(
        f"""
        SELECT event.question_id, audit.sentence_id
        FROM {WANTED_IDS}
        {join_by_index("feedback_event event", "event.id = wanted.id AND event.question_id IS NOT NULL")}
        {join_by_index("memory_audit audit", "audit.event_id = event.id AND audit.channel = 'recall'", outer=True)}
        """,
        {"collection": collection_id, "ids": list(events)},
    )
    sentences_by_question: dict[int, set[int]] = {}
    for row in rows:
        sentences_by_question.setdefault(row.question_id, set()).update(
            () if row.sentence_id is None else (row.sentence_id,)
        )
    return {question: sorted(sentences) for question, sentences in sorted(sentences_by_question.items())}


def hold_sentences(writer: Writer, collection_id: int, sentences: Sequence[int]) -> list[int]:
    """Keep these sentences from deletion until the transaction ends, locked in id order; those that exist."""
    rows = writer.rows(
        f"""
        SELECT s.id FROM {WANTED_IDS} JOIN sentence s ON s.collection_id = wanted.collection_id AND s.id = wanted.id
        ORDER BY s.id FOR KEY SHARE OF s
        """,
        {"collection": collection_id, "ids": integers(sorted(sentences))},
    )
    return [row.id for row in rows]


def put_questions(
    writer: Writer, collection_id: int, put: Mapping[int, tuple[str, NDArray[np.float32]]], removed: Sequence[int]
) -> None:
    """Write questions that differ from what is stored, and delete ``removed`` with their supports."""
    renew_question_version(writer, collection_id)
    rows = "unnest(%(ids)s::bigint[], %(texts)s::text[], %(embeddings)s::vector[]) AS given(id, text, embedding)"
    writer.execute(
        f"""
        UPDATE question SET text = new.text, embedding = new.embedding FROM {alias_rows(rows)}
        WHERE question.collection_id = new.collection_id AND question.id = new.id
          AND (question.text <> new.text OR question.embedding <> new.embedding)
        """,
        {
            "collection": collection_id,
            "ids": list(put),
            "texts": [text for text, _ in put.values()],
            "embeddings": vectors([embedding for _, embedding in put.values()]),
        },
    )
    writer.execute(
        f"""
        DELETE FROM question USING {WANTED_IDS}
        WHERE question.collection_id = wanted.collection_id AND question.id = wanted.id
        """,
        {"collection": collection_id, "ids": list(removed)},
    )


def load_question_texts(reader: Reader, collection_id: int, questions: Sequence[int]) -> dict[int, str]:
    """Question -> its text, of those that verdicts still teach."""
    rows = reader.rows(
        f"SELECT q.id, q.text FROM {WANTED_IDS} {join_by_index('question q', 'q.id = wanted.id')}",
        {"collection": collection_id, "ids": list(questions)},
    )
    return {row.id: row.text for row in rows}


def list_gain_budgets(values: Sequence[Any]) -> tuple[list[str], list[RemainingShares]]:
    """Read the days and remaining shares of gain budgets, as ``gain_budgets_as_json`` writes them."""
    return [value.get("day", "") for value in values], [value.get("kept", NO_SHARES) for value in values]


def gain_budgets_as_json(days: Sequence[str], shares: Sequence[RemainingShares]) -> Documents:
    """Make the JSON of column ``gain_budgets``; PostgreSQL keeps every bit of a float."""
    return Documents([{"day": day, "kept": own} if own else {} for day, own in zip(days, shares, strict=True)])

"""Streams of verdicts on everything that verdicts teach, and all that they left behind."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, get_args
from uuid import uuid4

from engram.composition.container import Application
from engram.core.learning.logged_verdict import Expansion
from engram.core.learning.ratings import REASONS, Rating
from engram.services.verdict.receipt import Receipt
from engram.services.verdict.verdict import NamedSentence, Verdict
from tests.support import state

Rows = list[dict[str, Any]]
QUESTIONS = (
    ("Who was born in Warsaw?", None),
    ("who was born  in Warsaw?", None),
    ("What flows into the Baltic Sea?", None),
    ("What happened in 1898?", "1898"),
)
UNITS = (
    ("hyde", "The longest river of the country flows past the capital into the sea."),
    ("rewriting", "The longest river  of the country flows past the capital into the sea."),
    ("facet", "chemical element, radioactivity, discovery, physics"),
    ("facet", "capital of Poland"),
    ("facet", "capital of Japan"),
)
JUDGES = ("careful", "careless")
# What differs between two runs that do the same: when, and the ids drawn from sequences.
INCIDENTAL = ("created_at", "updated_at", "text_since", "keys_version")
PASSAGES_ONLY = ("sentence_memory", "memory_audit", "learned_weights", "weight_audit", "key_evidence")
KEYED = ("key_credit", "expansion_memory", "passage_key", "evolved_posting", "key_generation", "key_evolution")
GONE_IDS = range(2**40, 2**40 + 6)
"""Passages that an episode ranked and that were deleted since."""


def stream(
    application: Application,
    collection: str,
    count: int,
    seed: int,
    *,
    whole_passages: bool = True,
    ratings: bool = False,
) -> list[int]:
    """Events that wait, on few questions, sentences, passages and units, so that most of them overlap.

    Args:
        whole_passages: whether each supports a passage as a whole as well.
        ratings: whether a third of them are thumbs.
    """
    draw = random.Random(seed)
    everything = state.list_sentence_ids(application, collection)
    passages = state.passages(application, collection)
    ranked = [*passages.values(), *GONE_IDS]
    asked = [
        state.add_episode(
            application,
            collection,
            question,
            everything[:4],
            time,
            ranked=ranked,
            answer_features=state.draw_answer(number),
            shown=list(passages.values())[:5],
        )
        for number, (question, time) in enumerate(QUESTIONS)
    ]
    supportable = sorted(passages) if whole_passages else []
    return [
        _rate_randomly(application, collection, draw, asked, everything)
        if ratings and at % 3 == 0
        else _judge_randomly(application, collection, draw, asked, everything, supportable)
        for at in range(count)
    ]


def _judge_randomly(
    application: Application,
    collection: str,
    draw: random.Random,
    asked: Sequence[Any],
    sentences: Sequence[int],
    passages: Sequence[str],
) -> int:
    brought = draw.sample(UNITS, draw.randint(1, 3)) if draw.random() < 0.6 else []
    receipt: Receipt = state.judge(
        application,
        collection,
        draw.choice(asked),
        draw.sample(sentences, 2),
        judge=draw.choice(JUDGES),
        partial=draw.random() < 0.5,
        confidence=draw.choice([1.0, 0.8, 0.3]),
        retrieval_success=draw.choice([None, None, True, False]),
        supporting_passages=tuple(draw.sample(passages, min(1, len(passages)))),
        expansions=tuple(Expansion(method, text) for method, text in brought),
    )
    return receipt.event.id


def _rate_randomly(
    application: Application, collection: str, draw: random.Random, asked: Sequence[Any], sentences: Sequence[int]
) -> int:
    """A rating that replaces none: streams are compared with and without single events."""
    rating = draw.choice([*get_args(Rating)])
    cited = [NamedSentence(draw.choice(sentences))] if rating != "withdrawn" and draw.random() < 0.5 else []
    reason = draw.choice([None, *REASONS]) if rating == "down" else None
    verdict = Verdict(
        query_id=draw.choice(asked),
        scope=application.auth.access.scope(collection),
        judge=draw.choice(JUDGES),
        rating=rating,
        cited=cited,
        reason=reason,
    )
    return application.learning.log.store_now(verdict, uuid4().hex).id


def list_learned(application: Application, collection: str) -> dict[str, Rows]:
    """Everything that verdicts left, with units and questions by their texts instead of ids."""
    rows = {
        table: state.rows(application, collection, table, INCIDENTAL)
        for table in (*PASSAGES_ONLY, *KEYED, "expansion_unit", "question", "question_support")
    }
    units = {row["id"]: row["text"] for row in rows["expansion_unit"]}
    questions = {row["id"]: row["text_hash"] for row in rows["question"]}
    for row in (*rows["expansion_unit"], *rows["question"]):
        del row["id"]
    for row in (*rows["key_credit"], *rows["expansion_memory"]):
        row["unit_id"] = units[row["unit_id"]]
    for row in rows["passage_key"]:
        row["units"] = [units[unit] for unit in row["units"]]
    for row in rows["question_support"]:
        row["question_id"] = questions[row["question_id"]]
    for row in rows["key_generation"]:
        del row["passages"]  # keys that it wrote, at the time
    return {table: sorted(found, key=repr) for table, found in rows.items()}


def apply(application: Application, collection: str, events: Sequence[int], batch: int = 1) -> None:
    """Apply events in this order; keys evolve only when told to."""
    target = state.collection_id(application, collection)
    for start in range(0, len(events), batch):
        some = events[start : start + batch]
        assert application.learning.learner.apply(target, some) == len(some)


def forgotten(application: Application, collection: str) -> None:
    """Leave of what was learned only the log; all events that are not revoked wait again."""
    target = {"c": state.collection_id(application, collection)}
    with application.database.write() as writer:
        for table in (
            "sentence_memory", "question", "memory_audit", "learned_weights", "weight_audit", "key_evidence",
            "expansion_unit", "passage_key", "evolved_posting", "key_generation", "key_evolution",
            "evolved_key_version",
        ):  # fmt: skip
            writer.execute(f"DELETE FROM {table} WHERE collection_id = %(c)s", target)
        writer.execute("UPDATE collection SET key_generation = 0 WHERE id = %(c)s", target)
        writer.execute(
            """
            UPDATE feedback_event SET status = 'pending', applied_at = NULL, applied_sequence = NULL,
                question_id = NULL
            WHERE collection_id = %(c)s AND status = 'applied'
            """,
            target,
        )


def assert_same(one: Mapping[str, Rows], other: Mapping[str, Rows]) -> None:
    """Table by table, so that a failure names the table."""
    assert one.keys() == other.keys()
    for table in one:
        assert one[table] == other[table], table


def assert_verified(application: Application, collection: str) -> None:
    report = application.revocation.verification.verify(application.auth.access.scope(collection))
    assert report.differences == [], report.differences
    assert report.clean


def delete_episodes(application: Application, collection: str) -> None:
    """Delete what was answered; verdicts need none of it."""
    with application.database.write() as writer:
        deleted = writer.execute(
            "DELETE FROM episode WHERE collection_id = %(c)s", {"c": state.collection_id(application, collection)}
        )
    assert deleted == len(QUESTIONS)

"""Verdicts that bring expansions, and what became of keys by them."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np

from engram.composition.container import Application
from engram.core.learning.logged_verdict import Expansion
from engram.services.auth.scope import Scope
from engram.services.verdict.learn import VerdictLearner
from engram.services.verdict.receipt import Receipt
from engram.wings.published.parts import published_of
from engram.wings.published.services.attribution import Attribution
from engram.wings.published.services.expansion_validation import ExpansionValidation
from engram.wings.published.services.key_credit_effect import prepare_key_credit
from engram.wings.published.services.key_evolution import KeyEvolutionService
from tests.conftest import CURIE
from tests.support import state

KEYS = ("expansion_unit", "key_evidence", "key_credit", "expansion_memory", "passage_key", "evolved_posting")
INCIDENTAL = ("created_at", "updated_at", "text_since")
QUESTION = "Which river is the longest of its country?"
RIVER = Expansion("hyde", "The longest river of the country flows past the capital into the sea.")
REWORDED = Expansion("rewriting", "Of all rivers of the country, which one is the longest?")
SPECIFIC = Expansion("specification", "The longest river of Poland by its length in kilometres")
ELEMENT = Expansion("facet", "chemical element, radioactivity, discovery, physics")


def verdict(
    application: Application,
    collection: str,
    passages: Sequence[str] = ("vistula",),
    expansions: Sequence[Expansion] = (RIVER, ELEMENT),
    question: str = QUESTION,
    wait: bool = True,
    **more: Any,
) -> Receipt:
    query_id = state.add_episode(application, collection, question, [])
    return give(application, collection, query_id, passages, expansions, wait, **more)


def give(
    application: Application,
    collection: str,
    query_id: UUID,
    passages: Sequence[str],
    expansions: Sequence[Expansion],
    wait: bool = True,
    **more: Any,
) -> Receipt:
    receipt = state.judge(
        application,
        collection,
        query_id,
        wait=wait,
        partial=True,
        supporting_passages=tuple(passages),
        expansions=tuple(expansions),
        **more,
    )
    assert not wait or receipt.event.status == "applied", receipt.event.error
    return receipt


def rows(application: Application, collection: str, table: str) -> list[dict[str, Any]]:
    return state.rows(application, collection, table, INCIDENTAL)


def list_learned(application: Application, collection: str) -> dict[str, list[dict[str, Any]]]:
    """Everything about keys, units by their text instead of their ids, which depend on who came first."""
    texts = {row["id"]: row["text"] for row in rows(application, collection, "expansion_unit")}
    found = {table: rows(application, collection, table) for table in KEYS}
    for row in found["expansion_unit"]:
        del row["id"]
    for table in ("key_credit", "expansion_memory"):
        for row in found[table]:
            row["unit_id"] = texts[row["unit_id"]]
    for row in found["passage_key"]:
        row["units"] = [texts[unit] for unit in row["units"]]
    return {table: sorted(found[table], key=repr) for table in KEYS}


def list_served(application: Application, collection: str) -> list[dict[str, Any]]:
    """Evolved keys as they are searched."""
    return [*rows(application, collection, "passage_key"), *rows(application, collection, "evolved_posting")]


def evolve(application: Application, scope: Scope) -> None:
    """Have keys evolve by what waits; nothing without the wing."""
    if "published" in application.wing_services:
        published_of(application).evolve.evolve(scope)


def vector(row: Mapping[str, Any], column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(row[column].strip("[]").split(","), dtype=np.float64)


def services(
    application: Application, validation: ExpansionValidation | None = None, **changes: Any
) -> tuple[VerdictLearner, KeyEvolutionService]:
    """Services with other constants, or another validation."""
    learning = replace(published_of(application).key_learning, **changes)
    attribution = Attribution(
        application.database,
        application.models.encoder,
        application.models.limits,
        learning,
        validation or published_of(application).expansion_validation,
    )
    evolve = KeyEvolutionService(application.database, learning.rules)
    questions, memories, _, weights = application.learning.learner.effects
    effects = [questions, memories, partial(prepare_key_credit, attribution, evolve), weights]
    return replace(application.learning.learner, effects=effects), evolve


def build_learning(
    application: Application, validation: ExpansionValidation | None = None, **changes: Any
) -> VerdictLearner:
    """The one that learns with other constants, or another validation."""
    return services(application, validation, **changes)[0]


PASSAGES = [str(passage["id"]) for passage in CURIE]


def stream(application: Application, collection: str, count: int, seed: int) -> list[int]:
    """Events that wait, on few passages and few units, so that most of them overlap."""
    draw = random.Random(seed)
    units = [RIVER, ELEMENT, *(Expansion("facet", f"capital of {name}") for name in ("Poland", "Japan", "France"))]
    questions = [QUESTION, "What is radioactive?", "Where is the capital of Japan?"]
    asked = [state.add_episode(application, collection, question, []) for question in questions]
    return [
        give(
            application,
            collection,
            draw.choice(asked),
            draw.sample(PASSAGES, draw.randint(1, 3)),
            draw.sample(units, draw.randint(1, 4)),
            wait=False,
        ).event.id
        for _ in range(count)
    ]


def forget_keys(application: Application, collection: str) -> None:
    """Leave of all that was learned about keys only the log, all of whose events wait again."""
    target = {"c": state.collection_id(application, collection)}
    with application.database.write() as writer:
        for table in ("key_credit", "key_evidence", "expansion_memory", "passage_key", "evolved_posting"):
            writer.execute(f"DELETE FROM {table} WHERE collection_id = %(c)s", target)
        for table in ("expansion_unit", "key_generation", "key_evolution", "evolved_key_version"):
            writer.execute(f"DELETE FROM {table} WHERE collection_id = %(c)s", target)
        writer.execute("UPDATE collection SET key_generation = 0 WHERE id = %(c)s", target)
    state.forget_everything(application, collection)

"""What the database computes of GAM-RAG because only it has all rows at hand, held against the core's words."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application
from engram.core.ranking.propagation import sentence_weights
from engram.core.ranking.question_memory import net_acceptance, net_support
from engram.core.ranking.same_need import SameNeed
from engram.services.question.recall import summarise_recall
from engram.storage.corpus import collections
from engram.storage.learning import question_supports
from engram.storage.question import graph_hops
from engram.storage.question.query_focus import Focus, GraphLimits
from engram.wings.published.storage import memory_hops
from tests.support import state, undo


@pytest.fixture
def taught(application: Application, curie: str) -> str:
    """A collection that verdicts of several judges moved back and forth, in both channels."""
    undo.apply(application, curie, undo.stream(application, curie, 20, seed=6), 5)
    return curie


def focus(application: Application, collection: str) -> Focus:
    question, constraint = application.models.embedder.embed(["Who was born in Warsaw?", "1867"])
    with application.database.read() as reader:
        found = collections.find(reader, collection)
    return Focus(
        found,
        question,
        constraint,
        use_memory=True,
        limits=GraphLimits(hub_limit=100, candidate_limit=100),
    )


@pytest.mark.parametrize("hops", [graph_hops, pytest.param(memory_hops, marks=pytest.mark.wing("published"))])
def test_the_best_sentences_by_eq_4_are_the_candidates_of_a_question_without_entities(
    application: Application, taught: str, hops: ModuleType
) -> None:
    asked = focus(application, taught)
    with application.database.read() as reader:

        def candidates(limit: int) -> Any:
            narrow = replace(asked, limits=GraphLimits(hub_limit=100, candidate_limit=limit))
            return hops.find_all_sentences(reader, narrow, None, [])

        every = candidates(100)
        weights = sentence_weights(every)
        assert len(set(weights.tolist())) == len(every) > 5
        assert (weights > 0).all()
        order = every.sentence_ids[np.argsort(-weights)].tolist()
        for limit in range(1, len(order)):
            assert candidates(limit).sentence_ids.tolist() == sorted(order[:limit])


@pytest.mark.parametrize(
    ("support", "perplexity"),
    [(0.25, 0.5), (0.25, 0.5000001), (0.2499999, 0.5), (0.0, 1.0), (0.0, 0.001), (1.0, 0.001), (0.3, 0.9)],
)
def test_recall_reads_what_is_supported_or_rejected_or_has_a_sufficiency(
    application: Application, taught: str, support: float, perplexity: float
) -> None:
    asked = focus(application, taught)
    with application.database.write() as writer:
        writer.execute(
            "UPDATE question_support SET support = %(s)s, acceptance = %(s)s, perplexity = %(p)s"
            " WHERE collection_id = %(c)s",
            {"s": support, "p": perplexity, "c": asked.collection.id},
        )
    stored = state.rows(application, taught, "question_support")
    supported = net_support(support, perplexity) > 0
    judged = net_acceptance(support, perplexity) != 0
    with application.database.read() as reader:
        read = question_supports.recall(reader, asked, 100)
    certain = SameNeed(1.0, 9.0, 1.0)
    probabilities, vouched = summarise_recall([replace(past, same_need=certain) for past in read])
    assert bool(probabilities) == (net_support(support, perplexity) > 0.01)  # less recalls nothing worth a mention
    assert supported or vouched == 0
    assert len(read) == (len(stored) if judged else len([row for row in stored if row["answered"] > 0])) > 0

    with application.database.write() as writer:
        writer.execute(
            "UPDATE question_support SET answered = 0 WHERE collection_id = %(c)s", {"c": asked.collection.id}
        )
    with application.database.read() as reader:
        read = question_supports.recall(reader, asked, 100)
    assert len(read) == (len(stored) if judged else 0)

"""Which passages vote for a past question: a question and the statement that teaches votes agree."""

from collections.abc import Mapping

import pytest

from engram.composition.container import Application
from engram.core.learning.state_rows import SupportRows
from engram.core.learning.states import Support
from engram.services.question.query import Query
from engram.services.question.recall import group_passages, select_voting
from engram.storage.learning import question_samples, question_supports
from tests.conftest import Scoped
from tests.support.state import passages, sentences

QUESTION = "Where was Marie Curie born?"
Named = Mapping[str, tuple[tuple[float, float], ...]]
SURE, WEAK, REJECTED, UNDECIDED = (0.9, 0.1), (0.17, 0.83), (0.0, 0.5), (0.25, 0.5)


@pytest.mark.parametrize(
    ("named", "voting"),
    [
        ({"curie": (SURE,)}, {"curie"}),
        ({"curie": (WEAK,)}, {"curie"}),
        ({"curie": (WEAK,), "warsaw": (WEAK,)}, {"curie", "warsaw"}),
        ({"curie": (WEAK,), "warsaw": (WEAK,), "tokyo": (WEAK,)}, set()),
        ({"curie": (WEAK, WEAK), "warsaw": (WEAK,), "tokyo": (WEAK,)}, {"curie"}),
        ({"curie": (SURE,), "warsaw": (WEAK,), "tokyo": (WEAK,)}, {"curie"}),
        ({"curie": (SURE,), "warsaw": (SURE,), "tokyo": (SURE,)}, {"curie", "warsaw", "tokyo"}),
        ({"curie": (WEAK,), "warsaw": (REJECTED,), "tokyo": (UNDECIDED,)}, {"curie"}),
        ({"curie": (REJECTED,), "warsaw": (UNDECIDED,)}, set()),
        ({"curie": ((0.25, 1.0), (0.0, 0.5))}, {"curie"}),
    ],
    ids=[
        "complete",
        "named alone",
        "two named weakly",
        "a thumb without citations",
        "two sentences of one",
        "one sure of three",
        "all sure",
        "others rejected",
        "nothing supported",
        "supported and rejected",
    ],
)
def test_a_question_and_the_sample_let_the_same_passages_vote(
    application: Application, curie: str, scoped: Scoped, named: Named, voting: set[str]
) -> None:
    scope = scoped(curie)
    plan = application.retrieval.retrieve.plan(Query(text=QUESTION, scope=scope))
    vector = plan.focus.vector
    places = {name: list(sentences(application, curie, name).values()) for name in named}
    with application.database.write() as writer:
        collection = scope.collection.id
        (question,) = question_supports.lock_questions(writer, collection, {b"x" * 32: (QUESTION, vector)}).values()
        rows = [
            Support(question, places[name][place], support=support, perplexity=perplexity, acceptance=support)
            for name, values in named.items()
            for place, (support, perplexity) in enumerate(values)
        ]
        question_supports.store_supports(writer, collection, SupportRows.from_rows(rows))
    rows_by_name = passages(application, curie)
    with application.database.snapshot() as reader:
        recalled = question_supports.recall(reader, plan.focus, 10)
        sample = question_samples.load_question_sample(reader, scope.collection, 2**62, 10, 1)
    assert group_passages(select_voting(recalled)).get(question, set()) == {rows_by_name[name] for name in voting}
    assert sample.evidence[sample.ids.index(question)] == {rows_by_name[name] for name in voting}

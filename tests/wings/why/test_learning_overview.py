"""What a collection learned as a whole, and what a revocation would leave: held against one that is carried out."""

from datetime import UTC, datetime, timedelta

import pytest

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from engram.services.revocation.revocation_service import RevocationService
from engram.wings.why.parts import why_of
from engram.wings.why.services.learning_overview import RevocationPreview
from tests.support.state import add_episode, judge, sentences

BORN = "Marie Curie was born in Warsaw in 1867."
DISCOVERY = "Marie Curie discovered polonium in 1898."
FIRST, SECOND = "Where was Marie Curie born?", "What did Marie Curie discover?"


def teach(application: Application, name: str) -> tuple[dict[str, int], list[int]]:
    """Two judges on one question, and one of them on another."""
    ids = sentences(application, name, "curie")
    events = []
    for question, who, supports in ((FIRST, "ada", BORN), (FIRST, "grace", BORN), (SECOND, "ada", DISCOVERY)):
        query_id = add_episode(application, name, question, list(ids.values()))
        receipt = judge(application, name, query_id, [ids[supports]], judge=who, wait=True)
        events.append(receipt.event.id)
    return ids, events


def list_states(preview: RevocationPreview) -> dict[tuple[int, str], tuple[float, float]]:
    return {
        (one.sentence_id, one.channel): (one.without_perplexity, one.without_likeness) for one in preview.states
    }


def test_the_course_tells_every_verdict_and_how_sure_the_memories_became(
    application: Application, curie: str
) -> None:
    scope = application.auth.access.scope(curie)
    empty = why_of(application).learned.summarise_learning(scope, None, 10)
    assert (empty.verdicts, empty.states, empty.perplexity, list(empty.memories)) == (0, 0, None, [])
    ids, events = teach(application, curie)
    learned = why_of(application).learned.summarise_learning(scope, None, 10)
    standing = why_of(application).explain.memories(scope, list(ids.values()))
    assert learned.verdicts == len(events)
    assert [moment.verdicts for moment in learned.course] == sorted(moment.verdicts for moment in learned.course)
    states = [standing[sentence]["task"].perplexity for sentence in ids.values()]
    assert learned.states == len(states)
    assert learned.perplexity == pytest.approx(sum(states) / len(states))
    assert {one.sentence_id: one.perplexity for one in learned.memories} == {
        sentence: standing[sentence]["task"].perplexity for sentence in ids.values()
    }
    assert {one.event_id for one in learned.memories} == {events[-1]}


def test_a_moment_before_leaves_out_what_came_after(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    before = datetime.now(UTC) - timedelta(seconds=1)
    teach(application, curie)
    assert why_of(application).learned.summarise_learning(scope, before, 10).verdicts == 0
    after = datetime.now(UTC) + timedelta(seconds=1)
    assert why_of(application).learned.summarise_learning(scope, after, 10).verdicts == 3


def test_the_course_is_of_what_still_counts(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    _, events = teach(application, curie)
    application.learning.revocation.revoke(scope, events[2])
    learned = why_of(application).learned.summarise_learning(scope, None, 10)
    assert learned.verdicts == 2
    assert {one.event_id for one in learned.memories} == {events[1]}


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_preview_is_what_the_revocation_leaves(application: Application, curie: str, which: int) -> None:
    scope = application.auth.access.scope(curie)
    ids, events = teach(application, curie)
    preview = why_of(application).learned.preview_revocation(scope, events[which])
    assert (preview.status, preview.cut) == ("applied", False)
    question = SECOND if which == 2 else FIRST
    assert {one.sentence_id for one in preview.states} == set(ids.values())
    towards = why_of(application).explain.direction(scope, question)
    standing = why_of(application).explain.memories(scope, list(ids.values()))
    for one in preview.states:
        if one.channel == "task":
            memory = standing[one.sentence_id]["task"]
            assert one.perplexity == memory.perplexity
            assert one.likeness == pytest.approx(float(memory.vector @ towards), abs=1e-6)
    revoke: RevocationService = application.learning.revocation
    revoke.revoke(scope, events[which])
    left = why_of(application).explain.memories(scope, list(ids.values()))
    for (sentence, channel), (perplexity, likeness) in list_states(preview).items():
        if channel == "task":
            memory = left[sentence]["task"]
            assert perplexity == memory.perplexity
            assert likeness == pytest.approx(float(memory.vector @ towards), abs=1e-6)
        else:
            supports = {one.question: one for one in why_of(application).explain.sentence(scope, sentence).supports}
            known = supports.get(question)
            assert (perplexity, likeness) == ((1.0, 0.0) if known is None else (known.perplexity, known.support))


def test_preview_of_a_revoked_verdict_is_empty(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    _, events = teach(application, curie)
    application.learning.revocation.revoke(scope, events[0])
    preview = why_of(application).learned.preview_revocation(scope, events[0])
    assert (preview.status, list(preview.states), list(preview.models)) == ("revoked", [], [])


def test_no_verdict_no_preview(application: Application, curie: str) -> None:
    with pytest.raises(NotFoundError, match="no verdict"):
        why_of(application).learned.preview_revocation(application.auth.access.scope(curie), 2**40)

"""Questions in sessions: well-formed sub-questions, nothing lost, and an end that is said."""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from engram.composition.container import Application
from engram.core.budget import Budget
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest
from engram.wings.sessions.services.session_views import SessionView
from engram_evaluation.dataset import Dataset
from engram_evaluation.dataset_files import DatasetError
from engram_evaluation.harness import open_harness
from engram_evaluation.session_questions import (
    FOLDER,
    HALVES,
    PARTS,
    CheckedQuestion,
    CorpusName,
    QuestionOutcome,
    as_json,
    check,
    corpora,
    load_questions,
    summaries,
)
from tests.evaluation.conftest import IS_FULL
from tests.support.command import Cli

SETS = Path(__file__).parents[2] / "evaluation_sets"
COLLECTIONS = {"sample": "session-check"}
ASKED_CORPORA: tuple[CorpusName, ...] = get_args(CorpusName) if IS_FULL else ("sample",)
"""The smallest by default: to embed the passages of the others takes minutes."""
EACH_SAMPLE_QUESTION = 1 if IS_FULL else 9
ASKED_HALVES = HALVES if IS_FULL else HALVES[:1]
QUESTION_WORDS = {"who", "whom", "whose", "what", "which", "when", "where", "why", "how"}
AUXILIARIES = {"is", "are", "was", "were", "do", "does", "did", "has", "have", "had"}
PREPOSITIONS = {"in", "on", "at", "by", "for", "from", "with", "to", "of", "near", "as", "into"}
UNFINISHED = {"the", "a", "an", "that", "which", "who", "whose", "and", "or"}


def faults(query: str, question: str, values: Sequence[str], names: Sequence[str]) -> list[str]:
    """What is wrong with a sub-question, told by its words alone and by none of the rules under test."""
    found = []
    said = query.split()
    first, second = said[0].lower(), said[1].lower() if len(said) > 1 else ""
    known = set(re.findall(r"\w+", " ".join([question, *values]).lower()))
    if not any(name in query for name in (*values, *names)):
        found.append("no name")
    if set(re.findall(r"\w+", query.lower())) - known:
        found.append("words from nowhere")
    if re.search(r"\?|⟨|⟦| ,|  ", query):
        found.append("a mark or a space is left")
    if said[-1].lower() in UNFINISHED:
        found.append("no end")
    if any(one == other for one, other in itertools.pairwise(said)):
        found.append("a word twice")
    if re.search(rf"\b(?:that|which|whose) (?:{'|'.join(map(re.escape, (*values, *names)))})(?:$|,)", query):
        found.append("a relative clause without a verb")
    is_description = first in {"the", "a", "an"} or re.match(r"\S+(?: \S+)*['’]s? ", query) or second == "of"
    is_question = first in QUESTION_WORDS | AUXILIARIES or (first in PREPOSITIONS and second in QUESTION_WORDS)
    if not (is_description or is_question):
        found.append("neither a description nor a question")
    return found


@pytest.fixture(scope="module")
def outcomes(application: Application, sample_dataset: Dataset) -> list[QuestionOutcome]:
    questions = load_questions()
    datasets = corpora(questions, replace(sample_dataset, name="session-check"), SETS)
    return [
        outcome
        for name, dataset in datasets.items()
        if name in ASKED_CORPORA
        for outcome in check(
            open_harness(application, dataset, lambda *_: None),
            [one for one in questions if one.corpus == name and one.half in ASKED_HALVES],
            lambda: None,
        )
    ]


@pytest.fixture(scope="module")
def sessions(
    application: Application, outcomes: list[QuestionOutcome], sample_dataset: Dataset
) -> list[SessionView]:
    """Sessions on the checked questions and on the sample's own."""
    own = [one.text for one in sample_dataset.questions[::EACH_SAMPLE_QUESTION]]
    shown = _run_sessions(application, own, "evaluate-session-check")
    for name in ASKED_CORPORA:
        texts = [one.question.text for one in outcomes if one.question.corpus == name]
        shown += _run_sessions(application, texts, f"evaluate-{COLLECTIONS.get(name, name)}")
    return shown


def _run_sessions(application: Application, texts: Sequence[str], collection: str) -> list[SessionView]:
    scope, found = application.auth.access.scope(collection), []
    asked = SessionRequest(top_k=5, arm={"memory": "off", "profile": "default"})
    budget = Budget(rounds=4, llm_calls=0, tokens=0, seconds=600.0, passages=100)
    for text in texts:
        session = sessions_of(application).sessions.start(
            scope, NewSession(question=text, planner="pool", request=asked, budget=budget)
        )
        found.append(sessions_of(application).sessions.wait(scope, session))
    return found


def test_every_sub_question_is_well_formed(application: Application, sessions: list[SessionView]) -> None:
    asked = 0
    for session in sessions:
        question = session.stored.question
        names = application.models.language.analyse_question(question).entities
        values = [one["value"] for one in session.stored.plan_state["bindings"]]
        for one in session.rounds[1:]:
            for query in one.said["queries"]:
                asked += 1
                assert faults(query, question, values, names) == [], (question, query)
    assert len(sessions) == (174 if IS_FULL else 21)
    assert asked > 0


def test_the_check_of_words_finds_what_used_to_be_asked() -> None:
    for query, question in (
        ("hired the discoverer of Pluto", "Who founded the observatory that hired the discoverer of Pluto?"),
        ("Kustomize read messages Kafka", "How do workers read messages from Kafka?"),
        ("ENGRAM_WORKING which is larger", "Which is larger, ENGRAM_WORKING or Pluto?"),
        ("who led the observatory that Pluto", "Who led the observatory that hired Pluto?"),
    ):
        assert faults(query, question, [], ["Pluto", "Kafka", "ENGRAM_WORKING"]), query


def test_sessions_lose_nothing_and_say_how_they_end(outcomes: list[QuestionOutcome]) -> None:
    assert len(load_questions()) == 80
    assert len(outcomes) == 10 * len(ASKED_HALVES) * len(ASKED_CORPORA)
    whole = next(one for one in summaries(outcomes) if one.name == "all")
    assert (whole.losses, whole.right + whole.wrong) == (0, len(outcomes))
    assert {one.stop for one in outcomes} <= {"sufficiency", "found", "not_found"}
    assert ("not_found", True) in {(one.stop, one.is_right) for one in outcomes}
    for kafka in (one for one in outcomes if "Kafka" in one.question.text):
        assert (kafka.stop, kafka.is_right) == ("not_found", True)


def test_the_best_passages_are_the_first_querys_unless_another_tells(sessions: list[SessionView]) -> None:
    for session in sessions:
        first = [passage for passage, _ in session.rounds[0].said["shown"][0]]
        telling = {passage for one in session.rounds for passage in one.said["telling"]}
        assert len(set(first) - set(session.stored.ranked[:5])) <= len(telling - set(first))


def test_each_corpus_has_ten_questions_to_develop_by_and_ten_that_are_kept_back() -> None:
    counted = Counter((one.corpus, one.half) for one in load_questions())
    assert counted == {(corpus, half): 10 for corpora in PARTS.values() for corpus in corpora for half in HALVES}
    unanswerable = Counter((one.corpus, one.half) for one in load_questions() if not one.evidence)
    assert all(unanswerable[corpus, half] == 5 for corpus in PARTS["second forty"] for half in HALVES)


def test_ends_are_counted_by_half_corpus_and_kind() -> None:
    one, other = load_questions()[:2]
    found = QuestionOutcome(
        replace(one, right_stop="found"), query=1, session=2, read=len(one.evidence), stop="sufficiency", queries=()
    )
    lost = QuestionOutcome(replace(other, right_stop="found"), query=2, session=1, read=0, stop="found", queries=())
    counted = {each.name: each for each in summaries([found, lost])}
    assert (counted["all"].gains, counted["all"].losses, counted["all"].right, counted["all"].wrong) == (1, 1, 1, 1)
    assert counted["first forty, develop"] == replace(counted["develop"], name="first forty, develop")
    assert not {"kept back", *(name for name in counted if name.startswith("second"))} & set(counted)
    assert [each["right"] for each in as_json([found, lost])["questions"]] == [True, False]
    absent = CheckedQuestion("x", "sample", "develop", "unanswerable", "?", (), "not_found")
    assert QuestionOutcome(absent, 0, 0, 0, "not_found", ()).is_right
    assert not QuestionOutcome(absent, 0, 0, 0, "sufficiency", ()).is_right


def test_an_unknown_half_is_refused(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert "develop, kept-back or both" in cli.fails("check-sessions", "--half", "middle")
    folder = tmp_path_factory.mktemp("questions")
    line = (FOLDER / "questions.jsonl").read_text(encoding="utf-8").splitlines()[0]
    (folder / "questions.jsonl").write_text(line.replace('"develop"', '"middle"') + "\n", encoding="utf-8")
    with pytest.raises(DatasetError, match="middle"):
        load_questions(folder)

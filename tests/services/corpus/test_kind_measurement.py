"""The kind of a collection's corpus: measured by titles and questions, set by hand, and what follows from it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application
from engram.core.ranking import sufficiency
from engram.core.ranking.corpus_kind import LEAST_QUESTIONS
from engram.core.ranking.passage_scores import PASSAGE_FEATURES
from engram.core.ranking.profiles import ProfileName
from engram.services.corpus.graph_builder import GraphBuilder
from engram.services.encoders.encoder import Encoder
from engram.services.question.query import Query
from engram.storage.corpus import collections
from tests.support import state, undo
from tests.support.encoder import CountingEncoder
from tests.support.jobs import runner
from tests.support.strict_client import TestClient

Ingest = Callable[..., Mapping[str, Any]]
ARTICLES = [
    {"id": "titan", "title": "Titan (moon)", "text": "Titan is a moon of Saturn. Christiaan Huygens found it."},
    {"id": "huygens", "title": "Christiaan Huygens", "text": "Christiaan Huygens was born in The Hague."},
]
PAGES = [
    {"id": "pay", "title": "How to pay an invoice", "text": "Open the invoice and press Pay."},
    {"id": "refund", "title": "Refunds", "text": "You get your money back within two weeks."},
    {"id": "note", "text": "The till is closed on Mondays."},
]


NAMING_QUESTIONS = [f"What did Christiaan Huygens do in {year}?" for year in range(1650, 1650 + LEAST_QUESTIONS)]
UNNAMING = [f"Which is the best of all {number} ways to pay?" for number in range(LEAST_QUESTIONS)]


def kind_of(http: TestClient, collection: str) -> tuple[str, float | None, str | None]:
    shown = http.get(f"/collections/{collection}").json()
    return shown["corpus_kind"], shown["title_share"], shown["fixed_kind"]


def test_titles_decide_after_each_ingest(ingest: Ingest, http: TestClient, collection: str) -> None:
    ingest(*ARTICLES)
    assert kind_of(http, collection) == ("encyclopedic", 1.0, None)
    ingest(*PAGES)
    assert kind_of(http, collection) == ("general", 0.4000000059604645, None)  # stored in single precision


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Wartung", "Die Wartung des Geräts ist einmal im Jahr nötig. Sie dauert etwa eine Stunde."),
        ("保守", "保守 は年に一度必要です。作業は一時間ほどかかります。"),
    ],
)
def test_titles_tell_nothing_where_capitals_tell_no_name(
    ingest: Ingest, http: TestClient, collection: str, title: str, text: str
) -> None:
    ingest({"id": "heading", "title": title, "text": text})
    assert kind_of(http, collection) == ("general", 0.0, None)


def test_a_setting_goes_before_the_titles(ingest: Ingest, http: TestClient, collection: str) -> None:
    ingest(*ARTICLES)
    assert http.patch(f"/collections/{collection}", json={"corpus_kind": "general"}).status_code == 200
    assert kind_of(http, collection) == ("general", 1.0, "general")
    http.patch(f"/collections/{collection}", json={"serving": "live"})
    assert kind_of(http, collection)[0] == "general"
    assert http.patch(f"/collections/{collection}", json={"corpus_kind": "other"}).status_code == 422
    http.patch(f"/collections/{collection}", json={"corpus_kind": None})
    assert kind_of(http, collection) == ("encyclopedic", 1.0, None)


def test_each_kind_is_ranked_by_its_own_weights(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*ARTICLES)
    priors = application.models.priors
    for kind, prior in (("encyclopedic", priors.encyclopedic), ("general", priors.general)):
        http.patch(f"/collections/{collection}", json={"corpus_kind": kind})
        query = Query(text="Who found Titan?", scope=application.auth.access.scope(collection))
        ranking = application.retrieval.retrieve.find(application.retrieval.retrieve.plan(query)).ranking
        assert (ranking.weights == prior.prior.mean).all()
    assert priors.encyclopedic.name != priors.general.name


def test_titles_and_sentences_are_compared_in_general_corpora_only(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*ARTICLES, *PAGES)
    application.corpus.names.run()
    columns = [PASSAGE_FEATURES.index(name) for name in ("similarity", "title_similarity", "best_sentence")]
    compared = {}
    for kind in ("encyclopedic", "general"):
        http.patch(f"/collections/{collection}", json={"corpus_kind": kind})
        query = Query(text="How do I get my money back?", scope=application.auth.access.scope(collection))
        ranking = application.retrieval.retrieve.find(application.retrieval.retrieve.plan(query)).ranking
        compared[kind] = ranking.features[:, columns]
    assert not compared["encyclopedic"][:, 1:].any()
    similarity, title, sentence = compared["general"].T
    assert (title >= similarity).all()
    assert (title > similarity).any()
    assert sentence.all()


def test_features_of_english_patterns_are_absent_in_other_languages(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*ARTICLES)
    http.patch(f"/collections/{collection}", json={"corpus_kind": "encyclopedic"})
    found = {}
    for language, text in (
        ("en", "Where was the astronomer who found the moon Titan born?"),
        ("de", "Wo wurde der Astronom geboren, der den Mond Titan entdeckt hat?"),
    ):
        query = Query(text=text, scope=application.auth.access.scope(collection))
        retrieved = application.retrieval.retrieve.find(application.retrieval.retrieve.plan(query))
        assert retrieved.plan.language == language
        assert retrieved.ranking.sufficiency is not None
        found[language] = retrieved.ranking.sufficiency.features
    patterned = [*sufficiency.PATTERNED]
    assert (found["en"][patterned] == found["en"][patterned].round()).all()
    others = found["de"].copy()
    others[patterned] = 0.0
    wanted = application.models.priors.encyclopedic.sufficiency_expected @ others
    np.testing.assert_allclose(found["de"][patterned], wanted)
    assert (wanted > 0).all()


def test_verdicts_teach_the_weights_of_their_kind_and_keep_it(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*ARTICLES)
    judge(application, collection)
    assert state.load_weights(application, collection, model="sufficiency") is not None
    ingest(*PAGES)
    application.corpus.kinds.measure(state.collection_id(application, collection))
    ask(application, collection, UNNAMING)
    application.corpus.kinds.run()

    assert kind_of(http, collection)[:2] == ("encyclopedic", 1.0)
    undo.assert_verified(application, collection)

    http.patch(f"/collections/{collection}", json={"corpus_kind": "general"})
    judge(application, collection)
    undo.assert_verified(application, collection)


def test_questions_decide_once_enough_were_asked(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*ARTICLES)
    ask(application, collection, UNNAMING[1:])
    application.corpus.kinds.run()
    assert read_kind(http, collection) == ("encyclopedic", "titles", None, 0)
    ask(application, collection, UNNAMING[:1])
    application.corpus.kinds.run()
    assert read_kind(http, collection) == ("general", "questions", 0.0, LEAST_QUESTIONS)
    assert http.get(f"/collections/{collection}").json()["title_share"] == 1.0


def test_forgetting_what_was_learned_lets_titles_decide_again(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*ARTICLES)
    ask(application, collection, UNNAMING)
    application.corpus.kinds.run()
    assert read_kind(http, collection)[1] == "questions"
    application.revocation.learning_reset.reset(application.auth.access.scope(collection))
    assert read_kind(http, collection) == ("encyclopedic", "titles", None, 0)


def test_questions_that_name_titles_make_an_encyclopedia(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*PAGES, ARTICLES[1])
    assert read_kind(http, collection)[:2] == ("general", "titles")
    ask(application, collection, NAMING_QUESTIONS)
    application.corpus.kinds.run()
    assert read_kind(http, collection) == ("encyclopedic", "questions", 1.0, LEAST_QUESTIONS)


@pytest.mark.wing("published")
def test_a_question_counts_once_and_only_where_features_ranked(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*ARTICLES)
    ask(application, collection, UNNAMING[:1] * LEAST_QUESTIONS)
    ask(application, collection, UNNAMING, profile="paper")
    application.corpus.kinds.run()
    assert read_kind(http, collection) == ("encyclopedic", "titles", None, 0)


def test_questions_are_looked_at_again_when_there_are_twice_as_many(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*ARTICLES)
    ask(application, collection, NAMING_QUESTIONS)
    application.corpus.kinds.run()
    ask(application, collection, UNNAMING[1:])
    application.corpus.kinds.run()
    assert read_kind(http, collection)[2:] == (1.0, LEAST_QUESTIONS)
    ask(application, collection, UNNAMING[:1])
    application.corpus.kinds.run()
    assert read_kind(http, collection)[2:] == (0.5, 2 * LEAST_QUESTIONS)


def test_a_first_ingest_is_measured_before_its_first_passage_is_stored(
    http: TestClient, application: Application, collection: str
) -> None:
    """The first page alone is general, and a verdict on it would keep that for good."""
    seen: list[tuple[str, float | None, str | None]] = []

    def judge_first_page(_: Sequence[str]) -> None:
        if not seen and state.counts(application, collection)[0]:
            seen.append(kind_of(http, collection))
            answer = application.answers.question.serve(
                Query(text="Pay", scope=application.auth.access.scope(collection))
            )
            sentence = min(state.sentences(application, collection, "pay").values())
            state.judge(application, collection, answer.query_id, [sentence], wait=True)

    state.stage_passages(application, collection, PAGES[0], *ARTICLES)
    encoder = CountingEncoder(application.models.embedder, judge_first_page)
    index = GraphBuilder(
        application.database,
        Encoder(encoder),
        application.models.language,
        application.corpus.kinds,
        batch_size=1,
        replay_sentences=application.corpus.replay_sentences,
        observers=application.hooks.passage_observers,
    )
    assert runner(application, ingest=index).run_ready() == 1

    assert state.counts(application, collection)[0] == 3
    two_of_three = pytest.approx(2 / 3)
    assert seen == [("encyclopedic", two_of_three, None)]
    assert kind_of(http, collection) == ("encyclopedic", two_of_three, None)


def test_titles_that_nobody_looked_at_are_looked_at_without_an_ingest(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*ARTICLES)
    with application.database.write() as writer:
        writer.execute("UPDATE collection SET title_share = NULL WHERE name = %(name)s", {"name": collection})
    assert read_kind(http, collection) == ("general", "default", None, 0)
    application.corpus.kinds.run()
    assert read_kind(http, collection) == ("encyclopedic", "titles", None, 0)


def test_a_kind_stays_while_verdicts_are_being_applied(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*ARTICLES)
    ask(application, collection, UNNAMING)
    with application.database.write() as writer:
        collections.lock_learning(writer, state.collection_id(application, collection), exclusive=False)
        application.corpus.kinds.run()
        assert read_kind(http, collection)[1] == "titles"
    application.corpus.kinds.run()
    assert read_kind(http, collection)[1] == "questions"


def read_kind(http: TestClient, collection: str) -> tuple[str, str, float | None, int]:
    shown = http.get(f"/collections/{collection}").json()
    return shown["corpus_kind"], shown["kind_source"], shown["question_share"], shown["question_count"]


def ask(
    application: Application, collection: str, questions: Iterable[str], profile: ProfileName = "default"
) -> None:
    query = Query(text="", scope=application.auth.access.scope(collection), profile=profile)
    for question in questions:
        application.answers.question.answer(replace(query, text=question))


def judge(application: Application, collection: str) -> None:
    query = Query(text="Where was the discoverer of Titan born?", scope=application.auth.access.scope(collection))
    answer = application.answers.question.serve(query)
    sentence = min(state.sentences(application, collection, "huygens").values())
    state.judge(application, collection, answer.query_id, [sentence], wait=True)

"""Widening questions on a real corpus: feedback terms as words, rounds of refinement, and no trace left behind."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from engram.composition.container import Application
from engram.context.errors import LlmError, LlmNotConfiguredError
from engram.core.learning.logged_verdict import Expansion
from engram.providers.language import terms
from engram.providers.llm import Llm
from engram.services.question.caches import VisibleLanguages
from engram.storage.corpus import collections, lexical_index
from engram.storage.question.query_focus import GraphLimits
from engram.wings.published.core import expansion
from engram.wings.published.core.expansion import Method
from engram.wings.published.parts import published_of
from engram.wings.published.services.query_expansion import KEY_TERMS, ExpansionService
from tests.conftest import CURIE, Ingest, Scoped
from tests.support.openai_server import Handler, OpenAiServer, Reply
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
CHAIN = "Into which sea flows the river of Marie Curie's birthplace?"
LIMITS = GraphLimits(hub_limit=100, candidate_limit=100)


@pytest.fixture
def plain(application: Application) -> ExpansionService:
    """The service without an endpoint."""
    return ExpansionService(
        application.database, VisibleLanguages(application.database), application.models.encoder, LIMITS, None
    )


class ExpansionServices:
    """Makes services whose LLM is a handler; ``held`` counts connections held during each call."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._open = ExitStack()
        self.held: list[int] = []
        self.server: OpenAiServer

    def __call__(self, handler: Handler) -> ExpansionService:
        database = self._application.database

        def answer_and_record(request: dict[str, Any]) -> str | Reply:
            self.held.append(sum(pool.in_use for pool in database.pools().values()))
            return handler(request)

        self.server = self._open.enter_context(OpenAiServer(answer_and_record))
        llm = self._open.enter_context(
            Llm(base_url=self.server.base_url, api_key=None, model="small", max_attempts=1)
        )
        return ExpansionService(database, VisibleLanguages(database), self._application.models.encoder, LIMITS, llm)

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def widening(application: Application) -> Iterator[ExpansionServices]:
    made = ExpansionServices(application)
    yield made
    made.close()


REPLIES: dict[str, Any] = {
    "passage": "Marie Curie was born in Warsaw.",
    "parts": ["Who was Marie Curie?", "In which town was she born?"],
    "facets": [{"name": "family", "terms": ["parents", "Skłodowska"]}, {"name": "place", "terms": ["Warsaw"]}],
    "wanted": ["Warsaw", "Poland"],
    "unwanted": ["Curie Institute"],
    "terms": ["native town", "origin"],
}


def answer_by_form(request: dict[str, Any]) -> str:
    """Every field that the system message names; a question is the one asked, made longer."""
    system, user = (message["content"] for message in request["messages"][:2])
    asked = re.search(r"<draft>\n(.*)\n</draft>", user) or re.search(r"<question>\n(.*)\n</question>", user)
    fields = REPLIES | {"question": f"{asked[1]} in Poland" if asked else ""}
    return json.dumps({name: value for name, value in fields.items() if f'"{name}"' in system})


def key_terms(units: list[Expansion]) -> list[str]:
    (unit,) = units
    assert unit.method == "prf"
    return unit.text.split(", ")


class TestPseudoRelevanceFeedback:
    def test_the_unit_is_words_of_the_passages_found_first(
        self, plain: ExpansionService, curie: str, scoped: Scoped
    ) -> None:
        words = key_terms(plain.expand(scoped(curie), QUESTION, ["prf"], 1))
        first = CURIE[0]["text"] + CURIE[0]["title"]
        assert all(re.search(rf"\b{word}\b", first) for word in words)
        assert {"Warsaw", "polonium", "discovered", "1867"} <= set(words)  # "discovered", not "discov"
        assert len(set(words)) == len(words) <= KEY_TERMS

    def test_weights_come_from_the_index(
        self, plain: ExpansionService, application: Application, ingest: Ingest, collection: str, scoped: Scoped
    ) -> None:
        """Of two words that a passage has once each, the one that no other passage has stands first."""
        ingest(
            {"id": "a", "text": "Owls: zebu aardvark."},
            *({"id": f"b{n}", "text": "An aardvark digs."} for n in range(9)),
        )
        assert key_terms(plain.expand(scoped(collection), "owls", ["prf"], 1)) == ["Owls", "zebu", "aardvark"]
        with application.database.read() as reader:
            target = collections.find(reader, collection)
            total, containing = lexical_index.passage_counts(reader, target, ["zebu", "aardvark", "owl", "gnu"])
        assert (total, containing) == (10, {"zebu": 1, "aardvark": 10, "owl": 1})
        weights = expansion.term_weights([Counter(terms("Owls: zebu aardvark.", "en"))], containing, total)
        assert weights["zebu"] == weights["owl"] > weights["aardvark"]

    def test_words_and_meaning_both_find_passages(
        self, plain: ExpansionService, ingest: Ingest, collection: str, scoped: Scoped
    ) -> None:
        """One passage shares a rare word with the question, the other only its meaning."""
        ingest(
            {"id": "word", "text": "The zyzzyva is a weevil."},
            {"id": "meaning", "text": "Physicians treat patients with medicine in hospitals."},
            *({"id": f"other{n}", "text": f"Stone number {n} lies on the road."} for n in range(20)),
        )
        words = key_terms(
            plain.expand(scoped(collection), "Does a zyzzyva need a doctor when it is ill?", ["prf"], 2)
        )
        assert "weevil" in words
        assert "Physicians" in words

    def test_more_passages_give_other_terms(self, plain: ExpansionService, curie: str, scoped: Scoped) -> None:
        one = set(key_terms(plain.expand(scoped(curie), QUESTION, ["prf"], 1)))
        all_of_them = set(key_terms(plain.expand(scoped(curie), QUESTION, ["prf"], 5)))
        assert one != all_of_them

    def test_question_terms_alone_give_no_unit(
        self, plain: ExpansionService, ingest: Ingest, collection: str, scoped: Scoped
    ) -> None:
        ingest({"id": "echo", "text": "Marie Curie, born."})
        assert plain.expand(scoped(collection), QUESTION, ["prf"]) == []
        assert key_terms(plain.expand(scoped(collection), "Who was Marie?", ["prf"])) == ["born", "Curie", "Marie"]

    def test_an_empty_collection_gives_none(
        self, plain: ExpansionService, application: Application, collection: str, scoped: Scoped
    ) -> None:
        application.corpus.ingest.receive(application.auth.access.prepare_opening(collection)).finish()
        assert plain.expand(scoped(collection), QUESTION, ["prf"]) == []

    def test_a_question_without_terms_goes_by_its_meaning(
        self, plain: ExpansionService, curie: str, scoped: Scoped
    ) -> None:
        assert key_terms(plain.expand(scoped(curie), "Who was it?!", ["prf"]))


class TestModelExpansion:
    def test_every_method_in_the_order_asked_for(
        self, widening: ExpansionServices, curie: str, scoped: Scoped
    ) -> None:
        methods: list[Method] = [
            "rewriting",
            "contrastive",
            "facets",
            "decomposition",
            "hyde",
            "prf",
            "specification",
            "synonyms",
            "step-back",
            "diver",
        ]
        units = widening(answer_by_form).expand(scoped(curie), QUESTION, methods)
        assert list(dict.fromkeys(unit.method for unit in units)) == methods
        texts = {method: [unit.text for unit in units if unit.method == method] for method in methods}
        assert texts["hyde"] == [REPLIES["passage"]]
        assert texts["decomposition"] == REPLIES["parts"]
        assert texts["facets"] == ["family: parents, Skłodowska", "place: Warsaw"]
        assert texts["contrastive"] == ["Warsaw, Poland"]
        assert texts["synonyms"] == ["native town, origin"]
        assert texts["rewriting"] == texts["specification"] == texts["step-back"] == [f"{QUESTION} in Poland"]
        assert texts["diver"] == [f"{QUESTION} in Poland in Poland"]
        assert len(texts["prf"]) == 1
        assert set(widening.held) == {0}  # no connection is held while the model thinks

    def test_diver_retrieves_with_what_it_refined(
        self, widening: ExpansionServices, curie: str, scoped: Scoped
    ) -> None:
        """The first round sees what the question finds, the second what the first round's question finds."""
        drafts = iter(["What is the capital of Japan?", "On which bay lies Tokyo?"])
        service = widening(lambda _: json.dumps({"question": next(drafts)}))
        assert service.expand(scoped(curie), QUESTION, ["diver"], 1) == [
            Expansion("diver", "On which bay lies Tokyo?")
        ]
        first, second = (request.json["messages"][1]["content"] for request in widening.server.requests)
        assert "[1] Marie Curie. Marie Curie was born" in first
        assert "[1] Tokyo. Tokyo is the capital" in second
        assert f"<question>\n{QUESTION}\n" in first
        assert f"<question>\n{QUESTION}\n" in second
        assert "<draft>\nWhat is the capital of Japan?\n" in second

    def test_diver_shows_as_many_passages_as_asked_for(
        self, widening: ExpansionServices, curie: str, scoped: Scoped
    ) -> None:
        widening(answer_by_form).expand(scoped(curie), CHAIN, ["diver"], 3)
        for request in widening.server.requests:
            shown = re.findall(r"^\[\d+\]", request.json["messages"][1]["content"], re.MULTILINE)
            assert shown == ["[1]", "[2]", "[3]"]

    def test_diver_stops_where_nothing_improves(
        self, widening: ExpansionServices, curie: str, scoped: Scoped
    ) -> None:
        service = widening(lambda _: json.dumps({"question": QUESTION}))
        assert service.expand(scoped(curie), QUESTION, ["diver"]) == []
        assert len(widening.server.requests) == 1

    def test_diver_has_nothing_to_go_by_in_an_empty_collection(
        self, widening: ExpansionServices, application: Application, collection: str, scoped: Scoped
    ) -> None:
        application.corpus.ingest.receive(application.auth.access.prepare_opening(collection)).finish()
        assert widening(answer_by_form).expand(scoped(collection), QUESTION, ["diver", "prf"]) == []
        assert widening.server.requests == []
        (unit,) = widening(answer_by_form).expand(scoped(collection), QUESTION, ["hyde"])  # needs no passage
        assert unit.text == REPLIES["passage"]

    @pytest.mark.parametrize("said", [QUESTION, f"  {QUESTION.upper()}\n"])
    def test_rewriting_equal_to_the_question_is_no_unit(
        self, said: str, widening: ExpansionServices, curie: str, scoped: Scoped
    ) -> None:
        service = widening(lambda _: json.dumps({"question": said}))
        assert service.expand(scoped(curie), QUESTION, ["rewriting"]) == []

    def test_a_failing_model_fails_the_request(
        self, widening: ExpansionServices, curie: str, scoped: Scoped
    ) -> None:
        service = widening(lambda _: Reply("overloaded", status=500))
        with pytest.raises(LlmError, match="overloaded"):
            service.expand(scoped(curie), QUESTION, ["prf", "facets"])


@pytest.mark.parametrize(
    "method",
    [
        "hyde",
        "diver",
        "decomposition",
        "facets",
        "contrastive",
        "specification",
        "rewriting",
        "synonyms",
        "step-back",
    ],
)
def test_without_an_endpoint_the_method_is_named(
    method: Method, plain: ExpansionService, curie: str, scoped: Scoped
) -> None:
    with pytest.raises(LlmNotConfiguredError, match=f"'{method}' needs ENGRAM_LLM_BASE_URL"):
        plain.expand(scoped(curie), QUESTION, ["prf", method])


def test_all_methods_that_need_an_endpoint_are_named(plain: ExpansionService, curie: str, scoped: Scoped) -> None:
    with pytest.raises(LlmNotConfiguredError, match="with 'hyde', 'diver' needs"):
        plain.expand(scoped(curie), QUESTION, ["hyde", "prf", "diver"])


def test_expansion_service_is_composed_and_leaves_no_episode(
    http: TestClient, application: Application, curie: str, counts: Callable[[], int]
) -> None:
    before = counts()
    answer = http.post("/expand", json={"collection": curie, "query": QUESTION, "methods": ["prf"]}).json()
    assert (answer["collection"], answer["query"]) == (curie, QUESTION)
    assert [Expansion(**unit) for unit in answer["expansions"]] == published_of(application).expand.expand(
        application.auth.access.scope(curie), QUESTION, ["prf"]
    )
    assert counts() == before


@pytest.fixture
def counts(application: Application) -> Callable[[], int]:
    """How many episodes there are."""

    def count() -> int:
        with application.database.read() as reader:
            return int(reader.scalar("SELECT count(*) FROM episode"))

    return count


def test_expansions_are_accepted_in_a_verdict_unchanged(http: TestClient, curie: str) -> None:
    asked = http.post("/query", json={"collection": curie, "query": QUESTION}).json()
    widened = http.post("/expand", json={"collection": curie, "query": QUESTION, "methods": ["prf"]}).json()
    body = {
        "collection": curie,
        "query_id": asked["query_id"],
        "expansions": widened["expansions"],
    }
    sent = http.post("/feedback", json=body, headers={"idempotency-key": f"expansions-{curie}"})
    assert sent.status_code == 202, sent.text
    stored = http.get(f"/feedback/{sent.json()['feedback_id']}", params={"collection": curie}).json()
    assert stored["verdict"]["expansions"] == widened["expansions"]

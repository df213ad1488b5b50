"""The hops of a query: which entities each of them starts from."""

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.core.ranking.profiles import ProfileName
from engram.services.question.query import Query
from engram.services.question.retriever import Retrievers
from engram.services.question.trace import HopTrace
from tests.conftest import Ingest

QUESTION = "Where was Marie Curie born?"


def hops(application: Application, collection: str, text: str, profile: ProfileName) -> list[HopTrace]:
    query = Query(
        text=text,
        scope=application.auth.access.scope(collection),
        profile=profile,
        memory="off",
        stop_rule="none",
        include=frozenset({"trace"}),
    )
    trace = application.answers.question.answer(query).trace
    assert trace is not None
    return trace.hops


def list_starts(rounds: list[HopTrace]) -> list[set[str]]:
    return [set(hop.entities) for hop in rounds]


class TestVisitedEntities:
    def test_by_default_no_hop_starts_from_where_one_started(self, application: Application, curie: str) -> None:
        first, *later = list_starts(hops(application, curie, QUESTION, "default"))

        assert first == {"Marie Curie"}
        assert later
        seen = first
        for entities in later:
            assert entities
            assert not entities & seen
            seen |= entities

    @pytest.mark.wing("published")
    def test_as_published_they_lead_again(self, application: Application, curie: str) -> None:
        first, second, *_ = list_starts(hops(application, curie, QUESTION, "paper"))

        assert first == {"Marie Curie"}
        assert second > first

    def test_the_search_ends_where_nothing_new_is_named(
        self, application: Application, ingest: Ingest, collection: str
    ) -> None:
        ingest({"id": "a", "text": "Ada Lovelace wrote. Ada Lovelace read."})
        query = Query(
            text="What did Ada Lovelace write?", scope=application.auth.access.scope(collection), stop_rule="none"
        )
        answer = application.answers.question.answer(query)

        assert (answer.hops, answer.stop_reason) == (1, "no_entities")


def test_a_profile_whose_wing_is_off_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="'paper': the wing 'published' brings it and is off"):
        Retrievers(absent={"paper": "published"}).find("paper")


@pytest.mark.parametrize(
    ("profile", "leading"),
    [("default", "Rarington"), pytest.param("paper", "Ontaria", marks=pytest.mark.wing("published"))],
)
def test_rare_name_of_a_sentence_leads_by_default(
    application: Application, ingest: Ingest, collection: str, profile: ProfileName, leading: str
) -> None:
    """The names of one sentence share its score; as published, ids decide, here that of the one seen first."""
    ingest(
        *({"id": f"p{n}", "text": f"Ontaria has a lake numbered {n}."} for n in range(20)),
        {"id": "film", "text": "Ada Lovelace lived in Ontaria near Rarington."},
    )
    _, second, *_ = hops(application, collection, "Where did Ada Lovelace live?", profile)

    places = [name for name in second.entities if name in {"Ontaria", "Rarington"}]
    assert len(places) == 2
    assert places[0] == leading
    equal = second.entities["Ontaria"] == second.entities["Rarington"]
    assert equal == (profile == "paper")

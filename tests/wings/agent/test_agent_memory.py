"""An agent's memory: what is believed, what an update leaves, and that it finds what the service's graphs find."""

import json
from collections.abc import Sequence
from datetime import date

import pytest

from engram.composition.container import Application
from engram.providers.language import Language, load_language
from engram.services.auth.scope import Scope
from engram.wings.agent.core.agent_turns import AgentTurn
from engram.wings.agent.services.agent_memory import AgentMemory, FactSentence
from engram.wings.agent.services.agent_play import Change, begin, carry_out, find_answer_sources, observe
from engram.wings.agent.services.grounding import StreamDocument, ground_text
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_search import FactPattern
from engram.wings.facts.services.fact_service import StatedFact
from tests.support.doubts import list_doubted_facts
from tests.support.simple_facts import extract_triples

GREEN = (
    "Green (album)",
    ["Green (album) was performed by Steve Hillage.", "Green (album) was released in 1978."],
)
GIRAUDY = (
    "Miquette Giraudy",
    ["Miquette Giraudy was born in Nice.", "She married Steve Hillage."],
)
QUESTION = "Who is the spouse of the performer of Green?"


def day(year: int) -> int:
    return date(year, 1, 1).toordinal()


def triple(subject: str, predicate: str, object_: str, start: int | None = None, end: int | None = None) -> Triple:
    first, last = (None if year is None else day(year) for year in (start, end))
    return Triple(subject, predicate, object_, 0, "entity", first, last, 1.0)


def build_memory(*said: tuple[Triple, str], memory: AgentMemory | None = None) -> AgentMemory:
    """A memory that sources said these to, one after the other."""
    held = memory or AgentMemory()
    for turn, (one, document) in enumerate(said, start=1):
        held, _ = held.insert([(one, FactSentence(f"{document}.0", document))], turn)
    return held


def document(title: str, sentences: Sequence[str], key: str = "0") -> StreamDocument:
    return StreamDocument(key, title, [(f"{key}.{at}", text) for at, text in enumerate(sentences)])


@pytest.fixture(scope="module")
def language() -> Language:
    return load_language("rules")


def test_sources_make_a_fact_surer_and_one_that_repeats_itself_does_not() -> None:
    born = triple("Marie Curie", "place of birth", "Warsaw")
    once, twice = build_memory((born, "a")), build_memory((born, "a"), (born, "b"))
    assert once.believed[0].belief == pytest.approx(2 / 3)
    assert twice.believed[0].belief == pytest.approx(3 / 4, abs=1e-3)
    assert build_memory((born, "a"), (born, "a")).believed[0].belief == once.believed[0].belief
    assert twice.facts[0].sources == (1, 2)


def test_an_update_doubts_what_it_contradicts_and_keeps_it() -> None:
    memory = build_memory((triple("Marie Curie", "place of birth", "Paris"), "a"))
    memory, fresh = memory.insert(
        [(triple("Marie Curie", "place of birth", "Warsaw"), FactSentence("b.0", "b"))], 2
    )
    assert memory.conflicts(fresh) == ([0], [])
    assert list_doubted_facts(memory) == []  # two sources disagree: as much speaks for either
    after = memory.contradict([0], 2)
    assert list_doubted_facts(after) == [0]
    assert len(after.facts) == 2
    assert after.search("Where was Marie Curie born?").text.text == (
        "Marie Curie | place of birth: Warsaw [2], Paris (doubted) [1]"
    )
    with pytest.raises(ValueError, match="no fact 7"):
        memory.contradict([7], 3)


def test_multivalued_predicate_has_no_conflicts() -> None:
    memory = build_memory((triple("Marie Curie", "award", "a medal"), "a"))
    memory, fresh = memory.insert([(triple("Marie Curie", "award", "a prize"), FactSentence("b.0", "b"))], 2)
    assert memory.conflicts(fresh) == ([], [])


def test_superseded_fact_ends_on_the_day_and_remains_a_bridge() -> None:
    memory = AgentMemory(functional=frozenset({"mayor"}))
    memory = build_memory((triple("Cologne", "mayor", "Fritz Schramma"), "a"), memory=memory)
    memory, fresh = memory.insert(
        [(triple("Cologne", "mayor", "Jürgen Roters", 2009), FactSentence("b.0", "b"))], 2
    )
    wrong, over = memory.conflicts(fresh)
    assert (wrong, over) == ([], [(0, 1)])
    memory = memory.supersede(over, 2)
    assert memory.believed[0].held_until == day(2009)
    assert memory.believed[0].belief == pytest.approx(2 / 3)
    now = memory.search("Who is mayor of Cologne?")
    assert [memory.facts[place].object for place in now.facts] == ["Jürgen Roters"]
    memory, _ = memory.insert([(triple("Fritz Schramma", "place of birth", "Bonn"), FactSentence("c.0", "c"))], 3)
    assert "Bonn" in memory.search("Where was a mayor of Cologne born?").text.text


def test_stored_memory_is_read_back_unchanged() -> None:
    memory = build_memory(
        (triple("A", "place of birth", "B"), "a"), (triple("A", "place of birth", "C", 1900), "b")
    )
    memory = memory.contradict([0], 3).supersede([(0, 1)], 4)
    loaded = AgentMemory.from_json(json.loads(json.dumps(memory.to_json())))
    assert loaded == memory
    assert loaded.believed == memory.believed


@pytest.mark.parametrize(
    "question",
    [
        QUESTION,
        "Where was Miquette Giraudy born?",
        "when was green released?",
        "What did Steve Hillage do in 1978?",
        "Who lives on the moon?",
    ],
)
def test_memory_finds_the_facts_that_service_graphs_find(
    application: Application, collection: str, language: Language, question: str
) -> None:
    application.corpus.ingest.receive(application.auth.access.prepare_opening(collection)).add([], [])
    scope: Scope = application.auth.access.scope(collection)
    memory = AgentMemory()
    for turn, (title, sentences) in enumerate((GREEN, GIRAUDY), start=1):
        page = document(title, sentences, title)
        said = ground_text(page.text, page, language, extract_triples).facts
        memory, _ = memory.insert(said, turn)
        stated = [StatedFact(one, str(source.key)) for one, source in said]
        facts_of(application).facts.state(scope, stated, source=title, graph_name="one")
    theirs = facts_of(application).fact_search.search(scope, FactPattern(question=question, graph="one", edges=3))
    ours = memory.search(question, edges=3, budget=600)
    assert [memory.line(place) for place in ours.facts] == [
        f"{fact.subject} | {fact.predicate}: {fact.object}" for fact in theirs.facts.values()
    ]
    cited = {str(memory.sources[memory.facts[place].sources[0] - 1].key) for place in ours.facts}
    assert cited == {source.text for source in theirs.citations}


def test_inserted_fact_cites_its_document_sentence(language: Language) -> None:
    page = document(*GIRAUDY)
    verbatim = ground_text(GIRAUDY[1][1], page, language, extract_triples)
    assert {source.key for _, source in verbatim.facts} == {"0.1"}
    assert ("Miquette Giraudy", "spouse", "Steve Hillage") in {
        (one.subject, one.predicate, one.object) for one, _ in verbatim.facts
    }
    reworded = ground_text("Giraudy was born in Nice.", page, language, extract_triples)
    assert [(one.predicate, one.object, source.key) for one, source in reworded.facts] == [
        ("place of birth", "Nice", "0.0")
    ]
    for invented in ("Ada Berg taught in Oslo.", "Miquette Giraudy was born in Paris."):
        told = ground_text(invented, page, language, extract_triples)
        assert (list(told.facts), list(told.unsupported)) == ([], [invented])


def test_a_play_keeps_searches_and_answers(language: Language) -> None:
    pages = [document(*GREEN, key="0"), document(*GIRAUDY, key="1")]
    play = begin(QUESTION, len(pages))

    def insert(text: str, page: StreamDocument) -> object:
        return ground_text(text, page, language, extract_triples)

    def update(text: str, page: StreamDocument, _: AgentMemory) -> Change:
        return Change(ground_text(text, page, language, extract_triples))

    assert play.offered == ("insert", "update", "answer")
    assert observe(play, pages[0]).memory == ""
    for page in pages:
        play = carry_out(play, AgentTurn("insert", page.text), page, insert, update).play  # type: ignore[arg-type]
    assert play.offered == ("search", "answer")
    with pytest.raises(ValueError, match="not offered"):
        carry_out(play, AgentTurn("insert", "x"), None, insert, update)  # type: ignore[arg-type]
    found = carry_out(play, AgentTurn("search", play.question), None, insert, update)  # type: ignore[arg-type]
    assert found.search_result is not None
    assert "spouse: Steve Hillage" in found.search_result.text.text
    seen = observe(found.play, None)
    assert seen.search_result == found.search_result.text.text
    assert seen.document is None
    ended = carry_out(found.play, AgentTurn("answer", "Miquette Giraudy"), None, insert, update)  # type: ignore[arg-type]
    cited = [ended.play.memory.sources[number - 1].key for number in ended.cites]
    assert cited == ["0.0", "1.1"]
    assert find_answer_sources(ended.play.memory, QUESTION, "Somebody else") == []


def test_only_an_answer_is_offered_in_the_last_turn() -> None:
    play = begin("Who?", 3, turns=1)
    assert (play.last, play.offered) == (True, ("answer",))
    with pytest.raises(ValueError, match="0 turns"):
        begin("Who?", 3, turns=0)

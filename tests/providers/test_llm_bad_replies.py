"""Every use of the LLM against nine kinds of replies that models give in practice.

A reply is either understood as it was meant, or refused twice and then an error. A list that was cut off, or a
number that stands in prose, must not be taken for a verdict.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from engram.context.errors import LlmError, LlmRefusalError
from engram.providers.llm import Llm
from engram.providers.llm.replies import MOST_TOKENS
from engram.wings.agent.core.agent_turns import AgentObservation
from engram.wings.agent.llm import agent_model
from engram.wings.facts.llm import extract_entities, extract_relations, maintain_facts
from engram.wings.frontends.llm.restatement import restate
from engram.wings.published.llm import expansion_model
from engram.wings.sessions.llm import reasoning, session_model
from engram_evaluation import reasoning_grades
from tests.support.openai_server import OpenAiServer, Reply

QUESTION = "On which river was Ada born?"
SENTENCES = [(901, "Ada was born in Lisbon."), (17, "Lisbon lies on the Tagus."), (402, "Bees make honey.")]
TEXTS = [text for _, text in SENTENCES]
NOTES = ["Ada was born in Lisbon."]
OBSERVATION = AgentObservation(QUESTION, "", None, "Ada", "Ada was born in Lisbon.", 1, 1, 1, 4)
TURN = "<think>It has the place.</think><memory_insert>Ada was born in Lisbon.</memory_insert>"


@dataclass(frozen=True, slots=True)
class Use:
    """One use of the model.

    Attributes:
        call: makes it.
        reply: a good one.
        numbered: where the reply has numbers of sentences or facts, as a path to the list or number.
        flags: fields that are true or false.
        paper: a reply in the form that the use's paper prescribes.
        understood: whether that one means the same as ``reply``; else it is refused.
    """

    call: Callable[[Llm], Any]
    reply: dict[str, Any]
    numbered: tuple[str | int, ...] | None = None
    flags: tuple[str, ...] = ()
    paper: str = "Thought: the evidence says so. Answer: the Tagus."
    understood: bool = False


def fact(**more: Any) -> dict[str, Any]:
    return {"subject": "Ada", "relation": "born in", "object": "Lisbon", **more}


GRAM_FACT = {"subject": "Ada", "predicate": "born in", "object": "Lisbon"}
ANSWER = {"answer": "the Tagus", "cited": [2, 1], "sufficient": True}
GRADES = dict.fromkeys(("relevance", "sufficiency", "coherence", "factuality"), "good")
OUTCOME = dict.fromkeys(("coherence", "completeness", "consistency"), "fair")

USES = {
    "time": Use(
        lambda llm: llm.extract_time_constraint("Who led it before 1990?"),
        {"time_constraint": "before 1990"},
        paper="NONE",
    ),
    "sufficiency": Use(
        lambda llm: llm.is_sufficient(QUESTION, TEXTS),
        {"sufficient": True},
        flags=("sufficient",),
        paper='{"sufficient": "yes"}',
        understood=True,
    ),
    "judge": Use(
        lambda llm: llm.judge_support(QUESTION, SENTENCES),
        {"supporting": [2, 1]},
        ("supporting",),
        paper='{"support_sids": ["s2", "s1"]}',
        understood=True,
    ),
    "answer": Use(lambda llm: llm.answer(QUESTION, SENTENCES), ANSWER, ("cited",), ("sufficient",)),
    "restate": Use(
        lambda llm: restate(llm, "Where was she born?", [("user", "Who is Ada?")]), {"question": QUESTION}
    ),
    "expand: hyde": Use(
        lambda llm: expansion_model.expand(llm, "hyde", QUESTION), {"passage": "Ada was born by the Tagus."}
    ),
    "expand: decomposition": Use(
        lambda llm: expansion_model.expand(llm, "decomposition", QUESTION),
        {"parts": ["Where was Ada born?", "Which river?"]},
    ),
    "expand: facets": Use(
        lambda llm: expansion_model.expand(llm, "facets", QUESTION),
        {"facets": [{"name": "life", "terms": ["birth"]}]},
    ),
    "expand: contrastive": Use(
        lambda llm: expansion_model.expand(llm, "contrastive", QUESTION),
        {"wanted": ["river"], "unwanted": ["lake"]},
    ),
    "expand: specification": Use(
        lambda llm: expansion_model.expand(llm, "specification", QUESTION), {"question": "Which river?"}
    ),
    "expand: rewriting": Use(
        lambda llm: expansion_model.expand(llm, "rewriting", QUESTION), {"question": "Which river?"}
    ),
    "expand: synonyms": Use(lambda llm: expansion_model.expand(llm, "synonyms", QUESTION), {"terms": ["stream"]}),
    "expand: step-back": Use(
        lambda llm: expansion_model.expand(llm, "step-back", QUESTION), {"question": "Who was Ada?"}
    ),
    "refine question": Use(
        lambda llm: expansion_model.refine_question(llm, QUESTION, "Ada's river", TEXTS),
        {"question": "Which river is Lisbon on?"},
    ),
    "entities": Use(
        lambda llm: extract_entities(llm, None, TEXTS),
        {"entities": ["Ada", "Lisbon"]},
        paper='["Ada", "Lisbon"]',
        understood=True,
    ),
    "relations": Use(
        lambda llm: extract_relations(llm, None, SENTENCES, ["Ada", "Lisbon"]),
        {"facts": [fact(sentence=1)]},
        ("facts", 0, "sentence"),
        paper=json.dumps([GRAM_FACT]),  # it names no sentence, and a fact without a source is none
    ),
    "maintenance": Use(
        lambda llm: maintain_facts(llm, [("Ada", "born in", "Oslo")], "Ada was born in Lisbon."),
        {"remove": [1], "add": [fact()]},
        ("remove",),
        paper=json.dumps({"remove": [GRAM_FACT], "add": [GRAM_FACT]}),  # removes by words, not by number
    ),
    "split": Use(
        lambda llm: session_model.split(llm, QUESTION),
        {"triples": [{"subject": "Ada", "relation": "born on", "object": "?", "question": "Where?"}]},
        paper='{"triples": [["Ada", "born on", "<X>"]]}',
    ),
    "gaps": Use(
        lambda llm: session_model.gaps(llm, QUESTION, ["Ada | born in | ?1"], SENTENCES),
        {"settled": [{"mark": "?1", "value": "Lisbon", "cited": [1]}], "sufficient": False, "query": "river?"},
        ("settled", 0, "cited"),
        ("sufficient",),
    ),
    "keep": Use(
        lambda llm: session_model.keep(llm, QUESTION, "river", NOTES, SENTENCES),
        {"kept": [1, 2], "contradictions": []},
        ("kept",),
        paper="Step 5: Final Decision: relevant",
    ),
    "note": Use(
        lambda llm: session_model.note(llm, QUESTION, NOTES, SENTENCES, "Where?", "Lisbon"),
        {"notes": [{"text": "Ada was born in Lisbon.", "cited": [1], "contradicts": False}]},
        ("notes", 0, "cited"),
        paper="Step 5: Final Decision: relevant",
    ),
    "step": Use(
        lambda llm: session_model.ask_next_step(llm, QUESTION, NOTES, []),
        {"answerable": False, "sub_question": "Which river is Lisbon on?"},
        flags=("answerable",),
        paper="Subquestion: Which river is Lisbon on?",
    ),
    "queries": Use(
        lambda llm: session_model.queries(llm, QUESTION, NOTES),
        {"queries": ["Lisbon river"]},
        paper='["Lisbon river"]',
        understood=True,
    ),
    "consolidate": Use(
        lambda llm: reasoning.consolidate(llm, QUESTION, NOTES, SENTENCES),
        {"conclusion": "It is the Tagus.", "cited": [1, 2]},
        ("cited",),
    ),
    "refine answer": Use(
        lambda llm: reasoning.refine(llm, QUESTION, "Lisbon", SENTENCES),
        {"verdict": "partial", "answer": "the Tagus", "cited": [2]},
        ("cited",),
        paper=json.dumps({"verdict": "PARTIAL", "answer": "the Tagus", "cited": [2]}),
        understood=True,
    ),
    "redirect": Use(lambda llm: reasoning.redirect(llm, QUESTION, NOTES), {"reworded": "Which river?"}),
    "rate": Use(
        lambda llm: reasoning.rate(llm, QUESTION, "the Tagus", [], SENTENCES),
        {"rating": 7},
        paper='{"rating": "7.0/10"}',
        understood=True,
    ),
    "synthesise": Use(
        lambda llm: reasoning.synthesise(llm, QUESTION, ["the Tagus"], SENTENCES),
        ANSWER,
        ("cited",),
        ("sufficient",),
    ),
    "grade step": Use(
        lambda llm: reasoning_grades.grade_step(llm, QUESTION, [], "Where?", SENTENCES, "Lisbon"),
        GRADES,
        paper=json.dumps(dict.fromkeys(GRADES, "Good")),
        understood=True,
    ),
    "grade outcome": Use(
        lambda llm: reasoning_grades.grade_outcome(llm, QUESTION, ["Lisbon"], "the Tagus"),
        OUTCOME,
        paper=json.dumps(dict.fromkeys(OUTCOME, "Fair.")),
        understood=True,
    ),
}


@pytest.fixture(scope="module")
def running() -> Iterator[OpenAiServer]:
    with OpenAiServer() as started:
        yield started


@pytest.fixture
def server(running: OpenAiServer) -> OpenAiServer:
    running.clear()
    return running


@pytest.fixture(scope="module")
def llm(running: OpenAiServer) -> Iterator[Llm]:
    made = Llm(base_url=running.base_url, api_key=None, model="small", timeout_seconds=5.0, max_attempts=1)
    with made as client:
        yield client


each_use = pytest.mark.parametrize("use", USES.values(), ids=USES)


def vary(name: str, values: Sequence[Any]) -> pytest.MarkDecorator:
    """Each value for one use, and the first value for all others: the same code reads their replies."""
    cases = [(use, value) for use in USES for value in (values if use == "judge" else values[:1])]
    return pytest.mark.parametrize(
        ("use", name), [pytest.param(USES[use], value, id=f"{use}-{value!r:.20}") for use, value in cases]
    )


def ask_for_good_reply(use: Use, server: OpenAiServer, llm: Llm) -> Any:
    """Return the result of the good reply."""
    server.queue(json.dumps(use.reply))
    return use.call(llm)


def check_refused(use: Use, server: OpenAiServer, llm: Llm, reply: str | Reply) -> None:
    server.queue(reply, reply)
    with pytest.raises(LlmRefusalError, match="twice replied with something unusable"):
        use.call(llm)
    assert len(server.requests) == 2


def check_understood(use: Use, server: OpenAiServer, llm: Llm, reply: str) -> None:
    expected = ask_for_good_reply(use, server, llm)
    server.queue(reply)
    assert use.call(llm) == expected
    assert len(server.requests) == 2


def change_numbers(use: Use, change: Callable[[int], Any]) -> dict[str, Any]:
    """The good reply with other numbers."""
    reply: dict[str, Any] = json.loads(json.dumps(use.reply))
    *way, last = use.numbered or ()
    place: Any = reply
    for step in way:
        place = place[step]
    numbers = place[last]
    place[last] = [change(number) for number in numbers] if isinstance(numbers, list) else change(numbers)
    return reply


PROSE = [
    "The Tagus, as sentence [2] says.",
    "Sentences [1] and [2] {both} support it: yes.",
    "I would say (1, 2), true, 7/10, good.",
]


@vary("prose", PROSE)
def test_prose_is_refused(use: Use, server: OpenAiServer, llm: Llm, prose: str) -> None:
    check_refused(use, server, llm, prose)


@vary("empty", ["", "  \n", "{}", "[]", "null", "```json\n```"])
def test_an_empty_reply_is_refused(use: Use, server: OpenAiServer, llm: Llm, empty: str) -> None:
    check_refused(use, server, llm, empty)


@pytest.mark.parametrize("name", ["entities", "relations"])
def test_an_empty_list_says_that_a_text_has_none(server: OpenAiServer, llm: Llm, name: str) -> None:
    """A bare list is GRAM's form for names and facts."""
    server.queue("[]")
    assert USES[name].call(llm) == []


@vary("refusal", [Reply(content=None), "I'm sorry, but I can't help with that."])
def test_a_refusal_is_no_reply(use: Use, server: OpenAiServer, llm: Llm, refusal: str | Reply) -> None:
    check_refused(use, server, llm, refusal)


def test_refusal_and_failure_raise_different_errors(server: OpenAiServer, llm: Llm) -> None:
    use = USES["judge"]
    server.queue(Reply("The response was filtered.", status=400), Reply("overloaded", status=503))
    with pytest.raises(LlmRefusalError, match="filtered"):
        use.call(llm)
    with pytest.raises(LlmError, match="overloaded") as raised:
        use.call(llm)
    assert not isinstance(raised.value, LlmRefusalError)


@vary(
    "wrapping",
    [
        "Sure! Here is the JSON you asked for: {}",
        "Here it is:\n\n```json\n{}\n```\n\nI went by sentences [1] and {2}.",
        "{}\n\nLet me know if you need anything else.",
        '{"result": {}}',
        "[{}]",
        "The form is {...}, so:\n{}",
        "{}\n{}",
    ],
)
def test_a_wrapped_reply_is_understood(use: Use, server: OpenAiServer, llm: Llm, wrapping: str) -> None:
    check_understood(use, server, llm, wrapping.replace("{}", json.dumps(use.reply)))


@vary(
    "thinking",
    [
        '<think>\nMaybe {"supporting": [3]}? No, [1].\n</think>\n\n{}',
        'Is it {"sufficient": false}? No.\n</think>{}',
        "<thinking>Hm.</thinking>\n```json\n{}\n```",
        "<think>\n\n</think>\n\n{}",
    ],
)
def test_a_thought_before_the_reply_is_left_out(use: Use, server: OpenAiServer, llm: Llm, thinking: str) -> None:
    check_understood(use, server, llm, thinking.replace("{}", json.dumps(use.reply)))


def test_a_thought_without_an_end_is_refused(server: OpenAiServer, llm: Llm) -> None:
    use = USES["judge"]
    check_refused(use, server, llm, f"<think>\nIt might be {json.dumps(use.reply)}")


def test_a_thought_in_a_part_of_its_own_is_left_out(server: OpenAiServer, llm: Llm) -> None:
    use = USES["judge"]
    expected = ask_for_good_reply(use, server, llm)
    parts = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": json.dumps(use.reply)}]
    completion = {"choices": [{"message": {"role": "assistant", "content": parts}}]}
    server.queue(Reply(body=json.dumps(completion).encode()))
    assert use.call(llm) == expected


@vary("wrong", [0, 99, -1, "s99", "four"])
def test_wrong_ids_are_refused(use: Use, server: OpenAiServer, llm: Llm, wrong: int | str) -> None:
    if use.numbered is None:  # numbers that nobody asked for are left out
        check_understood(use, server, llm, json.dumps({**use.reply, "cited": [wrong], "sids": [wrong]}))
    else:
        check_refused(use, server, llm, json.dumps(change_numbers(use, lambda _: wrong)))


@vary("form", ["{}", "[{}]", "s{}", "#{}", "Sentence {}"])
def test_numbers_and_truth_values_in_quotes_are_understood(
    use: Use, server: OpenAiServer, llm: Llm, form: str
) -> None:
    quoted = json.loads(json.dumps(use.reply))
    if use.numbered is not None:
        quoted = change_numbers(use, lambda number: form.replace("{}", str(number)))
    for flag in use.flags:
        quoted[flag] = "Yes" if use.reply[flag] else "no."
    if "rating" in quoted:
        quoted["rating"] = str(quoted["rating"])
    check_understood(use, server, llm, json.dumps(quoted))


@each_use
def test_the_papers_own_form_is_understood_or_refused(use: Use, server: OpenAiServer, llm: Llm) -> None:
    if use.understood:
        check_understood(use, server, llm, use.paper)
    else:
        check_refused(use, server, llm, use.paper)


@each_use
def test_a_reply_that_is_cut_off_is_refused(use: Use, server: OpenAiServer, llm: Llm) -> None:
    whole = json.dumps(use.reply)
    for length in {*range(1, len(whole), 9), len(whole) - 2, len(whole) - 1}:
        server.queue(*[whole[:length]] * 2)
        with pytest.raises(LlmRefusalError):
            use.call(llm)


COPIES = {
    "restate": {"question": "When was Marie Curie born?"},
    "expand: hyde": {"passage": "the paragraph"},
    "expand: facets": {"facets": [{"name": "the side", "terms": ["a term", "another"]}]},
    "refine question": {"question": "The new question"},
    "gaps": {"settled": [], "sufficient": False, "query": "what to search for next"},
    "note": {"notes": [{"text": "one fact", "cited": [1], "contradicts": False}]},
    "queries": {"queries": ["the first query", "another"]},
    "consolidate": {"conclusion": "one or two sentences", "cited": [1]},
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_of_the_prompts_example_is_refused(server: OpenAiServer, llm: Llm, name: str) -> None:
    """Small models do that; the form is right and nothing in it is about the question."""
    check_refused(USES[name], server, llm, json.dumps(COPIES[name]))


def test_reasoning_may_copy_the_example(server: OpenAiServer, llm: Llm) -> None:
    server.queue(json.dumps({"reasoning": "one or two sentences", "supporting": [1]}))
    assert llm.judge_support(QUESTION, SENTENCES).supporting == (901,)


def test_facts_that_the_text_does_not_name_are_left_out(server: OpenAiServer, llm: Llm) -> None:
    server.queue('{"entities": ["Ada", "Ada Lind", "3 May 1904"]}')
    assert extract_entities(llm, None, TEXTS) == ["Ada"]
    example = {"subject": "Ada Lind", "relation": "born in", "object": "Malmö"}
    server.queue(json.dumps({"remove": [1], "add": [example, fact()]}))
    known = [("Bees", "make", "honey"), ("Ada", "born in", "Oslo")]
    came = maintain_facts(llm, known, "Ada was born in Lisbon.")
    assert came.remove == ()  # the correction does not speak of bees
    assert [(one.subject, one.object) for one in came.add] == [("Ada", "Lisbon")]


@pytest.mark.parametrize(
    ("reply", "is_turn"),
    [
        ("I would keep the sentence about Lisbon.", False),
        ("", False),
        ("I'm sorry, but I can't help with that.", False),
        (f"Here is my turn:\n```xml\n{TURN}\n```", True),
        (f"<think>\nLet me see. It says where.\n</think>\n\n{TURN}", True),
        ("<think>It is known.</think><answer>the Tagus [99]</answer>", None),
        ("<think>It is known.</think><answer>the Tagus [s1]</answer>", None),
        (TURN, True),
        (TURN[:-10], False),
        (f"{TURN}<answer>the Tagus</answer>", False),
    ],
    ids=[
        "prose",
        "empty",
        "refusal",
        "wrapped",
        "thinking",
        "wrong ids",
        "string ids",
        "paper",
        "truncated",
        "two",
    ],
)
def test_turns_of_an_agent(server: OpenAiServer, llm: Llm, reply: str, is_turn: bool | None) -> None:
    server.queue(reply, reply)
    if is_turn is False:
        with pytest.raises(LlmRefusalError):
            agent_model.ask_turn(llm, OBSERVATION)
        return
    turn = agent_model.ask_turn(llm, OBSERVATION)
    assert len(server.requests) == 1
    if is_turn:
        assert (turn.act, turn.content) == ("insert", "Ada was born in Lisbon.")
    else:  # what a turn cites is held against the memory by whoever carries it out
        assert turn.act == "answer"


@pytest.mark.parametrize(
    ("reported", "counted"),
    [
        (-5, 0),
        (None, 0),
        (7, 7),
        (7.0, 7),
        (10**30, MOST_TOKENS),
        (float("inf"), MOST_TOKENS),
        (float("nan"), 0),
        ("many", 0),
        ([7], 0),
    ],
)
def test_a_number_of_tokens_that_no_call_takes_is_bounded(
    server: OpenAiServer, llm: Llm, reported: Any, counted: int
) -> None:
    usage = {"prompt_tokens": reported, "completion_tokens": reported}
    body = {"choices": [{"message": {"content": '{"sufficient": true}'}}], "usage": usage}
    server.queue(Reply(body=json.dumps(body).encode()))
    before = llm.usage
    assert llm.is_sufficient(QUESTION, TEXTS)
    assert llm.usage.prompt_tokens - before.prompt_tokens == counted
    assert llm.usage.completion_tokens - before.completion_tokens == counted


@pytest.mark.parametrize("usage", [[], "free", 5, {"prompt_tokens": {}}])
def test_a_usage_that_is_none_loses_no_reply(server: OpenAiServer, llm: Llm, usage: Any) -> None:
    body = {"choices": [{"message": {"content": '{"sufficient": true}'}}], "usage": usage}
    server.queue(Reply(body=json.dumps(body).encode()))
    assert llm.is_sufficient(QUESTION, TEXTS)

"""The environment that an agent is trained in: scripted policies and the oracle play it, always alike."""

import json
from pathlib import Path
from typing import Any

import pytest

from engram.context.errors import InvalidRequestError
from engram.providers.language import load_language
from engram.wings.agent.core.agent_turns import AgentTurn, format_turn
from engram.wings.agent.llm import agent_prompts
from engram_evaluation.agent_environment import GraphMemoryEnvironment, Text
from engram_evaluation.agent_protocol import build_model_policy, play_all, policies, rollout
from engram_evaluation.commands import evaluate_command
from engram_evaluation.dataset import build
from engram_evaluation.oracle_endpoint import Oracle
from engram_evaluation.run_options import Options
from tests.support.doubts import list_doubted_facts
from tests.support.openai_server import OpenAiServer

QUESTION = "Who is the spouse of the director of Green Fields?"
FILM = Text("Green Fields", "Green Fields is a 1950 film directed by Ada Berg. It was a success.")
NOISE = Text("Green River", "Green River is a river. It flows into the sea.")
BERG = Text("Ada Berg", "Ada Berg was a film director. She married Carl Lind in 1940.")
DOCUMENTS = [FILM, NOISE, BERG]
ANSWERS = ["Carl Lind"]


def format_said(act: Any, content: str, *cites: int) -> str:
    return format_turn(AgentTurn(act, content, "So.", cites))


def test_a_play_from_the_first_document_to_its_reward() -> None:
    env = GraphMemoryEnvironment()
    seen, info = env.reset(QUESTION, DOCUMENTS, ANSWERS)
    assert "document 1 of 3, turn 1 of 8" in seen
    assert "Green Fields is a 1950 film" in seen
    assert (info["facts"], info["act"]) == (0, None)
    seen, worth, terminated, truncated, info = env.step(format_said("insert", FILM.text))
    assert (worth, terminated, truncated, info["act"]) == (0.0, False, False, "insert")
    assert info["new"] == info["facts"] > 0
    assert "directed by: Ada Berg [1]" in seen
    seen, *_, info = env.step(format_said("insert", "None"))
    assert (info["act"], info["new"]) == ("skip", 0)
    env.step(format_said("insert", "She married Carl Lind in 1940."))
    seen, *_, info = env.step(format_said("search", "spouse of Ada Berg"))
    assert "Search results:\nAda Berg | spouse: Carl Lind" in seen
    assert "<document_obs>" not in seen
    seen, worth, terminated, truncated, info = env.step(format_said("answer", "Carl Lind"))
    assert (seen, worth, terminated, truncated) == ("", 1.1, True, False)
    assert (info["f1"], info["format"], info["exact"], info["answer"]) == (1.0, 1.0, True, "Carl Lind")
    assert info["cites"] == ["Green Fields is a 1950 film directed by Ada Berg.", "She married Carl Lind in 1940."]
    with pytest.raises(InvalidRequestError, match="over"):
        env.step(format_said("answer", "Carl Lind"))


def test_half_an_answer_is_worth_its_f1_and_a_wrong_form_its_share_less() -> None:
    env = GraphMemoryEnvironment()
    env.reset(QUESTION, DOCUMENTS, ANSWERS)
    seen, worth, terminated, _, info = env.step("<answer>Carl Lind</answer>")
    assert (worth, terminated, info["valid"], info["document"]) == (0.0, False, False, (1, 3))
    assert "The last reply was no turn" in seen
    assert "thought" in info["error"]
    *_, info = env.step(format_said("search", "Ada Berg"))  # there is nothing to search yet
    assert "cannot be chosen now" in info["error"]
    _, worth, terminated, _, info = env.step(format_said("answer", "Carl Berg"))
    assert terminated
    assert (worth, info["f1"], info["format"]) == (pytest.approx(0.5), pytest.approx(2 * 0.5 * 0.5 / 1), 0.0)


def test_turns_are_bounded() -> None:
    env = GraphMemoryEnvironment(turns=2)
    env.reset(QUESTION, DOCUMENTS, ANSWERS)
    seen, *_ = env.step(format_said("insert", FILM.text))
    assert "You may choose <answer>." in seen
    _, worth, terminated, truncated, info = env.step(format_said("insert", "None"))
    assert (worth, terminated, truncated, info["f1"]) == (0.0, False, True, 0.0)


def test_step_before_reset_and_empty_input_are_refused() -> None:
    env = GraphMemoryEnvironment()
    for refused in (lambda: env.step("x"), lambda: env.reset(" ", DOCUMENTS), lambda: env.reset(QUESTION, [])):
        with pytest.raises(InvalidRequestError):
            refused()
    with pytest.raises(InvalidRequestError, match="turns"):
        GraphMemoryEnvironment(turns=0).reset(QUESTION, DOCUMENTS)


def test_an_update_doubts_and_insert_only_offers_none() -> None:
    wrong = Text("Ada Berg", "Ada Berg married Carl Lind in 1940. Ada Berg was born in Oslo.")
    right = Text("Ada Berg (director)", "Ada Berg was born in Lund.")
    env = GraphMemoryEnvironment()
    env.reset("Where was Ada Berg born?", [wrong, right], ["Lund"])
    env.step(format_said("insert", wrong.text))
    seen, *_, info = env.step(format_said("update", right.text))
    assert info["contradicted"] == 1
    assert "Oslo (doubted)" in seen
    assert list_doubted_facts(env.memory)
    only = GraphMemoryEnvironment(insert_only=True)
    assert "memory_update" not in only.system_prompt
    assert "memory_update" in env.system_prompt
    only.reset("Where was Ada Berg born?", [wrong, right], ["Lund"])
    *_, info = only.step(format_said("update", right.text))
    assert not info["valid"]


def test_the_same_actions_give_the_same_play() -> None:
    language = load_language("rules")
    for policy in policies(language).values():
        copies = [GraphMemoryEnvironment(language=language) for _ in range(2)]
        first, second = (list(rollout(env, policy, QUESTION, DOCUMENTS, ANSWERS)) for env in copies)
        again = list(rollout(copies[0], policy, QUESTION, DOCUMENTS, ANSWERS))
        assert first == second == again


def test_scripted_policies_find_the_answer_and_what_they_keep_differs() -> None:
    language = load_language("rules")
    ends = {}
    for name, policy in policies(language).items():
        env = GraphMemoryEnvironment(language=language)
        *_, (_, _, worth, info) = rollout(env, policy, QUESTION, DOCUMENTS, ANSWERS)
        ends[name] = (worth, info["answer"], info["facts"])
    assert {worth for worth, _, _ in ends.values()} == {1.1}
    assert ends["insert all"][2] > ends["insert relevant"][2]


def dataset() -> Any:
    corpus = [
        {
            "_id": str(at),
            "title": one.title,
            "text": one.text,
            "metadata": {"sentences": one.text.split(" It ")[:1]},
        }
        for at, one in enumerate(DOCUMENTS)
    ]
    for row, one in zip(corpus, DOCUMENTS, strict=True):
        first, _, second = one.text.partition(". ")
        row["metadata"] = {"sentences": [f"{first}.", second]}
    metadata = {
        "answers": ANSWERS,
        "context_ids": ["1", "0", "2"],
        "supporting_sentences": [
            ["0", 0, "Green Fields is a 1950 film directed by Ada Berg."],
            ["2", 1, "She married Carl Lind in 1940."],
        ],
        "evidences": [["Green Fields", "director", "Ada Berg"], ["Ada Berg", "spouse", "Carl Lind"]],
    }
    asked = [{"_id": "q", "text": QUESTION, "metadata": metadata}]
    rows = [("corpus", row) for row in corpus]
    return build("tiny", rows, [("queries", row) for row in asked], [("qrels", "q", "0"), ("qrels", "q", "2")])


def test_the_protocol_plays_documents_in_the_order_of_the_data_set() -> None:
    found = dataset()
    assert found.questions[0].context == ("1", "0", "2")
    options = Options(protocol="agent", oracle_errors=0.0)
    report = play_all(found, options, load_language("rules"), lambda *_: lambda: None)
    by_name = {one.policy: one for one in report.played}
    assert by_name["insert all"].f1 == by_name["oracle"].f1 == 1.0
    assert by_name["oracle"].turns == 4.0  # nothing, film, director, answer
    assert by_name["insert all"].memory_tokens > by_name["oracle"].memory_tokens > 0
    assert all(one.valid == 1.0 and one.reward == pytest.approx(one.f1 + 0.1) for one in report.played)
    assert "oracle" in report.as_tables().tables[""].rows[-1]


def test_a_configured_model_plays_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fence around a turn is not held against a model."""
    found = dataset()
    oracle = Oracle(found, 0.0, 0)
    with OpenAiServer(lambda request: f"```\n{oracle(request['messages'])}\n```") as server:
        monkeypatch.setenv("ENGRAM_LLM_BASE_URL", server.base_url)
        monkeypatch.setenv("ENGRAM_LLM_MODEL", "small")
        evaluate_command.run_agent(found, Options(protocol="agent"), tmp_path)
        assert len(server.requests) == 4  # nothing, film, director, answer
    (file,) = tmp_path.glob("*.json")
    played = {row["policy"]: row for row in json.loads(file.read_text(encoding="utf-8"))["rows"]}
    assert (played["small"]["f1"], played["small"]["valid"]) == (1.0, 1.0)
    assert "oracle" not in played


def test_an_oracle_that_errs_costs_answers_and_form() -> None:
    found = dataset()
    env = GraphMemoryEnvironment()
    ends = []
    for seed in range(12):
        policy = build_model_policy(Oracle(found, 0.5, seed))
        turns = list(rollout(env, policy, QUESTION, DOCUMENTS, ANSWERS))
        ends.append(turns[-1][3])
    assert {info["f1"] for info in ends} > {1.0}
    assert {info["format"] for info in ends} == {0.0, 1.0}


def test_the_protocol_needs_passages_of_each_question() -> None:
    bare = build(
        "bare",
        [("corpus", {"_id": "0", "text": "A."})],
        [("queries", {"_id": "q", "text": "Who?", "metadata": {"answers": ["A"]}})],
        [("qrels", "q", "0")],
    )
    with pytest.raises(InvalidRequestError, match="context_ids"):
        play_all(bare, Options(protocol="agent"), load_language("rules"), lambda *_: lambda: None)


def test_the_environment_and_the_service_say_the_same_to_a_model() -> None:
    env = GraphMemoryEnvironment()
    seen, _ = env.reset(QUESTION, DOCUMENTS, ANSWERS)
    messages = agent_prompts.messages(env.observation)
    assert [one["content"] for one in messages] == [env.system_prompt, seen]

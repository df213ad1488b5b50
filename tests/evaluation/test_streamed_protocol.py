"""Ways to answer from a stream of documents, by a model behind the endpoint's protocol."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError, LlmError, LlmNotConfiguredError
from engram.providers.embedder import Embedder
from engram.providers.language import load_language
from engram.providers.llm import Llm
from engram_evaluation import text_memory
from engram_evaluation.commands import evaluate_command
from engram_evaluation.dataset import build
from engram_evaluation.oracle_endpoint import Oracle
from engram_evaluation.run_options import Options
from engram_evaluation.streamed_protocol import METHODS, TEXT, StreamedReport, measure_streamed
from tests.evaluation.test_agent_environment import ANSWERS, DOCUMENTS, FILM, QUESTION, dataset, format_said
from tests.support.openai_server import OpenAiServer, Reply


@pytest.fixture
def embedder(application: Application) -> Embedder:
    return application.models.embedder


def test_a_text_memory_keeps_what_was_inserted_and_finds_it(embedder: Embedder) -> None:
    play = text_memory.begin(QUESTION, DOCUMENTS)
    assert (play.offered, play.turns) == (("insert", "answer"), 8)
    assert "a list of texts" in play.messages[0]["content"]
    assert "memory_update" not in play.messages[0]["content"]
    play, _ = text_memory.carry_out(play, format_said("insert", FILM.text), embedder)
    play, _ = text_memory.carry_out(play, format_said("insert", "None"), embedder)
    assert (play.at, play.texts, play.note) == (2, (FILM.text,), "The document went by.")
    play, _ = text_memory.carry_out(play, format_said("insert", "She married Carl Lind in 1940."), embedder)
    assert play.observation.document is None
    assert play.observation.memory == f"She married Carl Lind in 1940. [2]\n{FILM.text} [1]"
    play, answer = text_memory.carry_out(play, format_said("search", "Who made the film Green Fields?"), embedder)
    assert (answer, play.matches, play.at) == (None, [0, 1], 3)
    assert (play.observation.search_result or "").startswith(FILM.text)
    before = play
    play, answer = text_memory.carry_out(play, "<answer>Carl Lind</answer>", embedder)
    assert (answer, play.valid, play.turn, play.texts) == (None, False, before.turn + 1, before.texts)
    assert "no turn" in play.observation.note
    assert play.observation.search_result is None
    play, answer = text_memory.carry_out(play, format_said("answer", "Carl Lind", 2), embedder)
    assert answer == "Carl Lind"


def test_a_text_memory_shows_the_latest_that_fit(embedder: Embedder) -> None:
    play = text_memory.begin(QUESTION, DOCUMENTS)
    for number in range(3):
        play, _ = text_memory.carry_out(play, format_said("insert", f"{number} " + "word " * 290), embedder)
    lines = play.observation.memory.splitlines()
    assert [line[:1] for line in lines] == ["2", "1"]


def test_the_last_turn_offers_an_answer_only(embedder: Embedder) -> None:
    play = text_memory.begin(QUESTION, DOCUMENTS[:1])
    while play.turn < play.turns:
        play, _ = text_memory.carry_out(play, "nonsense", embedder)
    assert play.offered == ("answer",)
    with pytest.raises(InvalidRequestError):
        text_memory.begin(" ", DOCUMENTS)
    with pytest.raises(InvalidRequestError):
        text_memory.begin(QUESTION, [])


def reply(request: dict[str, Any]) -> str:
    """Act as a model that knows nothing but the gold sentences of what it is shown."""
    system, user = (message["content"] for message in request["messages"][:2])
    gold = [text for text in ("directed by Ada Berg", "married Carl Lind in 1940") if text in user]
    if "<memory_insert>" in system and "a list of texts" in system:
        memory = user.partition("<document_obs>")[0]
        if all(text in memory for text in gold) and "<document_obs>" not in user:
            return format_said("answer", "Carl Lind" if len(gold) == 2 else "unknown")
        fresh = [text for text in gold if text not in memory]
        return format_said("insert", f"It says: {fresh[0]}." if fresh else "None")
    if "<memory_insert>" in system:
        return Oracle(dataset())(request["messages"])
    if '"summary"' in system:
        return json.dumps({"summary": ". ".join(gold) or "nothing yet"})
    if '"cited"' in system:
        number = user.partition("<evidence>\n[")[2].partition("]")[0]
        answer = "Carl Lind" if len(gold) == 2 else ""
        return json.dumps({"answer": answer, "cited": [int(number)] if answer else [], "sufficient": bool(answer)})
    return json.dumps({"reasoning": "Who knows?", "answer": "Carl Berg"})


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer(reply) as running:
        yield running


@pytest.fixture
def llm(server: OpenAiServer) -> Iterator[Llm]:
    with closing(Llm(base_url=server.base_url, api_key=None, model="small", max_attempts=1)) as client:
        yield client


def run(llm: Llm | None, embedder: Embedder, folder: Path, **options: Any) -> StreamedReport:
    return measure_streamed(
        dataset(),
        Options(protocol="streamed", **options),
        llm,
        load_language("rules"),
        embedder,
        folder,
        lambda *_: lambda: None,
    )


def test_every_method_answers_and_the_tables_compare_them(llm: Llm, embedder: Embedder, tmp_path: Path) -> None:
    report = run(llm, embedder, tmp_path)

    values = {phase.arm: phase.rows[0].values for phase in report.phases}
    assert tuple(values) == METHODS
    f1 = {method: round(one["f1"], 2) for method, one in values.items()}
    assert f1 == {
        "zero-shot": 0.5,
        "chain-of-thought": 0.5,
        "rag": 1.0,
        "rolling-summary": 1.0,
        "text-memory": 1.0,
        "graph-without-update": 1.0,
        "graph": 1.0,
    }
    assert {method: one["calls"] for method, one in values.items()} == {
        "zero-shot": 1,
        "chain-of-thought": 1,
        "rag": 1,
        "rolling-summary": 4,
        "text-memory": 4,
        "graph-without-update": 4,
        "graph": 4,
    }
    agents = [one for one in values.values() if "turns" in one]
    assert [(one["turns"], one["valid"]) for one in agents] == [(4.0, 1.0)] * 3
    assert all(one["prompt_tokens"] > 0 and one["completion_tokens"] > 0 for one in values.values())
    methods, update, memory = report.as_tables().tables.items()
    assert methods[0] == "small, 1 questions (GRAM, Table 2)"
    assert [row[0] for row in methods[1].rows] == list(METHODS)
    assert update[0] == "Update (GRAM, Table 3)"
    assert [row[:2] for row in update[1].rows] == [
        ["without", "1.000"],
        ["with", "1.000"],
        ["difference", "+0.000 (+0.000 to +0.000)"],
    ]
    assert [row[0] for row in memory[1].rows] == ["text", "graph", "difference"]
    assert all(int(row[2]) > 0 for row in memory[1].rows[:2])
    path = report.as_tables().write(tmp_path, "slug")
    assert "## Memory (GRAM, Table 4)" in path.read_text(encoding="utf-8")
    document = json.loads((tmp_path / "slug.json").read_text(encoding="utf-8"))
    assert {row["arm"]: row["said"]["answer"] for row in document["rows"]}[TEXT] == "Carl Lind"


def test_methods_are_chosen_and_what_was_answered_is_kept(
    llm: Llm, server: OpenAiServer, embedder: Embedder, tmp_path: Path
) -> None:
    report = run(llm, embedder, tmp_path, methods=("rag", "text-memory"))
    assert [phase.arm for phase in report.phases] == ["rag", "text-memory"]
    assert len(report.as_tables().tables) == 1
    asked = len(server.requests)
    server.queue(Reply("no", status=503))
    with pytest.raises(LlmError):
        run(llm, embedder, tmp_path, methods=("rag", "text-memory", "graph"))
    assert len(server.requests) == asked + 1
    assert run(llm, embedder, tmp_path, methods=("rag", "text-memory")).phases == report.phases
    assert len(server.requests) == asked + 1


def test_an_unusable_reply_is_a_wrong_answer(
    llm: Llm, server: OpenAiServer, embedder: Embedder, tmp_path: Path
) -> None:
    server.queue("I am not sure.", "Sorry.")
    (phase,) = run(llm, embedder, tmp_path, methods=("zero-shot",)).phases
    assert (phase.rows[0].values["f1"], phase.rows[0].values["unusable"]) == (0.0, 1.0)
    assert "unusable" in phase.rows[0].details["unusable"]


def test_missing_requirements_are_named(llm: Llm, embedder: Embedder, tmp_path: Path) -> None:
    with pytest.raises(LlmNotConfiguredError, match="--protocol streamed needs ENGRAM_LLM_BASE_URL"):
        run(None, embedder, tmp_path)
    with pytest.raises(InvalidRequestError, match="'mem1' is none"):
        run(llm, embedder, tmp_path, methods=("mem1",))
    bare = build(
        "bare",
        [("corpus", {"_id": "0", "text": "A."})],
        [("queries", {"_id": "q", "text": "Who?", "metadata": {"answers": ANSWERS}})],
        [("qrels", "q", "0")],
    )
    options = Options(protocol="streamed")
    with pytest.raises(InvalidRequestError, match="context_ids"):
        measure_streamed(bare, options, llm, load_language("rules"), embedder, tmp_path, lambda *_: lambda: None)
    with pytest.raises(InvalidRequestError, match="--oracle-errors means nothing"):
        Options(protocol="streamed", oracle_errors=0.0)


def test_the_command_prints_the_tables(
    server: OpenAiServer,
    application: Application,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ENGRAM_LLM_BASE_URL", server.base_url)
    monkeypatch.setenv("ENGRAM_LLM_MODEL", "small")
    monkeypatch.setenv("ENGRAM_DATA_DIR", str(application.settings.data_dir))
    evaluate_command.run_streamed(dataset(), Options(protocol="streamed"), tmp_path)
    printed = capsys.readouterr().out
    assert "GRAM, Table 2" in printed
    assert "graph-without-update" in printed
    assert len(list(tmp_path.glob("*.md"))) == 1

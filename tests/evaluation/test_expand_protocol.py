"""The protocol that measures each way to widen questions: stored and live units, and what is refused."""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from rich.console import Console

from engram.context.errors import InvalidRequestError, LlmError, LlmNotConfiguredError
from engram.core.filter.logged_verdict import Expansion
from engram.providers.llm import Llm
from engram.services.verdict.verdict import Verdict
from engram.services.verdict.verdict_service import VerdictService
from engram_evaluation import adapt_table, expand_table
from engram_evaluation.dataset import Dataset
from engram_evaluation.expand_protocol import check
from engram_evaluation.report_table import TableLine
from engram_evaluation.run_options import Options
from engram_evaluation.run_report import RunReport
from tests.evaluation.conftest import Evaluate
from tests.support.openai_server import OpenAiServer, Reply


@pytest.fixture
def few(sample_dataset: Dataset) -> Dataset:
    """Half of the questions with expansions, and some others."""
    some = [question for question in sample_dataset.questions if question.id in sample_dataset.expansions][:6]
    widened = {question.id: sample_dataset.expansions[question.id] for question in some}
    return replace(sample_dataset, questions=(*some, *sample_dataset.questions[-4:]), expansions=widened)


@pytest.fixture
def model() -> Iterator[OpenAiServer]:
    """Endpoint of a language model, without a handler yet."""
    with OpenAiServer() as server:
        yield server


@pytest.fixture
def expanding(model: OpenAiServer, run_protocol: Evaluate) -> Iterator[Evaluate]:
    """Protocols on an application that asks ``model``."""
    with Llm(base_url=model.base_url, api_key=None, model="small", max_attempts=1) as llm:
        yield partial(run_protocol, models={"llm": llm})


def figure(report: RunReport, group: str, retriever: str, method: str = "", how: str = adapt_table.BASE) -> float:
    name = expand_table.arm(retriever, method, how)
    return report.value(expand_table.METRIC, group, int(name != expand_table.arm(retriever)), name)


def test_each_stored_method_is_an_arm(run_protocol: Evaluate, few: Dataset, tmp_path: Any) -> None:
    kinds = tuple(dict.fromkeys(unit.method for units in few.expansions.values() for unit in units))
    assert check(few, Options(protocol="expand"), None) == (*kinds, expand_table.ALL_METHODS)
    report = run_protocol("expand", few, retrievers=("dense",), methods=(kinds[0], expand_table.ALL_METHODS))
    names = list(dict.fromkeys(line.arm for line in report.lines()))
    assert names == [
        "dense, base keys",
        *(
            expand_table.arm("dense", kind, how)
            for kind in (kinds[0], expand_table.ALL_METHODS)
            for how in ("widened", "evolved keys", "both")
        ),
    ]
    counted = {line.group: line.questions for line in report.lines()}
    assert counted[adapt_table.ADAPTED_GROUP] + counted[expand_table.HELD_BACK_GROUP] == len(few.expansions)
    # Units sent along help whoever sends them; in the keys they help those whose expansions they are.
    assert figure(
        report, expand_table.HELD_BACK_GROUP, "dense", expand_table.ALL_METHODS, expand_table.WIDENED
    ) > figure(report, expand_table.HELD_BACK_GROUP, "dense")
    assert figure(
        report, adapt_table.ADAPTED_GROUP, "dense", expand_table.ALL_METHODS, expand_table.EVOLVED
    ) > figure(report, adapt_table.ADAPTED_GROUP, "dense")
    # Nobody widens the questions of the other groups.
    asked = {line.group for line in report.lines() if line.arm.endswith(expand_table.BOTH)}
    assert asked == {adapt_table.ADAPTED_GROUP, expand_table.HELD_BACK_GROUP}
    (path,) = tmp_path.glob("*.json")
    assert json.loads(path.read_text())["command"] == (
        "engram evaluate sample --protocol expand --profile default --seed 0 --retrievers dense --methods "
        f"{kinds[0]},all"
    )
    console = Console(width=120, file=io.StringIO(), record=True)
    console.print(report.table(), *report.build_further_tables())
    assert "dense, all, widened" in console.export_text()
    assert "| dense, all, both |" in report.markdown()


def test_a_method_sends_and_teaches_its_own_units(
    run_protocol: Evaluate, few: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: set[str] = set()
    accept = VerdictService.accept

    def accept_and_record(self: VerdictService, verdict: Verdict, *more: Any, **named: Any) -> Any:
        sent.update(unit.method for unit in verdict.expansions)
        return accept(self, verdict, *more, **named)

    monkeypatch.setattr(VerdictService, "accept", accept_and_record)
    kind = next(iter(few.expansions.values()))[0].method
    run_protocol("expand", few, retrievers=("lexical",), methods=(kind,), limit=4)
    assert sent == {kind}


def test_live_units_are_requested_once_and_stored(expanding: Evaluate, few: Dataset, model: OpenAiServer) -> None:
    """A hypothetical passage is asked for once a question, whatever arms use it, and its price is the query's."""
    passages = {p["id"]: p["text"] for p in few.passages}
    told = {q.text: passages[min(q.relevant)] for q in few.questions}

    def answer_with_gold(request: dict[str, Any]) -> str:
        user = request["messages"][1]["content"]
        return json.dumps({"passage": next(text for asked, text in told.items() if asked in user)})

    model.handler = answer_with_gold
    options: dict[str, Any] = {"retrievers": ("dense",), "live": True, "methods": ("hyde",), "limit": 4}
    report = expanding("expand", few, **options)
    assert len(model.requests) == 4
    name = expand_table.arm("dense", "hyde", expand_table.WIDENED)
    assert (
        report.value("mrr", expand_table.HELD_BACK_GROUP, 1, name) == 1.0
    )  # the passage that was invented is there
    assert figure(report, expand_table.HELD_BACK_GROUP, "dense", "hyde", expand_table.WIDENED) > figure(
        report, expand_table.HELD_BACK_GROUP, "dense"
    )
    assert report.options.command("sample").endswith("--retrievers dense --live --methods hyde --limit 4")
    costs = {row[0]: row[1:] for row in expand_table.cost_rows(report.lines())}
    assert costs["dense, base keys"][:2] == ["0.00", ""]
    assert costs["dense, hyde, widened"][0] == "1.00"
    assert float(costs["dense, hyde, widened"][1]) > 100
    assert costs["dense, hyde, evolved keys"][0] == "0.00"
    again = expanding("expand", few, **options)
    assert len(model.requests) == 4
    assert [phase.rows for phase in again.phases] == [phase.rows for phase in report.phases]


def test_passages_of_each_arm_are_answered_and_marked(
    expanding: Evaluate, few: Dataset, model: OpenAiServer
) -> None:
    """A reader who knows an answer when it sees the gold sentence is right where that passage came first."""
    held = replace(few, questions=tuple(replace(q, answers=(f"Answer of {q.id}",)) for q in few.questions))
    telling = {q.text: (q.answers[0], {gold.text for gold in q.gold}) for q in held.questions}

    def reader(request: dict[str, Any]) -> str:
        system, user = (message["content"] for message in request["messages"])
        answer, gold = next(telling[text] for text in telling if text in user)
        if '"strict"' in system:
            return json.dumps({"strict": answer in user.split("<candidate>")[1], "lenient": True})
        told = any(sentence in user for sentence in gold)
        return json.dumps({"answer": answer if told else "Elsewhere", "cited": [1], "sufficient": told})

    model.handler = reader
    kind = next(iter(held.expansions.values()))[0].method
    options: dict[str, Any] = {
        "retrievers": ("dense",),
        "methods": (kind,),
        "limit": 4,
        "answered": True,
        "top_k": 1,
    }
    report = expanding("expand", held, **options)
    assert len(model.requests) == 4 * 4 * 2  # alone, widened, evolved and both; an answer and its mark
    first = {q.id: {gold.passage_id for gold in q.gold} for q in held.questions}
    rows = [(phase, row) for phase in report.phases for row in phase.rows]
    marked = [(phase, row) for phase, row in rows if "em" in row.values]
    assert {phase.group for phase, _ in marked} == {adapt_table.ADAPTED_GROUP, expand_table.HELD_BACK_GROUP}
    assert len(marked) == 4 * 4
    for _, row in marked:
        right = float(row.ranking[0] in first[row.id])
        assert (row.values["em"], row.values["strict"], row.values["lenient"]) == (right, right, 1.0)
    assert {row.values["em"] for _, row in marked} == {0.0, 1.0}
    (adapted, kept) = expand_table.answers(report.lines())
    assert (adapted.headings[0], kept.headings[0]) == ("adapted: answers", "kept back: answers")
    assert kept.markdown() in report.markdown()
    assert f"--top-k 1 --seed 0 --retrievers dense --answered --methods {kind} --limit 4" in report.markdown()
    again = expanding("expand", held, **options)
    assert len(model.requests) == 4 * 4 * 2
    assert [phase.rows for phase in again.phases] == [phase.rows for phase in report.phases]
    mute = replace(held, questions=tuple(replace(q, answers=()) for q in held.questions))
    with pytest.raises(InvalidRequestError, match="sample has no answers"):
        expanding("expand", mute, answered=True)


def test_an_endpoint_that_fails_fails_the_run(expanding: Evaluate, few: Dataset, model: OpenAiServer) -> None:
    model.handler = lambda _: Reply("overloaded", status=500)
    with pytest.raises(LlmError, match="overloaded"):
        expanding("expand", few, retrievers=("dense",), live=True, methods=("synonyms",), limit=2)


def test_feedback_terms_need_no_model(run_protocol: Evaluate, few: Dataset) -> None:
    report = run_protocol("expand", replace(few, expansions={}), retrievers=("lexical",), live=True, limit=3)
    assert {line.arm for line in report.lines()} == {
        "lexical, base keys",
        *(f"lexical, prf, {how}" for how in ("widened", "evolved keys", "both")),
    }


def test_missing_requirements_are_reported_before_the_run(few: Dataset) -> None:
    def options(**given: Any) -> Options:
        return Options(protocol="expand", **given)

    with pytest.raises(LlmNotConfiguredError, match="--live with hyde, synonyms needs ENGRAM_LLM_BASE_URL"):
        check(few, options(live=True, methods=("prf", "hyde", "synonyms")), None)
    with pytest.raises(InvalidRequestError, match="'wordnet' is none"):
        check(few, options(live=True, methods=("wordnet",)), None)
    with pytest.raises(InvalidRequestError, match=r"sample has, hyde, all; 'prf' is none"):
        check(
            replace(few, expansions={few.questions[0].id: (Expansion("hyde", "x"),)}),
            options(methods=("prf",)),
            None,
        )
    with pytest.raises(InvalidRequestError, match="has no expansions"):
        check(replace(few, expansions={}), options(), None)
    with pytest.raises(LlmNotConfiguredError, match="--answered needs ENGRAM_LLM_BASE_URL"):
        check(few, options(answered=True), None)
    for wrong in (
        {"protocol": "cold", "live": True},
        {"protocol": "expand", "fractions": (0.5,)},
        {"protocol": "expand", "top_k": 3},
        {"protocol": "expand", "oracle_errors": 0.0},
    ):
        with pytest.raises(InvalidRequestError, match="means nothing"):
            Options(**wrong)  # type: ignore[arg-type]


def test_tables_by_hand() -> None:
    def line(arm: str, group: str, ndcg: float, n: int) -> TableLine:
        return TableLine(
            arm, group, int(arm != "dense, base keys"), n, {"ndcg@10": ndcg, "ms": 5.0, "llm_calls": 1.0}
        )

    lines = [
        line("dense, base keys", adapt_table.ADAPTED_GROUP, 0.5, 3),
        line("dense, base keys", expand_table.HELD_BACK_GROUP, 0.6, 2),
        line("dense, hyde, widened", expand_table.HELD_BACK_GROUP, 0.7, 2),
    ]
    assert expand_table.rows(lines, "ndcg@10") == [
        ["questions", "3", "2", "", "", ""],
        ["dense, base keys", "0.500", "0.600", "", "", ""],
        ["dense, hyde, widened", "", "0.700", "", "", ""],
    ]
    assert expand_table.cost_rows(lines)[1] == ["dense, hyde, widened", "1.00", "", "", "5.0"]
    assert expand_table.find_base_arm("dense, hyde, widened") == "dense, base keys"

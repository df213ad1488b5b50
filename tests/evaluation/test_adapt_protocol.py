"""The protocol that measures evolved keys: who is adapted to, what each way credits, resuming, tables."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.core.learning.logged_verdict import GENERATION_THRESHOLD, Expansion
from engram.services.auth.scope import Scope
from engram.wings.published.services.expansion_validation import ExpansionValidation
from engram.wings.published.services.key_evolution import KeyEvolutionService
from engram_evaluation import adapt_table
from engram_evaluation.adapt_protocol import select_expandable, split
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.harness import Harness, open_harness
from engram_evaluation.report_table import SummaryLine
from engram_evaluation.run_options import Options, numbers
from engram_evaluation.run_report import RunReport
from tests.evaluation.conftest import Evaluate
from tests.support.state import rows

UNITS = (Expansion("facets", "some, terms"),)


@pytest.fixture
def few(sample_dataset: Dataset) -> Dataset:
    """All questions with expansions and as many others."""
    widened = sample_dataset.expansions
    others = [question for question in sample_dataset.questions if question.id not in widened][: len(widened)]
    questions = [question for question in sample_dataset.questions if question.id in widened or question in others]
    return replace(sample_dataset, questions=tuple(questions))


def question(name: str, *relevant: str) -> Question:
    return Question(name, f"{name}?", frozenset(relevant), (), "")


QUESTIONS = (question("q1", "a", "b"), question("q2", "b"), question("q3", "b", "c"), question("q4", "d"))
SMALL = Dataset("small", (), QUESTIONS, {}, "", {"q1": UNITS})


def test_questions_are_grouped_by_overlap_with_adapted_ones() -> None:
    # Cosines with q1: 1, 0.8, 0.9, 1; q4 is as near as can be and shares no passage.
    vectors = {
        name: np.array(values, dtype=np.float32)
        for name, values in {"q1": (1, 0), "q2": (0.8, 0.6), "q3": (0.9, 0.19**0.5), "q4": (1, 0)}.items()
    }
    groups = split(SMALL, select_expandable(SMALL, None), 1.0, 0, vectors).groups
    assert {name: [q.id for q in group] for name, group in groups.items()} == {
        adapt_table.ADAPTED_GROUP: ["q1"],
        adapt_table.NEAR_GROUP: ["q3"],
        adapt_table.SHARING_GROUP: ["q2", "q3"],
        adapt_table.OTHER_GROUP: ["q4"],
    }


def test_paraphrases_are_what_is_near_where_there_are_any() -> None:
    reworded = replace(SMALL, paraphrases={"q1": (question("q1-para", "a"),), "q2": (question("q2-para", "b"),)})
    groups = split(reworded, select_expandable(reworded, None), 1.0, 0, {}).groups
    assert [q.id for q in groups[adapt_table.NEAR_GROUP]] == ["q1-para"]


def test_a_larger_fraction_includes_a_smaller_one(sample_dataset: Dataset) -> None:
    pool = select_expandable(sample_dataset, None)
    assert [q.id for q in pool] == list(sample_dataset.expansions)
    adapted = [
        [q.id for q in split(sample_dataset, pool, fraction, seed, {}).adapted]
        for seed in (0, 1)
        for fraction in (0.01, 0.3, 0.5)
    ]
    assert [len(chosen) for chosen in adapted[:3]] == [1, 3, 5]
    assert set(adapted[0]) < set(adapted[1]) < set(adapted[2])
    assert set(adapted[2]) != set(adapted[5])
    assert [q.id for q in select_expandable(sample_dataset, 4)] == list(sample_dataset.expansions)[:4]
    with pytest.raises(InvalidRequestError, match="sample has no expansions"):
        select_expandable(replace(sample_dataset, expansions={}), None)


def figure(
    report: RunReport, metric: str, retriever: str, keys: str, group: str, *, fraction: float = 1.0
) -> float:
    turn = int(keys != adapt_table.BASE)
    return report.value(metric, group, turn, adapt_table.arm(retriever, fraction, keys))


def test_evolved_keys_find_what_they_were_adapted_to(
    application: Application, run_protocol: Evaluate, sample_dataset: Dataset, tmp_path: Path
) -> None:
    several = replace(sample_dataset, questions=sample_dataset.questions[:16])  # enough for means of each group
    report = run_protocol("adapt", several, fractions=(1.0,), retrievers=("dense", "graph"), ways=("supported",))
    dense, graph = (
        [
            figure(report, "ndcg@10", retriever, keys, adapt_table.ADAPTED_GROUP)
            for keys in (adapt_table.BASE, "supported")
        ]
        for retriever in ("dense", "graph")
    )
    assert dense[1] > dense[0] + 0.25
    assert graph[1] == graph[0]  # profile default walks by base keys
    near = [
        figure(report, "ndcg@10", "dense", keys, adapt_table.NEAR_GROUP) for keys in (adapt_table.BASE, "supported")
    ]
    assert near[1] > near[0] + 0.1
    others = [
        figure(report, "ndcg@10", "dense", keys, adapt_table.OTHER_GROUP)
        for keys in (adapt_table.BASE, "supported")
    ]
    assert others[1] == pytest.approx(others[0], abs=0.06)
    # Keys learned, and nothing else.
    assert rows(application, "evaluate-sample", "passage_key")
    for scope in ("memory_audit", "question_support", "weight_audit"):
        assert rows(application, "evaluate-sample", scope) == []

    document = json.loads(
        (tmp_path / "sample-adapt-seed-0-fractions-1.0-retrievers-dense-graph-ways-supported.json").read_text()
    )
    assert document["command"] == (
        "engram evaluate sample --protocol adapt --seed 0 --fractions 1.0 --retrievers dense,graph --ways supported"
    )
    assert document["engine"]["embedding_model"] == application.models.embedder.model
    values = document["phases"][0]["questions"][0]["values"]
    assert set(values) >= {"ndcg@1", "ndcg@10", "mrr", "recall@5", "recall@10", "ms"}
    markdown = next(tmp_path.glob("*.md")).read_text(encoding="utf-8")
    before = figure(report, "mrr", "dense", adapt_table.BASE, adapt_table.ADAPTED_GROUP)
    assert f"| dense, 100%, supported | {before:.3f} -> " in markdown
    assert f"## {adapt_table.PRICE_TITLE}" in markdown
    assert "95% interval" in markdown
    console = Console(width=120, file=io.StringIO(), record=True)
    console.print(report.table())
    console.print(*report.build_further_tables())
    shown = console.export_text()
    assert "dense, 100%, supported" in shown
    assert adapt_table.EXPANDED_ARM in shown


def test_base_figures_do_not_depend_on_what_evolved(run_protocol: Evaluate, few: Dataset, tmp_path: Path) -> None:
    first = run_protocol("adapt", few, fractions=(1.0,), retrievers=("lexical",), ways=("supported",), limit=4)
    for path in tmp_path.glob("phases/*/*base_keys*"):
        path.unlink()
    # Only they are measured again, and the collection's keys have evolved by now.
    second = run_protocol("adapt", few, fractions=(1.0,), retrievers=("lexical",), ways=("supported",), limit=4)
    base = [
        [phase for phase in report.phases if phase.arm.endswith(adapt_table.BASE)] for report in (first, second)
    ]
    rankings = [[row.ranking for phase in phases for row in phase.rows] for phases in base]
    assert rankings[0] == rankings[1]


def test_each_way_credits_its_own_passages(
    application: Application, run_protocol: Evaluate, few: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    credited: dict[str, set[str]] = {}
    evolve = KeyEvolutionService.evolve
    ways = iter(("supported", "published"))

    def record_credits(self: KeyEvolutionService, scope: Scope) -> Any:
        names = {row["id"]: row["external_id"] for row in rows(application, scope.collection.name, "passage")}
        credited[next(ways)] = {
            names[row["passage_id"]] for row in rows(application, scope.collection.name, "key_credit")
        }
        return evolve(self, scope)

    monkeypatch.setattr(KeyEvolutionService, "evolve", record_credits)
    run_protocol("adapt", few, fractions=(1.0,), retrievers=("dense",), ways=("supported", "published"), limit=3)
    supported = set().union(*(q.relevant for q in select_expandable(few, 3)))
    assert credited["supported"] == supported
    assert len(credited["published"]) > len(supported)
    assert credited["published"] - supported


def test_ungated_keys_take_in_what_nothing_validated(run_protocol: Evaluate, few: Dataset) -> None:
    # Without a rule for retrieval only a verdict's word validates, and these verdicts say nothing.
    report = run_protocol(
        "adapt",
        few,
        validation=ExpansionValidation(0, GENERATION_THRESHOLD),
        fractions=(1.0,),
        retrievers=("lexical",),
        ways=("supported", "ungated"),
        limit=3,
    )
    base, gated, ungated = (
        figure(report, "ndcg@10", "lexical", keys, adapt_table.ADAPTED_GROUP)
        for keys in (adapt_table.BASE, "supported", "ungated")
    )
    assert base == gated < ungated


def test_a_stopped_run_goes_on_where_it_was(
    run_protocol: Evaluate, few: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = Harness.ask

    def ask_and_record(self: Harness, question: Question, *arguments: Any, **more: Any) -> Any:
        asked.append(question.id)
        return ask(self, question, *arguments, **more)

    def stop(self: Harness, *_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Harness, "ask", ask_and_record)
    options: dict[str, Any] = {
        "fractions": (0.5, 1.0),
        "retrievers": ("lexical",),
        "ways": ("supported",),
        "limit": 4,
    }
    with monkeypatch.context() as patch:
        patch.setattr(Harness, "give", stop)
        with pytest.raises(KeyboardInterrupt):
            run_protocol("adapt", few, **options)
    everything = len(asked) - 1
    asked.clear()
    resumed = run_protocol("adapt", few, **options)
    # Base keys are not asked again; verdicts on 2 and on 4 questions, the latter's price by three keys.
    assert len(asked) == 2 + everything + 4 + everything + 3 * 4
    asked.clear()
    again = run_protocol("adapt", few, **options)
    assert asked == []
    assert [phase.rows for phase in again.phases] == [phase.rows for phase in resumed.phases]
    other_seed = run_protocol("adapt", few, **options, seeds=(1,))
    assert len(asked) == 2 + everything + 4 + everything + 3 * 4
    base = [
        figure(report, "ndcg@10", "lexical", adapt_table.BASE, adapt_table.ADAPTED_GROUP)
        for report in (resumed, other_seed)
    ]
    assert base[0] == base[1]  # of the same four questions, measured once


def test_key_building_is_of_one_run(application: Application, run_protocol: Evaluate, few: Dataset) -> None:
    wanted = set().union(*(q.relevant for q in few.questions))
    small = replace(few, name="sample-titles", passages=tuple(p for p in few.passages if p["id"] in wanted))
    options: dict[str, Any] = {"fractions": (1.0,), "retrievers": ("lexical",), "ways": ("supported",), "limit": 3}
    titles = run_protocol("adapt", small, **options, key_building="title")
    assert application.auth.access.scope("evaluate-sample-titles").collection.key_building == "title"
    full = run_protocol("adapt", small, **options)
    assert application.auth.access.scope("evaluate-sample-titles").collection.key_building == "full"
    recall = [
        figure(report, "recall@10", "lexical", adapt_table.BASE, adapt_table.OTHER_GROUP)
        for report in (titles, full)
    ]
    assert recall[0] < recall[1] - 0.1


def test_a_rekey_that_was_stopped_is_finished_first(application: Application, sample_dataset: Dataset) -> None:
    few = replace(sample_dataset, name="sample-stopped", passages=sample_dataset.passages[:5], questions=())
    harness = open_harness(application, few, lambda *_: None)
    application.corpus.rekey.request(application.auth.access.scope(harness.collection), "title")
    harness.rekey("abstract", lambda *_: None)
    assert application.auth.access.scope(harness.collection).collection.key_building == "abstract"


def line(retriever: str, fraction: float, keys: str, group: str, turn: int, ndcg: float, n: int) -> SummaryLine:
    return SummaryLine(adapt_table.arm(retriever, fraction, keys), group, turn, n, {"ndcg@10": ndcg, "ms": 12.34})


LINES = [
    line("dense", 0.3, adapt_table.BASE, adapt_table.ADAPTED_GROUP, 0, 0.5, 3),
    line("dense", 0.3, adapt_table.BASE, adapt_table.OTHER_GROUP, 0, 0.7, 9),
    line("dense", 0.3, "supported", adapt_table.ADAPTED_GROUP, 1, 0.9, 3),
    line("dense", 0.3, "supported", adapt_table.OTHER_GROUP, 1, 0.69, 9),
    line("dense", 0.3, adapt_table.BASE, adapt_table.PRICE, 0, 0.5, 3),
    line("dense", 0.3, adapt_table.EVOLVED_ARM, adapt_table.PRICE, 1, 0.9, 3),
    line("dense", 0.3, adapt_table.EXPANDED_ARM, adapt_table.PRICE, 0, 0.8, 3),
]


def test_tables_by_hand() -> None:
    assert adapt_table.headings("ndcg@10") == ["nDCG@10", "adapted", "near", "sharing", "others"]
    assert adapt_table.rows(LINES, "ndcg@10") == [
        ["questions, 30%", "3", "", "", "9"],
        ["dense, 30%, supported", "0.500 -> 0.900", "", "", "0.700 -> 0.690"],
    ]
    assert adapt_table.price_rows(LINES) == [["dense, 30%", "0.500, 12.3", "0.900, 12.3", "0.800, 12.3"]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"fractions": ()},
        {"fractions": (0.0,)},
        {"fractions": (1.5,)},
        {"fractions": (float("nan"),)},
        {"fractions": (0.5, 0.5)},
        {"retrievers": ("dense", "sparse")},
        {"ways": ()},
        {"ways": ("supported", "supported")},
        {"key_building": "x"},
        {"turns": 2},
        {"freeze": ("task",)},
        {"profile": "paper"},
        {"protocol": "similar", "fractions": (0.5,)},
        {"protocol": "cold", "key_building": "title"},
    ],
)
def test_options_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="--"):
        Options(**({"protocol": "adapt"} | wrong))


def test_other_ways_are_measured_at_the_middle_fraction() -> None:
    options = Options(protocol="adapt")
    assert [options.list_ways(fraction) for fraction in options.fractions] == [
        ("supported",),
        ("supported", "published", "ungated"),
        ("supported",),
    ]
    assert options.command("x") == "engram evaluate x --protocol adapt --seed 0"
    assert numbers("--fractions", "0.3,1") == (0.3, 1.0)
    with pytest.raises(InvalidRequestError, match="--fractions must be numbers"):
        numbers("--fractions", "0.3;1")

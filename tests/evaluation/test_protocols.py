"""Protocols on the sample corpus: who is judged and measured, resuming, verdicts, reports."""

import io
import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from rich.console import Console

from engram.composition.container import Application
from engram.composition.parts import retrieval_services
from engram.context.errors import InvalidRequestError
from engram.providers.embedder.model_folder import DEFAULT_MODEL, DEFAULT_MODEL_SHA256
from engram.providers.llm import Llm
from engram.providers.ranking_prior import SHIPPED_FILE
from engram.services.verdict.verdict import NamedSentence
from engram_evaluation import change_table
from engram_evaluation.dataset import Dataset, GoldSentence, Question, load
from engram_evaluation.harness import Harness, open_harness
from engram_evaluation.protocols import JUDGED_GROUP, OTHER_HALF, PARAPHRASES, SHARING_GROUP, UNJUDGED, plan
from engram_evaluation.run_options import Options
from engram_evaluation.verdict_givers import OracleJudge, ShownSentence
from engram_evaluation.weight_fit import fit_kinds
from tests.evaluation.conftest import FULL, Evaluate
from tests.evaluation.expected import ExpectedFigures, Figure, read_published
from tests.support.openai_server import OpenAiServer, keyword_handler
from tests.support.scopes import ANYWHERE
from tests.support.state import rows
from tests.support.undo import assert_verified

QUESTION = Question(
    "q", "Who?", frozenset({"a", "b"}), (GoldSentence("a", "A did."), GoldSentence("b", "B did.")), ""
)
SHOWN = [ShownSentence(1, "a", "A did."), ShownSentence(2, "x", "X did not.")]


@pytest.fixture
def few(sample_dataset: Dataset) -> Dataset:
    """Enough questions for every group of every protocol."""
    return replace(sample_dataset, questions=sample_dataset.questions[:12])


def options(protocol: Any, **more: Any) -> Options:
    return Options(protocol=protocol, **more)


def test_plans_of_the_sample(sample_dataset: Dataset) -> None:
    count = len(sample_dataset.questions)
    everything = plan(sample_dataset, options("similar"), 0)
    assert {name: len(group) for name, group in everything.groups.items()} == {
        JUDGED_GROUP: count,
        PARAPHRASES: count,
    }
    few = plan(sample_dataset, options("hostile", limit=5), 0)
    assert {name: len(group) for name, group in few.groups.items()} == {
        JUDGED_GROUP: 5,
        PARAPHRASES: 5,
        UNJUDGED: count - 5,
    }
    assert [q.id for q in few.groups[JUDGED_GROUP]] == [q.id for q in sample_dataset.questions[:5]]
    alone = sample_dataset.questions[:1]
    with pytest.raises(InvalidRequestError, match="sharing a passage"):
        plan(replace(sample_dataset, paraphrases={}, questions=alone), options("similar"), 0)
    with pytest.raises(InvalidRequestError, match="their paraphrases"):
        plan(replace(sample_dataset, questions=sample_dataset.questions[:0]), options("similar"), 0)


def test_without_paraphrases_questions_that_share_a_passage_take_their_place() -> None:
    relevant = {"1": "a", "2": "b", "3": "ac", "4": "d", "5": "c", "6": "b"}
    questions = tuple(Question(name, name, frozenset(passages), (), "") for name, passages in relevant.items())
    dataset = Dataset("shared", (), questions, {}, "x")

    def names(protocol: str, limit: int | None = None) -> dict[str, list[str]]:
        groups = plan(dataset, options(protocol, limit=limit), 0).groups
        return {name: [question.id for question in group] for name, group in groups.items()}

    assert names("similar") == {JUDGED_GROUP: ["1", "2"], SHARING_GROUP: ["3", "6"], UNJUDGED: ["4", "5"]}
    reworded = replace(dataset, paraphrases={"1": (questions[0],)})
    with_paraphrase = plan(reworded, options("similar"), 0).groups
    assert [question.id for question in with_paraphrase[SHARING_GROUP]] == ["3"]
    assert names("hostile", 1) == {JUDGED_GROUP: ["1"], UNJUDGED: ["2", "3", "4", "5", "6"]}


def test_halves_are_disjoint_within_each_type(sample_dataset: Dataset) -> None:
    first, second = (plan(sample_dataset, options("different"), seed) for seed in (0, 1))
    assert plan(sample_dataset, options("different"), 0) == first
    assert first.judged != second.judged
    other = {q.id for q in first.groups[OTHER_HALF]}
    judged_evidence = frozenset[str]().union(*(q.relevant for q in first.judged))
    sharing = [q for q in first.groups[OTHER_HALF] if q.relevant & judged_evidence]
    assert first.groups.get(SHARING_GROUP, []) == sharing
    assert not other & {q.id for q in first.judged}
    for kind in {q.type for q in sample_dataset.questions}:
        of_kind = [q for q in sample_dataset.questions if q.type == kind]
        assert sum(q.id in other for q in of_kind) == len(of_kind) - len(of_kind) // 2
    assert len(plan(sample_dataset, options("different", limit=7), 0).judged) == 7


def test_the_oracle_names_what_it_may() -> None:
    query_id = uuid4()
    full = OracleJudge("full")(ANYWHERE, query_id, QUESTION, SHOWN)
    assert full is not None
    assert full.supporting == [
        NamedSentence(passage_id="a", text="A did."),
        NamedSentence(passage_id="b", text="B did."),
    ]
    returned = OracleJudge("returned")(ANYWHERE, query_id, QUESTION, SHOWN)
    assert returned is not None
    assert returned.supporting == [NamedSentence(1)]
    assert returned.rejected == [NamedSentence(s.sentence_id) for s in SHOWN if s.sentence_id != 1]
    assert not full.partial
    assert returned.partial


def test_without_gold_sentences_the_oracle_names_passages() -> None:
    query_id, bare = uuid4(), replace(QUESTION, gold=())
    full = OracleJudge("full")(ANYWHERE, query_id, bare, SHOWN)
    assert full is not None
    assert (full.supporting_passages, full.named, full.partial) == (["a", "b"], [], False)
    returned = OracleJudge("returned")(ANYWHERE, query_id, bare, SHOWN)
    assert returned is not None
    assert returned.supporting_passages == ["a"]
    assert (returned.supporting, returned.rejected) == ((), [NamedSentence(2)])
    assert (returned.partial, returned.retrieval_success) == (True, True)
    unseen = OracleJudge("returned")(ANYWHERE, query_id, bare, SHOWN[1:])
    assert unseen is not None
    assert (unseen.supporting_passages, unseen.retrieval_success) == ([], False)
    assert OracleJudge("full")(ANYWHERE, query_id, replace(bare, relevant=frozenset()), SHOWN) is None


def test_passages_alone_teach_the_judged_questions(
    run_protocol: Evaluate, application: Application, sample_dataset: Dataset
) -> None:
    bare = replace(
        sample_dataset,
        questions=tuple(replace(question, gold=()) for question in sample_dataset.questions[:12]),
        paraphrases={of: (replace(one, gold=()),) for of, (one,) in sample_dataset.paraphrases.items()},
    )
    report = run_protocol("similar", bare, limit=6)
    before, after = (report.value("recall@2", JUDGED_GROUP, turn) for turn in (0, 1))
    assert after > before
    assert report.value("recall@5", JUDGED_GROUP, 1) == 1.0
    assert "No question has gold sentences: verdicts name passages." in report.markdown()
    collection = f"evaluate-{bare.name}"
    likely = [row for row in rows(application, collection, "verdict_sentence") if row["role"] == "likely"]
    assert {row["examined"] for row in likely} == {0.5}
    assert len(likely) == sum(len(question.relevant) for question in bare.questions[:6])
    assert_verified(application, collection)


def test_oracle_of_returned_passages_supports_unselected_sentences() -> None:
    more = [ShownSentence(70, "b", "B did.", selected=False), ShownSentence(80, "b", "B did not.", selected=False)]
    returned = OracleJudge("returned")(ANYWHERE, uuid4(), QUESTION, [*SHOWN, *more])
    assert returned is not None
    assert returned.supporting == [NamedSentence(1), NamedSentence(70)]
    assert NamedSentence(80) not in returned.rejected


def test_model_requests_are_counted(run_protocol: Evaluate) -> None:
    with (
        OpenAiServer(keyword_handler) as server,
        Llm(base_url=server.base_url, api_key=None, model="test") as llm,
    ):
        report = run_protocol("cold", limit=3, stop_rule="llm", models={"llm": llm})
        asked = len(server.requests)
    counted = sum(row.values["llm_calls"] for phase in report.phases for row in phase.rows)
    assert counted == asked > 0


def test_hops_end_by_the_rule_that_is_asked_for(run_protocol: Evaluate, monkeypatch: pytest.MonkeyPatch) -> None:
    """`learned` ends the default profile's hops; the other has no features to tell by and keeps its own rule."""
    never = run_protocol("cold", limit=4, stop_rule="none")
    monkeypatch.setattr(retrieval_services, "SUFFICIENCY_THRESHOLD", 0.0)  # whatever it says is enough
    learned = run_protocol("cold", limit=4, stop_rule="learned", configuration={})
    hops = {
        (rule, arm): report.value("hops", "all questions", 0, arm)
        for rule, report in (("none", never), ("learned", learned))
        for arm in ("paper", "default")
    }
    assert hops["learned", "default"] == 1.0 < hops["none", "default"]
    assert hops["learned", "paper"] == hops["none", "paper"]
    with pytest.raises(InvalidRequestError, match="--stop-rule learned means nothing to --profile paper"):
        options("similar", profile="paper", stop_rule="learned")


def test_a_stopped_run_goes_on_where_it_was(
    run_protocol: Evaluate, few: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask, teach = Harness.ask, Harness.teach

    def ask_and_record(self: Harness, question: Question, arm: Any, **more: Any) -> Any:
        asked.append(question.id)
        return ask(self, question, arm, **more)

    def stop_at_second(self: Harness, question: Question, arm: Any, judge: Any) -> Any:
        if "verdict" in asked:
            raise KeyboardInterrupt
        asked.append("verdict")
        return teach(self, question, arm, judge)

    monkeypatch.setattr(Harness, "ask", ask_and_record)
    with monkeypatch.context() as patch:
        patch.setattr(Harness, "teach", stop_at_second)
        with pytest.raises(KeyboardInterrupt):
            run_protocol("similar", few, limit=4)
    finished = len(list(tmp_path.rglob("*.json")))
    assert finished == 3  # before, one file per group
    before = len(asked)
    resumed = run_protocol("similar", few, limit=4)
    groups = len(resumed.phases[0].rows), len(resumed.phases[1].rows), len(resumed.phases[2].rows)
    # Nothing of "before" is measured again: only the verdicts, and turn 1 with memory and without.
    assert len(asked) - before == 4 + 2 * sum(groups)
    asked.clear()
    again = run_protocol("similar", few, limit=4)
    assert asked == []
    assert [phase.rows for phase in again.phases] == [phase.rows for phase in resumed.phases]


def test_a_damaged_phase_is_measured_again(run_protocol: Evaluate, tmp_path: Path) -> None:
    first = run_protocol("cold", limit=3)
    for path in tmp_path.glob("phases/*/*.json"):
        path.write_text("{", encoding="utf-8")
    second = run_protocol("cold", limit=3)
    assert [row.ranking for p in first.phases for row in p.rows] == [
        row.ranking for p in second.phases for row in p.rows
    ]


def test_reports_say_what_was_done(run_protocol: Evaluate, few: Dataset, tmp_path: Path) -> None:
    report = run_protocol("different", replace(few, questions=few.questions[:8]), limit=3, seeds=(0, 1), turns=2)
    slug = "sample-different-default-turns-2-full-seed-0-seed-1-limit-3"
    document = json.loads((tmp_path / f"{slug}.json").read_text(encoding="utf-8"))
    assert document["command"] == (
        "engram evaluate sample --protocol different --profile default --turns 2 --verdicts full "
        "--seed 0 --seed 1 --limit 3"
    )
    groups = {JUDGED_GROUP, PARAPHRASES, OTHER_HALF}
    main = [phase for phase in document["phases"] if phase["group"] in groups]
    assert len(main) == 2 * 3 * 3  # seeds, groups, turns
    assert {row["group"] for row in document["summary"]} - {SHARING_GROUP} == groups
    question = document["phases"][0]["questions"][0]
    assert set(question["values"]) >= {"recall@5", "ndcg@10", "mrr", "support", "hops", "shown", "ms"}
    markdown = (tmp_path / f"{slug}.md").read_text(encoding="utf-8")
    assert document["command"] in markdown
    assert "Means over 2 seeds." in markdown
    assert "95% interval" in markdown
    console = Console(width=120, file=io.StringIO(), record=True)
    console.print(report.table())
    assert "judged questions, turn 2" in console.export_text()


def test_what_bystanders_lose_stands_beside_what_is_gained(
    run_protocol: Evaluate, few: Dataset, tmp_path: Path
) -> None:
    report = run_protocol("similar", few, limit=4)
    document = json.loads((tmp_path / f"{report.options.slug('sample')}.json").read_text(encoding="utf-8"))
    changes = {(change["group"], change["metric"]): change for change in document["changes"]}
    assert {group for group, _ in changes} == {phase.group for phase in report.phases}
    judged = changes[JUDGED_GROUP, "recall@5"]
    assert (judged["before"], judged["after"]) == tuple(
        report.value("recall@5", JUDGED_GROUP, turn) for turn in (0, 1)
    )
    for change in changes.values():
        assert change["off"] == change["before"]  # without memory nothing has changed
        assert change["gained"] + change["lost"] <= change["questions"]
    (table,) = report.build_further_tables()
    assert table.title == change_table.TITLE
    assert "memory off" in [column.header for column in table.columns]


def test_an_older_version_of_the_corpus_leaves_nothing_behind(
    application: Application, run_protocol: Evaluate, sample_dataset: Dataset
) -> None:
    smaller = replace(sample_dataset, name="sample-versions", passages=sample_dataset.passages[:5], questions=())
    harness = Harness(application, "evaluate-sample-versions")
    harness.ingest(smaller, lambda *_: None)
    harness.ingest(replace(smaller, passages=smaller.passages[1:4]), lambda *_: None)
    assert application.auth.access.scope("evaluate-sample-versions").collection.passage_count == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"protocol": "nonsense"},
        {"profile": "x"},
        {"turns": 0},
        {"limit": 0},
        {"verdicts": "x"},
        {"seeds": (1, 1)},
        {"stop_rule": "x"},
        {"freeze": ("task",)},
        {"protocol": "similar", "freeze": ("task", "x")},
        {"protocol": "similar", "freeze": ("task", "task")},
    ],
)
def test_options_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="--"):
        Options(**({"protocol": "cold"} | wrong))


def test_frozen_scopes_are_part_of_the_command_in_one_order() -> None:
    one, other = (options("similar", freeze=scopes) for scopes in (("weights", "task"), ("task", "weights")))
    assert one.command("x") == other.command("x")
    assert one.command("x").endswith(" --freeze task --freeze weights")
    assert one.slug("x").endswith("-freeze-task-freeze-weights")


def check(run_protocol: Evaluate, expected: ExpectedFigures, dataset: Dataset, weights: Path | None = None) -> None:
    options = expected.options.as_json()
    report = run_protocol(options.pop("protocol"), dataset, configuration={"ranking_prior": weights}, **options)
    assert expected.deviations(report) == []


@pytest.mark.parametrize("expected", [run for run in read_published() if run.quick], ids=lambda run: run.command)
def test_published_figures_that_take_seconds(
    run_protocol: Evaluate, sample_dataset: Dataset, expected: ExpectedFigures
) -> None:
    check(run_protocol, expected, sample_dataset)


@pytest.mark.evaluation_data
@pytest.mark.timeout(3600)
@FULL
@pytest.mark.parametrize(
    "expected", [run for run in read_published() if not run.quick], ids=lambda run: run.command
)
def test_published_figures(
    application: Application,
    run_protocol: Evaluate,
    sample_dataset: Dataset,
    evaluation_data: Path,
    tmp_path: Path,
    expected: ExpectedFigures,
) -> None:
    weights = None
    if expected.fitted:
        datasets = [load(evaluation_data / name) for name in expected.fitted]
        corpora = [(open_harness(application, dataset, lambda *_: None), dataset) for dataset in datasets]
        weights = tmp_path / "weights.json"
        weights.write_text(
            json.dumps(
                fit_kinds(corpora, lambda *_: lambda: None, json.loads(SHIPPED_FILE.read_text(encoding="utf-8")))
            ),
            encoding="utf-8",
        )
    dataset = sample_dataset if expected.dataset == "sample" else load(evaluation_data / expected.dataset)
    check(run_protocol, expected, dataset, weights)


def test_a_figure_out_of_tolerance_is_named(run_protocol: Evaluate) -> None:
    report = run_protocol("cold", limit=2)
    expected = ExpectedFigures(
        "sample", report.options, True, (Figure("all questions", 0, "mrr", 2.0, 0.5, "dense"),)
    )
    (line,) = expected.deviations(report)
    assert line.startswith("mrr of dense, all questions, turn 0: expected 2.0 ± 0.5, got")
    with pytest.raises(KeyError, match="recall@5 of nobody, turn 0"):
        report.value("recall@5", "nobody", 0)


def test_a_report_names_what_found_the_names(run_protocol: Evaluate, few: Dataset) -> None:
    """A pipeline that is configured and not installed is not what a figure rests on."""
    installed = find_spec("en_core_web_sm") is not None
    engine = run_protocol("cold", few, limit=1).as_json()["engine"]
    assert engine["spacy_model"] == ("en_core_web_sm" if installed else "rules")


def test_a_report_names_the_encoder_and_whose_weights_it_used(run_protocol: Evaluate) -> None:
    """Another encoder's figures are not those of the one that the shipped weights were fitted with."""
    report = run_protocol("cold", limit=1)
    assert report.engine["embedding_model"] == DEFAULT_MODEL
    assert report.engine["embedding_fingerprint"] == DEFAULT_MODEL_SHA256[:16]
    assert "The shipped ranking weights were fitted with" not in report.markdown()
    other = replace(report, engine={**report.engine, "embedding_model": "mine"})
    said = f"Encoder: mine. The shipped ranking weights were fitted with {DEFAULT_MODEL}."
    assert said in other.markdown()
    assert said not in replace(other, options=options("similar", profile="paper")).markdown()

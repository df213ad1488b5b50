"""Ways to learn with a part left out, erring judges, and the protocols that compare them."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from rich.console import Console

from engram.composition.container import Application, Servers
from engram.context.errors import InvalidRequestError
from engram.core.ranking.profiles import DEFAULT, Profile
from engram.services.question.pipeline import QuestionPipeline
from engram.services.question.query import Query
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.wings.published.core.paper_profile import PAPER
from engram_evaluation import levels_table
from engram_evaluation.arrivals import arrivals
from engram_evaluation.commands.evaluate_command import build_variation
from engram_evaluation.dataset import Dataset, GoldSentence, Question
from engram_evaluation.evaluation_run import evaluate
from engram_evaluation.learning_variations import (
    COMPARED_VARIATIONS,
    FIXED_GAIN,
    FLIP_RATES,
    HOSTILE,
    NOISE,
    PASSAGE_KEYS,
    RULES,
    Variation,
    flip_verdicts,
    list_variations,
)
from engram_evaluation.protocols import JUDGED_GROUP, PARAPHRASES
from engram_evaluation.run_options import SCOPES, Options
from engram_evaluation.verdict_givers import OracleJudge, ShownSentence
from tests.evaluation.conftest import Evaluate
from tests.support.scopes import ANYWHERE
from tests.support.state import rows

QUESTION = "Where was Marie Curie born in 1867?"


@pytest.fixture
def few(sample_dataset: Dataset) -> Dataset:
    return replace(sample_dataset, questions=sample_dataset.questions[:5])


def teach(services: Application, collection: str) -> dict[str, list[dict[str, Any]]]:
    """The audit of one verdict, by scope."""
    answer = services.answers.question.answer(Query(text=QUESTION, scope=services.auth.access.scope(collection)))
    supporting = [NamedSentence(passage_id="curie", text="Marie Curie was born in Warsaw in 1867.")]
    verdict = Verdict(query_id=answer.query_id, scope=services.auth.access.scope(collection), supporting=supporting)
    services.learning.verdicts.accept(verdict, f"vary-{uuid4()}", wait=True)
    audit: dict[str, list[dict[str, Any]]] = {}
    for row in rows(services, collection, "memory_audit"):
        audit.setdefault(row["channel"], []).append(row)
    if of_weights := rows(services, collection, "weight_audit"):
        audit["weights"] = of_weights
    return audit


@pytest.mark.parametrize("scope", SCOPES)
def test_a_frozen_scope_does_not_move(application: Application, addresses: Servers, curie: str, scope: str) -> None:
    services = build_variation(application, addresses, Variation("x", frozen=frozenset({scope})))
    audit = teach(services, curie)
    services.close()
    assert set(audit) == set(SCOPES) - {scope}
    assert bool(rows(application, curie, "learned_weights")) == (scope != "weights")


def test_a_fixed_gain_ignores_perplexity(application: Application, addresses: Servers, curie: str) -> None:
    services = build_variation(application, addresses, Variation("x", fixed_gain=FIXED_GAIN))
    teach(services, curie)
    audit = teach(services, curie)
    services.close()
    gains = [row["gain"] for scope, channel in audit.items() if scope != "weights" for row in channel]
    assert len(gains) > 3
    assert gains == pytest.approx([FIXED_GAIN] * len(gains))


def test_a_flipped_verdict_says_the_opposite() -> None:
    question = Question("q", "Who?", frozenset({"a"}), (GoldSentence("a", "A did."),), "")
    shown = [ShownSentence(1, "a", "A did."), ShownSentence(2, "x", "X did not.")]
    for verdicts in ("full", "returned"):
        oracle = OracleJudge(verdicts)  # type: ignore[arg-type]
        honest = oracle(ANYWHERE, uuid4(), question, shown)
        flipped = flip_verdicts(oracle, 1.0, "0/1")(ANYWHERE, uuid4(), question, shown)
        assert honest is not None
        assert flipped is not None
        assert (flipped.supporting, flipped.rejected) == ([NamedSentence(2)], honest.supporting)


def test_a_flipped_verdict_by_passages_says_the_opposite() -> None:
    question = Question("q", "Who?", frozenset({"a", "b"}), (), "")
    shown = [
        ShownSentence(1, "a", "A did."),
        ShownSentence(2, "x", "X did not."),
        ShownSentence(3, "a", "A too.", selected=False),
    ]
    flipped = flip_verdicts(OracleJudge("full"), 1.0, "0/1")(ANYWHERE, uuid4(), question, shown)
    assert flipped is not None
    assert flipped.supporting_passages == ["x"]
    assert (flipped.supporting, flipped.rejected) == ((), [NamedSentence(1), NamedSentence(3)])


def test_the_share_of_flipped_verdicts_is_kept_and_repeatable() -> None:
    shown = [ShownSentence(1, "a", "A did."), ShownSentence(2, "x", "X did not.")]

    def flips(seed: str) -> list[bool]:
        judge = flip_verdicts(OracleJudge("returned"), 0.2, seed)
        questions = [
            Question(f"q{at}", "Who?", frozenset({"a"}), (GoldSentence("a", "A did."),), "") for at in range(1000)
        ]
        verdicts = [judge(ANYWHERE, uuid4(), question, shown) for question in questions]
        return [verdict is not None and verdict.supporting == [NamedSentence(2)] for verdict in verdicts]

    # Binomial(1000, 0.2) has standard deviation 12.6.
    assert 150 < sum(flips("0/1")) < 250
    assert flips("0/1") == flips("0/1")
    assert flips("0/1") != flips("0/2")


def test_arrivals_repeat_as_zipf_says(sample_dataset: Dataset) -> None:
    asked = arrivals(sample_dataset.questions, 400, seed=0)
    assert asked == arrivals(sample_dataset.questions, 400, seed=0)
    assert asked != arrivals(sample_dataset.questions, 400, seed=1)
    assert len({question.id for question in asked}) == 400
    counts: dict[str, int] = {}
    for question in asked:
        counts[question.text] = counts.get(question.text, 0) + 1
    # The likeliest of n questions comes with probability 1 / H(n), H(n) being the n-th harmonic number.
    likeliest = 400 / sum(1 / rank for rank in range(1, len(sample_dataset.questions) + 1))
    assert 0.7 * likeliest < max(counts.values()) < 1.3 * likeliest


def test_the_noise_protocol_compares_rules_at_each_rate(
    run_protocol: Evaluate, few: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last rule asks without the gate."""
    asked: dict[bool, int] = {True: 0, False: 0}
    ask = QuestionPipeline.answer

    def query_and_record(self: QuestionPipeline, query: Query, profile: Profile, **more: Any) -> Any:
        asked[not profile.policy.gated] += 1
        return ask(self, query, profile, **more)

    monkeypatch.setattr(QuestionPipeline, "answer", query_and_record)
    report = run_protocol("noise", few, limit=3)
    measured = sum(
        line.questions for line in report.lines() if (line.turn, line.arm) == (1, "Kalman gain, 0% flipped")
    )
    ungated = len(FLIP_RATES)  # of the arms; before any verdict each group is asked once for all of a kind
    gated = ungated * (len(RULES) - 1)
    assert asked == {True: measured + ungated * (3 + measured), False: measured + gated * (3 + measured)}
    assert [line.arm for line in report.lines() if (line.group, line.turn) == (JUDGED_GROUP, 1)] == [
        variation.name for variation in NOISE
    ]
    assert [rule.fixed_gain for rule in RULES] == [None, 0.05, 0.1, 0.3, None]
    markdown = report.markdown()
    assert "judged questions, turn 1, Kalman gain, 20% flipped" in markdown
    assert "## Gain by turn 1, and the share kept under flipped verdicts" in markdown
    console = Console(width=160, file=io.StringIO(), record=True)
    console.print(*report.build_further_tables())
    shown = console.export_text()
    before, honest, flipped = (
        report.value("recall@5", JUDGED_GROUP, turn, f"Kalman gain, {share} flipped")
        for turn, share in ((0, "0%"), (1, "0%"), (1, "20%"))
    )
    line = next(line for line in shown.splitlines() if "judged questions, Kalman gain" in line)
    assert line.split()[4:7] == [
        f"{honest - before:+.3f}",
        f"{flipped - before:+.3f}",
        f"{(flipped - before) / (honest - before):.0%}",
    ]
    for rule in RULES:
        assert f"judged questions, {rule.name}" in shown


def test_many_new_names_move_nothing_where_a_trusted_one_spoke(
    run_protocol: Evaluate, application: Application, few: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = tuple(replace(way, sybils=12) for way in HOSTILE if way.sybils)
    monkeypatch.setitem(COMPARED_VARIATIONS, "hostile", many)
    report = run_protocol("hostile", few, limit=3)
    new, trusted, uncapped = (way.name for way in many)
    recall = [report.value("recall@5", JUDGED_GROUP, turn, new) for turn in range(3)]
    assert recall[2] >= recall[1] - 0.01
    assert (
        report.value("recall@5", JUDGED_GROUP, 2, uncapped)
        <= report.value("recall@5", JUDGED_GROUP, 2, trusted)
        <= recall[2]
    )
    events = rows(application, f"evaluate-{few.name}", "feedback_event")
    judges = {row["judge"] for row in events}
    assert judges == {"oracle", *(f"sybil-{n}" for n in range(12))}, "of the last way: each is a name of its own"
    assert {row["standing"] for row in events} == {1.0}, "and all are trusted"


def test_levels_are_measured_together_left_out_and_alone(
    run_protocol: Evaluate, application: Application, sample_dataset: Dataset
) -> None:
    """In profile paper, passage keys are a level where the data set has expansions. Arms begin alike."""
    few = replace(sample_dataset, questions=sample_dataset.questions[:8])
    report = run_protocol("levels", few, limit=3, profile="paper")
    arms = [variation.name for variation in list_variations("levels", PAPER, has_expansions=True)]
    assert arms == ["all levels", "without sentence memories", f"without {PASSAGE_KEYS}"]
    (grid,) = levels_table.build_grids(report.lines())
    assert grid.headings[:3] == [levels_table.METRICS, f"{JUDGED_GROUP} (3)", f"{PARAPHRASES} (3)"]
    assert [row[0] for row in grid.rows] == [levels_table.BEFORE, *arms]
    assert all(len(row) == len(grid.headings) for row in grid.rows)
    assert not rows(application, f"evaluate-{few.name}", "passage_key")  # of the last arm, without passage keys
    assert rows(application, f"evaluate-{few.name}", "question_support")
    markdown = report.markdown()
    assert f"| {levels_table.BEFORE} | " in markdown
    assert "## What verdicts change" not in markdown
    assert report.drift == ()


@pytest.mark.parametrize(
    ("profile", "has_expansions", "names"),
    [
        (DEFAULT, True, ["all levels", "without question memory"]),
        (
            replace(PAPER, recalls=True),
            True,
            [
                "all levels",
                "without question memory",
                "without sentence memories",
                "without passage keys",
                "question memory alone",
                "sentence memories alone",
                "passage keys alone",
            ],
        ),
        (PAPER, False, ["all levels", "without sentence memories"]),
    ],
)
def test_levels_are_those_that_the_profile_reads(profile: Profile, has_expansions: bool, names: list[str]) -> None:
    variations = list_variations("levels", profile, has_expansions=has_expansions)
    assert [variation.name for variation in variations] == names
    (every, *_) = variations
    assert (every.name, every.frozen) == ("all levels", frozenset())
    assert any(variation.expanded for variation in variations) == (PASSAGE_KEYS in " ".join(names))
    assert len({(variation.frozen, variation.expanded) for variation in variations}) == len(variations)


def test_a_frozen_run_leaves_its_scopes_alone(
    run_protocol: Evaluate, application: Application, few: Dataset
) -> None:
    """And its phases are not those of a whole run."""
    frozen = run_protocol("similar", few, limit=4, freeze=("recall", "time"))
    channels = {row["channel"] for row in rows(application, f"evaluate-{few.name}", "memory_audit")}
    assert "task" in channels
    assert not channels & {"recall", "time"}
    assert rows(application, f"evaluate-{few.name}", "weight_audit")
    whole = run_protocol("similar", few, limit=4)
    assert whole.value("hops", JUDGED_GROUP, 1) < frozen.value("hops", JUDGED_GROUP, 1)


def test_turns_between_are_taught_and_not_measured(run_protocol: Evaluate, few: Dataset) -> None:
    every = run_protocol("similar", few, limit=3, turns=4)
    some = run_protocol("similar", few, limit=3, turns=4, at=(2,))
    assert {phase.turn for phase in some.phases} == {0, 2, 4}
    for turn in (0, 2, 4):
        assert some.value("recall@5", JUDGED_GROUP, turn) == every.value("recall@5", JUDGED_GROUP, turn)
        assert some.value("hops", JUDGED_GROUP, turn) == every.value("hops", JUDGED_GROUP, turn)
    assert "--turns 4 --at 2 " in some.options.command(few.name)


@pytest.mark.parametrize("at", [(0,), (5,), (2, 2), (-1,)])
def test_turns_to_measure_after_lie_among_the_turns(at: tuple[int, ...]) -> None:
    with pytest.raises(InvalidRequestError, match="--at"):
        Options(protocol="similar", turns=4, at=at)


def test_seeds_share_the_connections_of_a_way_to_learn(
    application: Application, few: Dataset, tmp_path: Path
) -> None:
    opened: list[str] = []

    def vary(variation: Variation) -> Application:
        opened.append(variation.name)
        return application

    asked = Options(protocol="levels", limit=1, seeds=(0, 1))
    evaluate(application, vary, few, asked, tmp_path, Console(file=io.StringIO()))
    assert opened == ["all levels", "without question memory"]


def test_the_parameters_of_a_variation_are_plain_and_in_one_order() -> None:
    parameters = Variation("x", frozen=frozenset(SCOPES)).parameters()
    assert parameters["frozen"] == sorted(SCOPES)
    assert json.loads(json.dumps(parameters)) == parameters

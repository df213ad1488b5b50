"""Learning with an encoder whose cosines all lie close together.

An affine map of all cosines says nothing new of any text, so what question memory recalls must not depend on it. A
constant that is a cosine fails here. Ranking weights stand still: they were fitted to the cosines of one encoder.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.harness import Harness, QueryArm
from engram_evaluation.retrieval_metrics import score, summary
from engram_evaluation.verdict_givers import OracleJudge
from tests.conftest import Heavy
from tests.evaluation.conftest import IS_FULL
from tests.support.encoder import SqueezedEncoder

JUDGED, OTHERS = 12, 20
"""Questions of the sample corpus that get a verdict, and others."""
SQUEEZED = (0.5, 0.75) if IS_FULL else (0.75,)
LEAST_CHANGE = 0.005
"""Of recall@5 and nDCG@10, in what is asked of other questions."""
State = Literal["after", "memory off"]
"""Without memory and without weights, answers are those before the verdicts."""


@dataclass(frozen=True, slots=True)
class Figures:
    """recall@5 and nDCG@10 of each group, in each state."""

    by_state: Mapping[tuple[State, str], tuple[float, float]]

    def __getitem__(self, key: tuple[State, str]) -> tuple[float, float]:
        return self.by_state[key]


Squeeze = Callable[[float], Figures]


@pytest.fixture(scope="module")
def squeeze(settings: Settings, addresses: Servers, heavy: Heavy, sample_dataset: Dataset) -> Squeeze:
    """Measure the sample corpus before and after verdicts, with vectors squeezed by a share."""
    judged = sample_dataset.questions[:JUDGED]
    groups: dict[str, Sequence[Question]] = {
        "judged": judged,
        "paraphrases": sample_dataset.list_paraphrases(judged),
        "others": sample_dataset.questions[JUDGED : JUDGED + OTHERS],
    }

    @cache
    def measure(share: float) -> Figures:
        with closing(Application(settings, addresses, consumer=f"squeezed-{share:g}")) as services:
            services.models.embedder, services.models.language = SqueezedEncoder(heavy[0], share), heavy[1]
            services.models.weight_priors = lambda kind: {}
            harness = Harness(services, f"squeezed-{share:g}")
            harness.ingest(replace(sample_dataset, name=harness.collection), lambda *_: None)
            read = QueryArm("default", "read")
            figures: dict[tuple[State, str], tuple[float, float]] = {}
            for question in judged:
                harness.teach(replace(question, gold=()), read, OracleJudge("full"))
            for state, arm in (("after", read), ("memory off", replace(read, memory="off"))):
                figures |= {(state, name): ask(harness, group, arm) for name, group in groups.items()}
        return Figures(figures)

    return measure


def ask(harness: Harness, questions: Sequence[Question], arm: QueryArm) -> tuple[float, float]:
    values = summary(score([harness.ask(question, arm)[1] for question in questions]))
    return values["recall@5"], values["ndcg@10"]


def test_a_squeezed_space_keeps_the_order_of_cosines(heavy: Heavy, sample_dataset: Dataset) -> None:
    texts = [question.text for question in sample_dataset.questions[:20]]
    plain = heavy[0].embed(texts)
    for share in SQUEEZED:
        vectors = SqueezedEncoder(heavy[0], share).embed(texts)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-6)
        assert vectors @ vectors.T == pytest.approx(share + (1 - share) * (plain @ plain.T), abs=1e-5)


@pytest.mark.parametrize("share", SQUEEZED)
def test_without_verdicts_a_squeezed_space_finds_nearly_as_much(squeeze: Squeeze, share: float) -> None:
    for group, tolerance in (("judged", 0.05), ("paraphrases", 0.05), ("others", 0.03)):
        assert squeeze(share)["memory off", group] == pytest.approx(
            squeeze(0.0)["memory off", group], abs=tolerance
        )


@pytest.mark.parametrize("share", [0.0, *SQUEEZED])
def test_verdicts_teach_the_judged_questions_whatever_the_space(squeeze: Squeeze, share: float) -> None:
    recall, _ = squeeze(share)["after", "judged"]
    assert recall >= 0.98


@pytest.mark.parametrize("share", [0.0, *SQUEEZED])
def test_other_questions_lose_nothing_whatever_the_space(squeeze: Squeeze, share: float) -> None:
    figures = squeeze(share)
    for after, off in zip(figures["after", "others"], figures["memory off", "others"], strict=True):
        assert after >= off - LEAST_CHANGE


@pytest.mark.parametrize("share", SQUEEZED)
@pytest.mark.parametrize("group", ["judged", "paraphrases", "others"])
def test_verdicts_change_as_much_whatever_the_space(squeeze: Squeeze, share: float, group: str) -> None:
    changes = [
        np.subtract(figures["after", group], figures["memory off", group])
        for figures in (squeeze(0.0), squeeze(share))
    ]
    assert changes[1] == pytest.approx(changes[0], abs=0.05)

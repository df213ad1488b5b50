"""The prior of the ranking weights as a file: written and read alike, and refused in one line where it is none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.core.ranking import sufficiency
from engram.core.ranking.passage_scores import BASE_FEATURES, PASSAGE_FEATURES
from engram.core.ranking.weight_beliefs import WeightBelief
from engram.providers.ranking_prior import SHIPPED_FILE, RankingPrior, from_json, load_priors
from engram_evaluation.prior_files import format_ranking

SIZE = len(PASSAGE_FEATURES)
LITTLE = len(sufficiency.ANSWER_FEATURES)
EXPECTED = np.random.default_rng(7).normal(size=(len(sufficiency.PATTERNED), LITTLE))


def draw_prior(seed: int = 0) -> WeightBelief:
    draw = np.random.default_rng(seed)
    root = draw.normal(size=(SIZE, SIZE))
    return WeightBelief(draw.normal(size=SIZE) * 10.0 ** draw.integers(-8, 8, SIZE), root @ root.T + np.eye(SIZE))


def draw_sufficiency_prior(seed: int = 0) -> WeightBelief:
    draw = np.random.default_rng(seed + 1)
    root = draw.normal(size=(LITTLE, LITTLE))
    return WeightBelief(draw.normal(size=LITTLE), root @ root.T + np.eye(LITTLE))


def draw_base_weights(seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=len(BASE_FEATURES))


def content(**changed: Any) -> dict[str, Any]:
    return (
        format_ranking(
            draw_base_weights(), draw_prior(), ("one", "other"), draw_sufficiency_prior(), 0.25, EXPECTED
        )
        | changed
    )


def write(path: Path, general: object) -> Path:
    """A file whose weights for general corpora are these."""
    path.write_text(json.dumps({"encyclopedic": content(), "general": general}), encoding="utf-8")
    return path


def load_general(path: Path | None = None) -> RankingPrior:
    return load_priors(path).general


def test_written_prior_reads_back_equal(tmp_path: Path) -> None:
    prior = draw_prior()
    read = load_general(
        write(
            tmp_path / "prior.json",
            format_ranking(draw_base_weights(), prior, ("one", "other"), draw_sufficiency_prior(), 0.25, EXPECTED),
        )
    )

    np.testing.assert_allclose(read.prior.mean, prior.mean, rtol=1e-5)
    np.testing.assert_allclose(read.prior.precision, prior.precision, rtol=1e-5)
    np.testing.assert_allclose(read.base_weights, draw_base_weights(), rtol=1e-5)
    np.testing.assert_allclose(read.sufficiency.mean, draw_sufficiency_prior().mean, rtol=1e-5)
    np.testing.assert_allclose(read.sufficiency.precision, draw_sufficiency_prior().precision, rtol=1e-5)
    assert read.fitted == ("one", "other")
    assert read.sufficiency_level == 0.25
    np.testing.assert_allclose(read.sufficiency_expected, EXPECTED, rtol=1e-5)


def test_rounding_is_done_once(tmp_path: Path) -> None:
    first = load_general(write(tmp_path / "first.json", content()))
    second = load_general(
        write(
            tmp_path / "second.json",
            format_ranking(
                first.base_weights,
                first.prior,
                first.fitted,
                first.sufficiency,
                first.sufficiency_level,
                first.sufficiency_expected,
            ),
        )
    )

    assert second.name == first.name
    assert second.sufficiency_name == first.sufficiency_name
    np.testing.assert_array_equal(second.sufficiency.precision, first.sufficiency.precision)
    np.testing.assert_array_equal(second.base_weights, first.base_weights)
    np.testing.assert_array_equal(second.prior.mean, first.prior.mean)
    np.testing.assert_array_equal(second.prior.precision, first.prior.precision)


def test_the_name_is_that_of_the_numbers() -> None:
    name = from_json(content()).name
    other = draw_prior()
    other.mean[3] += 1.0
    firmer = WeightBelief(draw_prior().mean, 2.0 * draw_prior().precision)

    assert from_json(content(fitted=["elsewhere"])).name == name
    others = [(draw_base_weights(), other), (draw_base_weights(), firmer), (draw_base_weights(1), draw_prior())]
    assert (
        len(
            {
                name,
                *(
                    from_json(format_ranking(first, prior, (), draw_sufficiency_prior(), 0.25, EXPECTED)).name
                    for first, prior in others
                ),
            }
        )
        == 4
    )


def test_sufficiency_name_depends_on_both_priors() -> None:
    read = from_json(content())
    refitted = from_json(
        format_ranking(draw_base_weights(), draw_prior(), (), draw_sufficiency_prior(1), 0.25, EXPECTED)
    )
    reranked = from_json(
        format_ranking(draw_base_weights(), draw_prior(1), (), draw_sufficiency_prior(), 0.25, EXPECTED)
    )

    assert refitted.name == read.name
    assert len({read.sufficiency_name, refitted.sufficiency_name, reranked.sufficiency_name}) == 3


def test_the_shipped_one_can_be_read_and_names_its_data_sets() -> None:
    shipped = load_general()

    assert shipped.fitted
    assert shipped.name == load_general(SHIPPED_FILE).name
    assert shipped.prior.mean[PASSAGE_FEATURES.index("similarity")] > 0


def test_each_kind_of_corpus_has_its_own_weights(tmp_path: Path) -> None:
    other = format_ranking(
        draw_base_weights(1), draw_prior(1), ("third",), draw_sufficiency_prior(1), 0.25, EXPECTED
    )
    priors = load_priors(write(tmp_path / "priors.json", other))

    assert priors.select_kind("encyclopedic").fitted == ("one", "other")
    assert priors.select_kind("general").fitted == ("third",)
    assert priors.fitted == ("one", "other", "third")
    assert priors.priors.keys() == priors.encyclopedic.priors.keys() | priors.general.priors.keys()
    assert priors.name not in {priors.encyclopedic.name, priors.general.name}


def test_a_file_without_weights_for_one_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"encyclopedic": content()}), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="general"):
        load_priors(path)


def make_lopsided(precision: list[list[float]]) -> list[list[float]]:
    return [[precision[0][0], precision[0][1] + 1.0, *precision[0][2:]], *precision[1:]]


def change_sufficiency(**changed: Any) -> dict[str, Any]:
    return content(sufficiency=content()["sufficiency"] | changed)


def replace_content(name: str, change: Callable[[Any], Any]) -> dict[str, Any]:
    return content(**{name: change(content()[name])})


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        ([1, 2], "holds no ranking prior"),
        ("a prior", "holds no ranking prior"),
        (None, "holds no ranking prior"),
        ({}, "features"),
        ({name: value for name, value in content().items() if name != "mean"}, "mean"),
        ({name: value for name, value in content().items() if name != "fitted"}, "fitted"),
        ({name: value for name, value in content().items() if name != "sufficiency"}, "sufficiency"),
        (content(sufficiency=None), "holds no ranking prior"),
        (
            change_sufficiency(features=list(sufficiency.ANSWER_FEATURES[::-1])),
            "of what is enough, its features are not bias, ",
        ),
        (change_sufficiency(level=1.5), "of what is enough, its level must lie in"),
        (change_sufficiency(level=None), "holds no ranking prior"),
        (change_sufficiency(expected=[[0.0] * LITTLE]), f"what it expects needs 2 x {LITTLE} finite numbers"),
        (change_sufficiency(mean=[0.0]), f"of what is enough, it needs a mean of {LITTLE}"),
        (change_sufficiency(mean=[float("nan")] * LITTLE), "must be finite"),
        (change_sufficiency(precision=(-np.eye(LITTLE)).tolist()), "symmetric and positive definite"),
        (content(fitted=None), "holds no ranking prior"),
        (content(features=None), "holds no ranking prior"),
        (replace_content("features", lambda names: names[::-1]), "its features are not similarity, "),
        (replace_content("features", lambda names: names[:-1]), "its features are not"),
        (content(mean="heavy"), "holds no ranking prior"),
        (content(mean=None), f"a mean of {SIZE}"),
        (replace_content("mean", lambda mean: mean[:-1]), f"a mean of {SIZE} and a precision of {SIZE} x {SIZE}"),
        (replace_content("mean", lambda mean: [mean]), f"a mean of {SIZE}"),
        (replace_content("mean", lambda mean: [*mean[:-1], "x"]), "holds no ranking prior"),
        (replace_content("mean", lambda mean: [*mean[:-1], [1.0]]), "holds no ranking prior"),
        (replace_content("mean", lambda mean: [*mean[:-1], float("nan")]), "must be finite"),
        (replace_content("mean", lambda mean: [*mean[:-1], float("-inf")]), "must be finite"),
        (replace_content("mean", lambda mean: [*mean[:-1], 10**400]), "holds no ranking prior"),
        ({name: value for name, value in content().items() if name != "first_look"}, "first_look"),
        (
            replace_content("first_look", lambda first: first[:-1]),
            f"its base weights need {len(BASE_FEATURES)} numbers",
        ),
        (replace_content("first_look", lambda first: [*first[:-1], float("inf")]), "must be finite"),
        (replace_content("precision", lambda rows: rows[:-1]), f"a precision of {SIZE} x {SIZE}"),
        (replace_content("precision", lambda rows: [rows[0][:-1], *rows[1:]]), "holds no ranking prior"),
        (replace_content("precision", lambda rows: [[float("nan")] * SIZE, *rows[1:]]), "must be finite"),
        (replace_content("precision", make_lopsided), "symmetric and positive definite"),
        (content(precision=np.zeros((SIZE, SIZE)).tolist()), "symmetric and positive definite"),
        (content(precision=(-np.eye(SIZE)).tolist()), "symmetric and positive definite"),
        (content(precision=np.ones((SIZE, SIZE)).tolist()), "symmetric and positive definite"),
    ],
)
def test_damaged_prior_is_refused_in_one_line(tmp_path: Path, damaged: object, message: str) -> None:
    path = write(tmp_path / "prior.json", damaged)
    with pytest.raises(ConfigurationError) as refusal:
        load_general(path)

    assert message in refusal.value.detail
    assert refusal.value.detail.startswith(str(path))
    assert "\n" not in refusal.value.detail


def test_unreadable_prior_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{broken", encoding="utf-8")
    (tmp_path / "empty.json").touch()
    (tmp_path / "latin.json").write_bytes(b"\xff{}")
    for name in ("absent.json", "broken.json", "empty.json", "latin.json", "."):
        with pytest.raises(ConfigurationError, match="holds no ranking prior") as refusal:
            load_general(tmp_path / name)
        assert "\n" not in refusal.value.detail


def test_the_setting_names_the_file(
    application: Application, addresses: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "prior.json", content())
    monkeypatch.setenv("ENGRAM_RANKING_PRIOR", str(path))
    services = Application(Settings(_env_file=None), addresses)
    assert services.models.priors.general.name == load_general(path).name != application.models.priors.general.name
    services.close()


def test_a_file_that_is_none_is_found_out_before_the_first_request(
    application: Application, addresses: Servers, tmp_path: Path
) -> None:
    wrong = application.settings.model_copy(update={"ranking_prior": tmp_path / "absent.json"})
    services = Application(wrong, addresses)
    services.models.embedder, services.models.language = application.models.embedder, application.models.language
    with pytest.raises(ConfigurationError, match="absent"):
        services.startup.warm_up()
    services.close()

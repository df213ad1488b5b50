"""Constants of the filter: what a verdict is applied by."""

from engram.core.learning.judge_standing import NEWCOMERS, JudgeStanding
from engram.core.learning.noise_and_caps import NoiseAndCaps


def test_noise_grows_as_confidence_falls() -> None:
    constants = NoiseAndCaps(positive=0.5, negative=1.0, process=0.001)

    assert [
        constants.observation_noise(1, 1.0),
        constants.observation_noise(0, 1.0),
        constants.observation_noise(1, 0.5),
    ] == [0.5, 1.0, 1.0]


def test_new_judges_are_one_for_caps() -> None:
    constants = NoiseAndCaps(positive=0.5, negative=1.0, process=0.001)

    assert constants.name_for_caps("ana") == "ana"
    assert constants.adapt_to_standing(JudgeStanding()).name_for_caps("ana") == NEWCOMERS

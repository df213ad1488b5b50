"""Judges on the wire."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictInt

from engram.api.schemas import Flag, Model, ResponseModel, Whole
from engram.services.judges.judge_settings import JudgeView

MIN_NOISE = 0.01
"""Of less, one verdict is the whole truth, and of next to nothing a memory is not a number."""
MAX_NOISE = 1e6
MAX_WEIGHT_VERDICTS = 2**31 - 1
JUDGE_EXAMPLES: list[JsonValue] = [
    {"observation_noise_positive": 2.0, "observation_noise_negative": 4.0},
    {"daily_share": 1.0, "contested_share": 1.0},
]
SHARE = "How much of the distance between a memory and its verdicts it may close in a day; 1: all of it."
CONTESTED_DESCRIPTION = "The same for verdicts that go against what other judges said of the sentence."
WEIGHT_VERDICTS = "Verdicts a day that may teach sufficiency and the trust in a reranker."
NAMES = {
    "positive": "observation_noise_positive",
    "negative": "observation_noise_negative",
    "share": "daily_share",
    "contested": "contested_share",
    "weight_verdicts": "daily_weight_verdicts",
    "trusted": "trusted",
}
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
NoiseLevel = Annotated[float, Field(ge=MIN_NOISE, le=MAX_NOISE, strict=True)]


class JudgeIn(Model):
    """Settings of a judge; an absent or null one is the default of every judge."""

    model_config = ConfigDict(json_schema_extra={"examples": JUDGE_EXAMPLES})

    observation_noise_positive: NoiseLevel | None = Field(
        default=None, description="R_pos: unreliability of its support."
    )
    observation_noise_negative: NoiseLevel | None = Field(
        default=None, description="R_neg: unreliability of its rejections."
    )
    daily_share: Share | None = Field(default=None, description=SHARE)
    contested_share: Share | None = Field(default=None, description=CONTESTED_DESCRIPTION)
    daily_weight_verdicts: Annotated[StrictInt, Field(ge=0, le=MAX_WEIGHT_VERDICTS), Whole] | None = Field(
        default=None, description=WEIGHT_VERDICTS
    )

    trusted: Flag | None = Field(
        default=None,
        description="Whether it counts in full, whoever brings its verdicts.",
    )

    def to_settings(self) -> dict[str, Any]:
        """Return the settings as the service takes them."""
        return {name: getattr(self, field) for name, field in NAMES.items()}


class ConstantsOut(ResponseModel):
    """By which verdicts are applied."""

    observation_noise_positive: float = Field(validation_alias="positive")
    observation_noise_negative: float = Field(validation_alias="negative")
    daily_share: float = Field(validation_alias="share", description=SHARE)
    contested_share: float = Field(validation_alias="contested", description=CONTESTED_DESCRIPTION)
    daily_weight_verdicts: int | None = Field(validation_alias="weight_verdicts", description=WEIGHT_VERDICTS)


class StandingOut(ResponseModel):
    """Standing of a judge: its agreement with established judges, and its weight if it is not trusted."""

    agreed: int
    disagreed: int
    mean: float = Field(description="Of the belief in its agreement, a Beta distribution that begins as 1 in 5.")
    weight: float = Field(description="1 from a mean of 0.75 on: then it counts as every other judge.")


class JudgeOut(ResponseModel):
    """A judge, its verdicts, and how far they move what is learned."""

    judge: str
    pending: int
    applied: int
    parked: int
    revoked: int
    set: list[str] = Field(description="Names of the settings that were set for this judge.")
    constants: ConstantsOut
    trusted: bool = Field(
        description="Whether its verdicts count in full, whatever its standing: by its settings, or by the key "
        "that its latest verdict came with."
    )
    standing: StandingOut

    @classmethod
    def from_service(cls, view: JudgeView) -> "JudgeOut":
        """Return a judge as the API shows it: counts, own settings, constants and standing."""
        return cls.combine(
            view.judge,
            judge=view.judge.name,
            set=[NAMES[name] for name in view.judge.settings.overrides()],
            constants=view.constants,
            standing=view.standing,
        )


class JudgesOut(BaseModel):
    """Judges in name order."""

    collection: str
    judges: list[JudgeOut]
    next_after: str | None = Field(description="Pass as after for the next page; null at the end.")

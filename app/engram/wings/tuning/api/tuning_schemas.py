"""Requests and answers of the routes of tuning."""

from datetime import datetime

from pydantic import ConfigDict, Field

from engram.api.dependencies import cut_page
from engram.api.schemas import MAX_ID, Model, ResponseModel
from engram.wings.tuning.services.tuning_service import TuningStanding


class GainOut(ResponseModel):
    """Mean gain of a group of held-out questions: nDCG@10 with the adapter less nDCG@10 without."""

    mean: float
    error: float | None = Field(description="Its standard error, over needs; null: unknown.")
    questions: int
    needs: int = Field(description="Groups of these questions that share evidence.")


class FiguresOut(ResponseModel):
    """Figures of the held-out verdicts."""

    all: GainOut
    others: GainOut = Field(description="Questions that share no passage with those learned from.")
    sharing: GainOut = Field(description="Questions that share one.")
    recall: GainOut = Field(
        description="Questions that share evidence with another judged one: gain in the share of those whose "
        "evidence their nearest judged questions vote for."
    )
    overlap: float | None = Field(
        description="Share of their first five passages that unjudged questions keep; null: there are none."
    )


class TuningGenerationOut(ResponseModel):
    """One attempt to tune the question encoder."""

    number: int
    accepted: bool
    reason: str = Field(description="The decision in words.")
    figures: FiguresOut | None = Field(description="Null: nothing was learned.")
    usable: bool = Field(description="Whether it can serve: it was accepted, and not withdrawn since.")
    question_count: int = Field(description="Judged questions that it was learned from.")
    verdict_count: int = Field(description="Verdicts behind these.")
    borrowed: bool = Field(description="Whether another collection's verdicts taught it.")
    lender: str | None = Field(description="That collection; null if there is none, or you may not read it.")
    created_at: datetime
    withdrawn_at: datetime | None = Field(
        description="When its adapter was removed: on request, with a verdict, or for readers. Null: it was not."
    )


class TuningOut(ResponseModel):
    """The state of a collection's tuning."""

    collection: str
    enabled: bool = Field(description="Whether the collection is tuned by itself, and a generation may serve.")
    tunable: bool = Field(description="Whether this service can tune the collection's encoder now.")
    serving: int = Field(description="The generation that serves; 0: the encoder as it is.")
    judged_questions: int
    due_at: int | None = Field(
        description="Judged questions at which the next attempt comes by itself; null: never."
    )
    generations: list[TuningGenerationOut] = Field(description="The latest first.")
    next_before: int | None = Field(description="Pass it as `before` for earlier ones; null: there are none.")

    @classmethod
    def from_service(cls, standing: TuningStanding, limit: int) -> "TuningOut":
        """Build the answer of a standing that was read with one generation more than the limit."""
        generations, last = cut_page(standing.generations, limit)
        return cls(
            collection=standing.collection,
            enabled=standing.is_on,
            tunable=standing.can_tune,
            serving=standing.serving,
            judged_questions=standing.judged_count,
            due_at=standing.due_count,
            generations=[
                TuningGenerationOut(
                    number=one.number,
                    accepted=one.accepted,
                    reason=one.reason,
                    figures=FiguresOut.model_validate(one.figures) if one.figures else None,
                    usable=one.usable,
                    question_count=one.question_count,
                    verdict_count=one.verdict_count,
                    borrowed=one.loan is not None,
                    lender=standing.lenders.get(one.number),
                    created_at=one.created_at,
                    withdrawn_at=one.withdrawn_at,
                )
                for one in generations
            ],
            next_before=last and last.number,
        )


class TuningIn(Model):
    """Whether a collection is tuned, which generation is withdrawn, and which one serves."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"enabled": True}, {"serving": 0}, {"withdraw": 1}]})

    enabled: bool | None = Field(default=None, description="False: none is learned by itself, and none serves.")
    withdraw: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ID,
        description="The generation whose adapter is removed for good. A job learns anew if tuning is on.",
    )
    serving: int | None = Field(
        default=None, ge=0, le=MAX_ID, description="The generation to serve until the next is accepted; 0: none."
    )

"""Verdicts on the wire."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from engram.api.schemas import (
    DEFAULT_COLLECTION,
    CollectionName,
    ExpansionIn,
    ExternalId,
    Flag,
    JudgeName,
    Model,
    Moment,
    OnBehalfOf,
    ResponseModel,
    Text,
)
from engram.api.verdict.references import CitationList, SentenceList, to_citation, to_named_sentence
from engram.core.learning.logged_verdict import Expansion
from engram.core.learning.ratings import find_meaning
from engram.services.auth.scope import Scope
from engram.services.verdict.verdict import Verdict

KeyStatus = Literal["taken in", "waiting", "rolled back"]
REASON_CHARACTERS = 1_000
RATING_FIELDS = {"query_id", "collection", "rating", "cited", "reason", "judge", "confidence", "wait", "as_"}
"""Fields of a rating."""
_QUERY_ID = "0b7c5f0e-3f0a-4a52-9c38-3c5d0c5f8a11"
_LAKES = "Titan has a thick nitrogen atmosphere and lakes of liquid methane and ethane."
FEEDBACK_EXAMPLES: list[JsonValue] = [
    {
        "query_id": _QUERY_ID,
        "collection": "sample",
        "supporting": [{"passage_id": "titan", "text": _LAKES}],
        "wait": True,
    },
    {"query_id": _QUERY_ID, "rating": "up", "cited": ["titan"], "judge": "ana"},
    {"query_id": _QUERY_ID, "rating": "down", "reason": "missing"},
    {"query_id": _QUERY_ID, "rating": None},
    {"query_id": _QUERY_ID, "supporting": [17], "missed": [23], "complete": True},
    {"query_id": _QUERY_ID, "supporting": [17], "rejected": [{"sentence_id": 4, "examined": 0.25}]},
    {"query_id": _QUERY_ID, "none_helped": True},
]


class VerdictIn(Model):
    """A judge's verdict on an answer."""

    supporting: SentenceList = Field(default_factory=list, description="Sentences that helped.")
    rejected: SentenceList = Field(
        default_factory=list,
        description=(
            "Sentences that did not help. Where that is but silence, as of a result that was not clicked, "
            "`examined` says with what probability it was looked at: the rejection says only so much."
        ),
    )
    missed: SentenceList = Field(
        default_factory=list, description="Evidence that retrieval did not return, learned like support."
    )
    complete: Flag = Field(
        default=False,
        description=(
            "True: the verdict names all evidence, and activated sentences that it does not name count as "
            "rejected. False: what it does not name stays unknown."
        ),
    )
    none_helped: Flag = Field(
        default=False,
        description=(
            "True: nothing that was activated helped, and all of it counts as rejected. It is complete, and says "
            "that no name was forgotten: a complete verdict without it has to name something that helped."
        ),
    )
    retrieval_success: Flag | None = Field(
        default=None,
        description=(
            "True: the evidence was retrieved, which validates the expansions. False: the generation score "
            "decides. Null: a supported passage among the first 50 of the expanded "
            "question validates them."
        ),
    )
    generation_success: Flag | None = Field(
        default=None,
        description=(
            "Whether the answer was right. Where retrieval did not validate the expansions: true does, false does "
            "not, null leaves it to `generation_score`."
        ),
    )
    generation_score: float | None = Field(
        default=None,
        ge=0,
        le=1,
        strict=True,
        description=(
            "Quality of the answer, used where `generation_success` is null. The answer counts as right from "
            "0.5 on."
        ),
    )
    supporting_passages: list[ExternalId] = Field(
        default_factory=list,
        max_length=100,
        description=(
            "Passages that helped as a whole: their keys and question memory learn from it. Of each that has no "
            "supporting sentence, the one nearest to the question that is no heading counts as a support that is "
            "right one time in two; other sentences of it that are not named are left alone."
        ),
    )
    expansions: list[ExpansionIn] = Field(
        default_factory=list,
        max_length=100,
        description=(
            "What widened the question, as `POST /expand` gives it. Once validated, it is credited to the passages "
            "that the verdict supports (profile `paper`: to those retrieved), whose keys may take it in."
        ),
    )
    judge: JudgeName | None = Field(
        default=None,
        description=(
            "Who judges; all verdicts of a judge can be revoked. By default the access key's judge, `anonymous` "
            "where no key is needed; to name another than the key's takes the scope `judge-as`."
        ),
    )
    confidence: float = Field(
        default=1.0,
        ge=0.01,
        le=1,
        strict=True,
        description="Divides the observation noise of this verdict; has no say in what keys learn.",
    )
    wait: Flag = Field(default=False, description="Apply before answering, and say what changed.")

    @model_validator(mode="after")
    def _say_what_was_looked_at(self) -> Self:
        """Whoever says that a sentence helped has looked at it."""
        helped = (*self.supporting, *self.missed)
        if any(not isinstance(one, int) and one.examined < 1.0 for one in helped):
            raise ValueError("examined goes with rejected: what helped was looked at")
        return self

    @model_validator(mode="after")
    def _say_that_none_helped(self) -> Self:
        """A complete verdict that names nothing is more likely a slip than a wish to reject everything."""
        helped = bool(self.supporting or self.missed or self.supporting_passages)
        if self.none_helped and helped:
            raise ValueError("none_helped does not go with what helped")
        if self.claims_all and not (self.none_helped or helped):
            raise ValueError("say what helped, or none_helped to reject all that was activated")
        return self

    @property
    def claims_all(self) -> bool:
        """Whether it claims to name all evidence."""
        return self.complete or self.none_helped

    def build_verdict(self, scope: Scope, query_id: UUID) -> Verdict:
        """Build the verdict on a query as the service takes it."""
        return Verdict(
            query_id=query_id,
            scope=scope,
            supporting=[to_named_sentence(reference) for reference in self.supporting],
            rejected=[to_named_sentence(reference) for reference in self.rejected],
            missed=[to_named_sentence(reference) for reference in self.missed],
            partial=not self.claims_all,
            retrieval_success=self.retrieval_success,
            generation_success=self.generation_success,
            generation_score=self.generation_score,
            supporting_passages=self.supporting_passages,
            expansions=[Expansion(expansion.method, expansion.text) for expansion in self.expansions],
            judge=self.judge,
            confidence=self.confidence,
        )


class FeedbackIn(VerdictIn):
    """Verdict of a judge on one answered query."""

    model_config = ConfigDict(json_schema_extra={"examples": FEEDBACK_EXAMPLES})

    query_id: UUID = Field(description="The query that is judged.")
    collection: CollectionName = DEFAULT_COLLECTION
    as_: OnBehalfOf = None
    rating: Literal["up", "down"] | None = Field(
        default=None,
        description=(
            "A thumb under the answer, in place of sentences: see the table in docs/feedback.md. null: take the "
            "judge's rating of the answer back. A rating replaces the judge's earlier one of the same answer."
        ),
    )
    cited: CitationList = Field(
        default_factory=list,
        description=(
            "With a rating: what the answer used. A text is a passage's id, a number a sentence's. up: all of it "
            "is supported."
        ),
    )
    reason: Annotated[Text, Field(max_length=REASON_CHARACTERS)] | None = Field(
        default=None,
        description=(
            "With a rating: why. Of a thumb down, wrong_answer, missing, irrelevant and outdated have a meaning of "
            "their own; any other text is logged only."
        ),
    )

    @model_validator(mode="after")
    def _rate_alone(self) -> Self:
        """A rating says all that there is to say of the answer."""
        if not self.is_rating:
            if self.cited or self.reason is not None:
                raise ValueError("cited and reason go with rating")
            return self
        beside = sorted(self.model_fields_set - RATING_FIELDS)
        if beside:
            raise ValueError(f"rating does not go with {beside[0]}")
        find_meaning(self.rating or "withdrawn", self.reason, has_citations=bool(self.cited))
        return self

    @property
    def is_rating(self) -> bool:
        """Whether the body is a rating; an explicit null is one too."""
        return "rating" in self.model_fields_set

    def to_verdict(self, scope: Scope) -> Verdict:
        """The verdict as the service takes it."""
        return replace(
            self.build_verdict(scope, self.query_id),
            rating=(self.rating or "withdrawn") if self.is_rating else None,
            cited=[to_citation(one) for one in self.cited],
            reason=self.reason,
        )


class RevokeIn(Model):
    """Filter of the verdicts to revoke: those that match every criterion, or `all`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"judge": "crawler", "from": "2026-05-01T00:00:00Z"}]}
    )

    collection: CollectionName = DEFAULT_COLLECTION
    judge: JudgeName | None = Field(default=None, description="Only this judge's.")
    since: Moment | None = Field(default=None, alias="from", description="Only those received then or later.")
    before: Moment | None = Field(default=None, alias="to", description="Only those received before.")
    all: Flag = Field(default=False, description="Every verdict of the collection.")

    @model_validator(mode="after")
    def _say_which(self) -> Self:
        """An empty request is more likely a slip than a wish to revoke everything."""
        if self.all == any(condition is not None for condition in (self.judge, self.since, self.before)):
            raise ValueError("say which verdicts by judge, from or to, or else all")
        return self


class RetryIn(Model):
    """Filter of the parked verdicts to retry: all of a collection, or those of a judge."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}, {"judge": "crawler"}]})

    collection: CollectionName = DEFAULT_COLLECTION
    judge: JudgeName | None = Field(default=None, description="Only this judge's.")


class RetryOut(BaseModel):
    """Result of retrying many verdicts."""

    collection: str
    retried: int = Field(description="Verdicts that were parked and wait again.")


class ChangeOut(ResponseModel):
    """Effect of the event on one state: a sentence's task or time memory, or its support of the question."""

    sentence_id: int
    channel: str = Field(description="task, time or recall")
    target: int = Field(description="1 supported, 0 rejected")
    observation_noise: float
    gain: float = Field(description="Kalman gain K in [0, 1).")
    capped: bool = Field(description="Whether a daily cap of the judge held the gain back.")
    residual: float
    perplexity_before: float
    perplexity_after: float


class CreditOut(ResponseModel):
    """Credit of a verdict for one unit and one passage."""

    passage_id: str
    unit_id: int
    gain: float = Field(description="Alignment gain Δ (ERM, Eq. 5): a difference of cosines, can be negative.")
    weight: float = Field(
        description="The unit's share among those that help the passage, in [0, 1]; 0 unless the gain is above 0."
    )


class KeyEffectOut(ResponseModel):
    """Effect of a verdict's expansions."""

    gate: Literal["retrieval", "generation", "none"] = Field(
        description="What validated them; 'none': they were not, and teach nothing."
    )
    gain: float = Field(
        description="The highest alignment gain of its credits; 0 if none is above 0, or not validated."
    )
    status: KeyStatus | None = Field(description="Null if not validated.")
    generation: int | None = Field(description="The evolution that took it in; null while it waits.")
    credits: list[CreditOut] = Field(description="The 200 that count most, the most first.")
    credit_count: int


class FeedbackOut(BaseModel):
    """An accepted verdict and what became of it."""

    feedback_id: int
    query_id: UUID
    collection: str
    status: str = Field(description="pending, applied, parked or revoked")
    judge: str
    received_at: datetime
    applied_at: datetime | None
    revoked_at: datetime | None
    error: str | None = Field(description="Why the last try to apply it failed, or what it waits for.")
    changes: list[ChangeOut] | None = Field(description="What it changed; null where nobody waited for it.")
    effect: str | None = Field(
        description=(
            "In words, what the next answer to the question shows of it, or why nothing; null until it is applied, "
            "or where nobody waited for it."
        )
    )
    keys: KeyEffectOut | None = Field(
        description="What its expansions came to; null where it carried none, or nobody waited for it."
    )


class FeedbackDetail(FeedbackOut):
    """An event with the verdict as it was resolved."""

    verdict: dict[str, Any]


class NamedSentenceOut(BaseModel):
    """A sentence that a verdict names."""

    model_config = ConfigDict(from_attributes=True)

    sentence_id: int
    role: Literal["supported", "missed", "rejected", "likely"] = Field(
        description="likely: it stands for a passage that helped as a whole."
    )
    passage_id: str | None = Field(
        description="Null, as its title and text, if it was deleted since or the key may not read the collection."
    )
    title: str | None
    text: str | None
    likeness: float = Field(
        description="How alike it is to the text that was judged, in (0, 1]; less than 1 if it was revised since."
    )


class ListedFeedbackOut(FeedbackOut):
    """A verdict in a list, with what it is on and what it names."""

    question: str | None = Field(description="Null if what others asked is not for the key to see.")
    rating: Literal["up", "down", "withdrawn"] | None = Field(
        description="The thumb that it was made of; null if sentences were judged."
    )
    reason: str | None = Field(description="The reason that came with the rating.")
    supporting_passages: list[str] = Field(description="Passages that helped as a whole.")
    sentences: list[NamedSentenceOut] = Field(description="At most 20, in the order of their ids.")
    sentences_cut: bool = Field(description="Whether the verdict names more.")


class FeedbackPage(BaseModel):
    """Events in order of acceptance."""

    feedback: list[ListedFeedbackOut]
    next_after: int | None = Field(description="Pass as after for the next page; null at the end.")
    next_before: int | None = Field(description="The same for before, where that was given.")

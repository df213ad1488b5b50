"""Schemas of gaps."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from engram.api.schemas import ResponseModel


class LaterOut(ResponseModel):
    """Events after a need was last not met."""

    answered_at: datetime | None = Field(description="When it was asked again and answered; null: it was not.")
    query_id: UUID | None = Field(description="Of the query that was answered.")
    documents: list[str] = Field(
        description="That came or changed in between, and that this answer shows passages of; of a passage without "
        "a document its id."
    )
    feedback_id: int | None = Field(
        description="The last verdict since then, on a query of the need, that names what helped; null: none does."
    )


class UnmetNeedOut(ResponseModel):
    """A need that was not met."""

    question: str = Field(description="Its most frequent wording.")
    wordings: list[str] = Field(description="Up to four others.")
    queries: int = Field(description="That were not answered.")
    people: int = Field(description="Principals who asked them.")
    denials: int = Field(description="Verdicts that call their answers not enough, or thumbs down.")
    sufficiency: float | None = Field(description="The mean of their answers; null where features did not rank.")
    first_at: datetime
    last_at: datetime
    last_query_id: UUID
    documents: list[str] = Field(description="Nearest to the last of them; those that you may read.")
    later: LaterOut


class GapsOut(ResponseModel):
    """Needs that a collection did not meet, open ones first, and of these the most frequent."""

    collection: str
    level: float = Field(description="Sufficiency below which a question was not answered.")
    since: datetime
    queries: int = Field(description="That were looked at, up to 1,000, the latest.")
    gaps: list[UnmetNeedOut]

"""The shape of an error: an RFC 9457 problem document."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Problem(BaseModel):
    """An RFC 9457 problem document."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="Stable identifier of the kind of problem.")
    title: str = Field(description="The kind of problem in words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong with this request.")
    request_id: str | None = Field(
        default=None, description="By which the service's log knows the request, as in the X-Request-ID header."
    )
    errors: list[dict[str, Any]] | None = Field(
        default=None, description="For an invalid request: where each value is and what is wrong with it."
    )

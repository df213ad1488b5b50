"""Past moments on the wire."""

from pydantic import ConfigDict, Field

from engram.api.schemas import CollectionName, Model, Moment


class ReplayIn(Model):
    """Moment of a replay, and the name of the new collection."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"until": "2026-05-01T12:00:00Z"}]})

    until: Moment = Field(description="What was learned by then; not yet to come.")
    into: CollectionName | None = Field(
        default=None, description="The name of the new collection; by default the collection's and the moment."
    )

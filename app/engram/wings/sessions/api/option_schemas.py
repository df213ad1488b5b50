"""Options of planners on the wire."""

from typing import Annotated

from pydantic import Field, StrictInt

from engram.api.schemas import CollectionName, Flag, Model, Text, Whole
from engram.wings.sessions.services.tree_options import MOST_DOCUMENTS, Combine, Part, TreeOptions

_BY_DEFAULT = TreeOptions()


class OptionsIn(Model):
    """Options of a planner; a planner with one path heeds ``without`` alone."""

    without: Annotated[list[Part], Field(max_length=4)] = Field(
        default_factory=list,
        description=(
            "Parts to leave out, to measure what they are worth. With an LLM 'consolidation': nothing is sifted; "
            "'update': nothing is noted; 'extractor': neither. Of 'pool' 'binding': what is found is ranked by "
            "likeness alone."
        ),
    )
    depth: Annotated[StrictInt, Field(ge=1, le=10), Whole] = Field(
        default=_BY_DEFAULT.limits.depth, description="'tree': steps from the question to a conclusion."
    )
    width: Annotated[StrictInt, Field(ge=1, le=5), Whole] = Field(
        default=_BY_DEFAULT.limits.width, description="'tree': actions tried from one state."
    )
    rollouts: Annotated[StrictInt, Field(ge=1, le=100), Whole] = Field(
        default=_BY_DEFAULT.limits.rollouts, description="'tree': ways to a conclusion that are tried."
    )
    exploration: Annotated[float, Field(ge=0, le=100, strict=True)] = Field(
        default=_BY_DEFAULT.limits.exploration, description="'tree': how much what was seldom tried is favoured."
    )
    together: Annotated[StrictInt, Field(ge=1, le=16), Whole] = Field(
        default=_BY_DEFAULT.together, description="'tree': rollouts that run side by side."
    )
    seed: Annotated[StrictInt, Field(ge=0, le=2**31), Whole] = Field(
        default=_BY_DEFAULT.seed, description="'tree': of draws between equally promising states."
    )
    combine: Combine = Field(
        default=_BY_DEFAULT.combine,
        description="'tree': several conclusions become one by a vote, weighed by ratings, or by the LLM.",
    )
    coverage: Annotated[float, Field(gt=0, le=1, strict=True)] = Field(
        default=1.0,
        description=(
            "'rfm-rag': share of the question's triples that the pool has to cover for the session to end. "
            "Below it, the missing part is asked for."
        ),
    )
    documents: Annotated[list[Annotated[Text, Field(max_length=200)]], Field(max_length=MOST_DOCUMENTS)] = Field(
        default_factory=list,
        description="'agent': passages that go by, in this order; by default those that the question finds.",
    )
    insert_only: Flag = Field(
        default=False, description="'agent': it may insert and search, but not update what it inserted."
    )
    graph: CollectionName | None = Field(
        default=None,
        description=(
            "'agent': when the session ends, its facts are stated in the collection's graph of this name, to be "
            "searched and merged; takes the scopes `ingest` and `judge`."
        ),
    )

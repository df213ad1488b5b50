"""Schemas of a collection's settings."""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, StrictBool, StrictInt

from engram.api.schemas import MAX_ID, LanguageCode, Model, Storable, Text, Whole
from engram.core.ranking.corpus_kind import CorpusKind
from engram.core.ranking.profiles import ProfileName
from engram.core.text.link_template import check_template
from engram.services.corpus.collection_settings import Serving
from engram.services.question.query import Memory, Strategy

LinkTemplate = Annotated[Storable, AfterValidator(check_template)]
MAX_ARMS = 20
MAX_SLOTS = 10
SERVING_EXAMPLES: list[JsonValue] = [
    {"serving": "shadow"},
    {
        "serving": "live",
        "experiment": {
            "arms": [
                {"name": "without", "percent": 10, "memory": "off"},
                {"name": "with", "percent": 10, "memory": "read"},
            ]
        },
    },
    {"exploration": {"share": 0.05, "slots": 1, "seed": 7}},
    {"experiment": None},
    {"corpus_kind": "general"},
    {"language": "de"},
    {"link_template": "https://wiki.example.org/{source}#{heading}"},
    {"newer_half_life_days": 365.0},
]


class ExperimentArmIn(Model):
    """An arm: how a part of the units is served."""

    name: Text = Field(max_length=100)
    percent: float = Field(ge=0, le=100, strict=True, description="Of all units; nobody is asked by an arm of 0.")
    memory: Memory = "read"
    profile: ProfileName = "default"
    strategy: Strategy = "graph"


class ExperimentIn(Model):
    """Arms that queries are given which say none themselves."""

    arms: list[ExperimentArmIn] = Field(
        min_length=1,
        max_length=MAX_ARMS,
        description="Percentages add up to 100 at most; what is left over goes to no arm.",
    )


class ExplorationIn(Model):
    """Exploration of low-ranked passages in answers."""

    share: float | None = Field(default=None, ge=0, le=1, strict=True, description="Of the queries, in [0, 1].")
    slots: Annotated[StrictInt, Field(ge=1, le=MAX_SLOTS), Whole] | None = Field(
        default=None, description="Positions at the end of an answer, at most; never its first. By default 1."
    )
    seed: Annotated[StrictInt, Field(ge=0, le=MAX_ID), Whole] | None = Field(
        default=None,
        description=(
            "With a seed, draws follow from it, the unit (without one the query's id) and the question's text, and "
            "can be made again; without one, from the query's id."
        ),
    )


class PublishedIn(Model):
    """Whether verdicts teach sentence memories and passage keys."""

    learn: StrictBool = Field(
        description="False: verdicts leave memories and keys as they are, and wait in the log until it is true."
    )


class CollectionPatch(Model):
    """Changes of how a collection serves; an absent field stays, null clears."""

    model_config = ConfigDict(json_schema_extra={"examples": SERVING_EXAMPLES})

    serving: Serving | None = Field(
        default=None,
        description="'live'; 'shadow': it learns, and serves without memory whatever a query says. Null: 'live'.",
    )
    experiment: ExperimentIn | None = Field(default=None, description="Replaces the arms as a whole. Null: none.")
    exploration: ExplorationIn | None = Field(default=None, description="Null: none.")
    published: PublishedIn | None = Field(
        default=None, description="Null: verdicts teach sentence memories and passage keys."
    )
    corpus_kind: CorpusKind | None = Field(
        default=None,
        description="Which ranking weights it has, if you know better than its titles and questions tell. "
        "Null: they do.",
    )

    language: LanguageCode | None = Field(
        default=None,
        description="The language of passages that come without one from now on. Null: theirs is recognised.",
    )

    link_template: LinkTemplate | None = Field(
        default=None,
        description="Makes the link of each passage in answers: a URL of http or https with any of {source}, "
        "{heading} (the innermost), {page}, {title} and {id} behind the host. Values are URL-encoded. "
        "Null: there are no links.",
    )

    newer_half_life_days: float | None = Field(
        default=None,
        gt=0,
        le=100_000,
        strict=True,
        description="After so many days half of its texts hold no more: where profile `default` ranks for a "
        "question about now, the odds of a passage halve with each. A passage without a date counts as of median "
        "age. Null: age does not count.",
    )

    def patch(self) -> dict[str, Any]:
        """Return the given fields, null included."""
        return self.model_dump(exclude_unset=True)

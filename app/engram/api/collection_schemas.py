"""A collection on the wire: what it holds, and how it serves."""

from datetime import datetime

from pydantic import BaseModel, Field

from engram.api.schemas import ResponseModel
from engram.core.passage_keys.key_text import KeyBuilding
from engram.core.ranking.corpus_kind import CorpusKind, KindSource
from engram.core.ranking.profiles import ProfileName
from engram.services.auth.scope import Collection
from engram.services.corpus.collection_settings import Serving
from engram.services.question.query import Memory, Strategy


class ExperimentArmOut(BaseModel):
    """An arm of an experiment."""

    name: str
    percent: float
    memory: Memory
    profile: ProfileName
    strategy: Strategy


class ExperimentOut(BaseModel):
    """The arms that queries are given which say none themselves."""

    arms: list[ExperimentArmOut]


class ExplorationOut(BaseModel):
    """Exploration of low-ranked passages in answers."""

    share: float
    slots: int
    seed: int | None


class PastOut(BaseModel):
    """Origin of a copy."""

    of: str = Field(description="The collection's name at the time.")
    until: datetime


class EncoderOut(ResponseModel):
    """The encoder of a collection's vectors."""

    model: str
    fingerprint: str = Field(
        description="SHA-256 of its weights, or of what a server makes of probes: vectors are comparable only if "
        "these are equal."
    )
    dimension: int = Field(description="Length of each vector.")


class IndexRecallOut(ResponseModel):
    """Measured recall of a vector index."""

    recall: float = Field(ge=0, le=1, description="Share of the ten nearest that it finds.")
    breadth: int = Field(description="How broadly it is searched for that (`hnsw.ef_search`).")
    configured: int = Field(description="How broadly all indexes were searched when it was measured.")
    rows: int = Field(description="How many the collection held then.")
    measured_at: datetime


class PublishedOut(BaseModel):
    """Whether verdicts teach sentence memories and passage keys."""

    learn: bool


class CollectionOut(ResponseModel):
    """A collection and what it holds."""

    name: str
    encoder: EncoderOut = Field(
        description="What its vectors are made with. A process that runs another one refuses what would embed text."
    )
    passage_count: int
    sentence_count: int
    entity_count: int
    key_building: KeyBuilding = Field(description="What the keys are made of by which passages are found.")
    corpus_kind: CorpusKind = Field(
        description="Which ranking weights it has: 'encyclopedic' where passages are titled after the "
        "things they describe, else 'general'."
    )
    kind_source: KindSource = Field(
        description="What decided on that: 'setting': somebody set it; 'questions': question_share; 'titles': "
        "title_share; 'default': nothing was measured yet."
    )
    title_share: float | None = Field(
        description="Share of its passages titled after what they describe, in [0, 1]; from one half on it is "
        "taken for encyclopedic. Measured after each ingest until the first verdict. Null: not measured yet."
    )
    question_share: float | None = Field(
        description="Share of its questions with a candidate titled after something that they name. From "
        "one third on it is taken for encyclopedic, up to one tenth for general; in between title_share decides. "
        "Measured from 30 different questions on, until the first verdict. Null: too few were asked."
    )
    question_count: int = Field(description="Different questions that were looked at for that, of the latest 300.")
    fixed_kind: CorpusKind | None = Field(description="The kind that was set; null: by what was measured.")
    language: str | None = Field(
        description="The language of passages that come without one; null: theirs is recognised."
    )
    link_template: str | None = Field(description="Template of the links to its passages; null: they have none.")
    newer_half_life_days: float | None = Field(
        description="Days after which half of its texts hold no more; null: age does not count."
    )
    languages: dict[str, int] = Field(
        description="How many of its passages have each language. A question is read in its own, and in those that "
        "one passage in a hundred has."
    )
    serving: Serving = Field(description="'shadow': it learns, and serves without memory.")
    experiment: ExperimentOut | None
    exploration: ExplorationOut | None
    published: PublishedOut | None = Field(description="Null: verdicts teach sentence memories and passage keys.")
    indexed: list[str] = Field(
        description="Its tables that are searched by a vector index (passage, entity, question); the others are "
        "searched exactly."
    )
    index_recall: dict[str, IndexRecallOut] = Field(
        description="What these indexes find, by table, as workers measure it; one that finds too little is "
        "searched more broadly."
    )
    past: PastOut | None = Field(description="Of a copy that `engram replay` made: of what, and as of when.")

    @classmethod
    def from_service(cls, collection: Collection) -> "CollectionOut":
        """Build the response; what was measured of all passages and questions is shown to whoever sees them all."""
        body = cls.model_validate(collection)
        if collection.is_whole:
            return body
        return body.model_copy(update={"title_share": None, "question_share": None, "question_count": 0})

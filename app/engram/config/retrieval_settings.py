"""Settings of what is found."""

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings


class RetrievalSettings(BaseSettings):
    """Bounds of questions, ranking weights, rerankers and caches."""

    # Retrieval
    query_timeout_seconds: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description=(
            "How long a query, an answer in words, a comparison or an expansion may take, waiting included; "
            "then it gets 503 of type `deadline`."
        ),
    )
    question_tokens: int = Field(
        default=512,
        ge=16,
        le=100_000,
        description=(
            "Most tokens of a question, as the encoder counts them; all its expansions together may have four "
            "times as many. A longer one gets 422."
        ),
    )
    ranking_prior: Path | None = Field(
        default=None,
        description="File with the weights to start from, as `engram fit` writes; the shipped ones by default.",
    )
    sessions_cross_encoder: Path | None = Field(
        default=None,
        description=(
            "Folder of a cross-encoder (sentence-transformers, one class) that rates evidence for `stop.rule` "
            "'published'; by default the cosine of embeddings."
        ),
    )
    reranker_url: str | None = Field(
        default=None,
        description=(
            "Base URL of a reranker, to which `/rerank` is added, such as http://localhost:8080. Unset: none."
        ),
    )
    reranker_model: str = Field(default="reranker", description="Model name sent to the reranker.")
    reranker_api_key: SecretStr | None = Field(default=None, description="Bearer token of the reranker.")
    reranker_folder: Path | None = Field(
        default=None,
        description=(
            "Folder of a cross-encoder (sentence-transformers, one class) that reranks in Engram, in place of a "
            "server. Needs `pip install 'engram[encoders]'`."
        ),
    )
    sessions_stop_weights: Path | None = Field(
        default=None,
        description=(
            "File with the weights of `stop.rule` 'published', as `engram fit-stop` writes; "
            "the shipped ones by default."
        ),
    )
    episodes_durable: bool = Field(
        default=True,
        description=(
            "Whether a query is answered only once it is stored on disk. Else a crash of Postgres may lose the "
            "unjudged queries of its last half second, never a verdict."
        ),
    )
    passage_key_cache_mb: int = Field(
        default=64,
        ge=0,
        description=(
            "Memory, in MB, in which each process keeps passage keys of collections without a vector index, and "
            "as much again for sentences, names and terms; 0: Postgres is asked for all of it."
        ),
    )

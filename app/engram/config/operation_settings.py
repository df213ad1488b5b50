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
            "Requests a second that a principal, or an address where nobody is known, may go on to send; 0: any "
            "number. Unset: any number where the API listens on loopback only, else 20."
        ),
    )
    rate_burst: int = Field(default=100, ge=1, description="Requests it may send at once.")
    principal_concurrency: int | None = Field(
        default=None,
        ge=0,
        description=(
            "Requests of one principal that a process has in hand at once; 0: any number. Unset: any number on "
            "loopback, else 16."
        ),
    )
    max_concurrent_requests: int = Field(
        default=64,
        ge=0,
        description="Requests that a process works on at once, but for streamed passages; 0: any number.",
    )
    max_queued_requests: int = Field(
        default=400, ge=0, description="Requests that wait for one of these to end; one more is answered 503."
    )
    queue_timeout_seconds: float = Field(
        default=10.0, gt=0, description="How long they wait before they are answered 503."
    )

    max_concurrent_queries: int = Field(
        default=8,
        ge=0,
        description=(
            "Questions that a process answers at once, of the requests it works on, but for those that ask a "
            "language model: more would take turns at its interpreter and be answered no sooner; 0: any number."
        ),
    )

    # Quotas of tenants other than `local`, where `engram access tenant` sets no others
    tenant_passages: int = Field(
        default=1_000_000, ge=0, description="Passages that a tenant may hold; 0: any number."
    )
    tenant_collections: int = Field(
        default=1_000, ge=0, description="Collections that a tenant may have; 0: any number."
    )
    tenant_keys: int = Field(
        default=1_000, ge=0, description="Access keys that a tenant may have at a time; 0: any number."
    )
    tenant_sessions: int = Field(
        default=10_000, ge=0, description="Sessions that a tenant may start on a day (UTC); 0: any number."
    )
    tenant_facts: int = Field(
        default=100_000,
        ge=0,
        description="Facts that a tenant may state on a day (UTC) by `POST /facts`; 0: any number.",
    )

    # Documents
    document_max_bytes: int = Field(
        default=32 * 1024 * 1024,
        ge=1,
        le=512 * 1024 * 1024,
        description="Size of a file sent to `POST /documents`.",
    )
    document_timeout_seconds: float = Field(
        default=60.0, gt=0, le=3600, description="How long its conversion into passages may take."
    )

    # Seen from outside
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description=(
            "Port on which this process shows Prometheus its metrics, at `/metrics`, to whoever reaches it; `engram"
            " up` gives each process the next one, the worker after the API. Unset: the API shows them at its own "
            "port if it listens on loopback only, workers and judges not at all. 0: nobody does."
        ),
    )
    metrics_host: str = Field(default="127.0.0.1", description="Address that port is opened on.")
    otlp_endpoint: str | None = Field(
        default=None,
        description=(
            "Base URL of an OTLP receiver over HTTP, as http://localhost:4318, that traces are sent to; needs the "
            "extra `engram[otel]`. Unset: no traces."
        ),
    )
    otlp_share: float = Field(
        default=1.0, ge=0, le=1, description="Share of traces that are sent; a caller's `traceparent` goes before."
    )

    # Backups
    postgres_programs: Path | None = Field(
        default=None,
        description=(
            "Folder of the `pg_dump` and `pg_restore` that backups are made with. Unset: those of the embedded "
            "Postgres 18, which copy servers up to that version."
        ),
    )

    # Worker
    feedback_batch_size: int = Field(default=300, ge=1, le=5000, description="Events applied per batch.")
    feedback_gather_seconds: float = Field(
        default=0.5,
        ge=0,
        le=60,
        description="How long after it took a batch that was not full a worker takes the next one: verdicts that "
        "come in a stream are applied together, one that comes after a pause at once.",
    )
    ingest_batch_size: int = Field(default=128, ge=1, le=2000, description="Passages ingested per batch.")
    worker_heartbeat_file: Path | None = Field(
        default=None,
        description="File that a worker touches every few seconds while it lives, for `engram worker --check`.",
    )
    feedback_sweep_seconds: float = Field(
        default=5.0, gt=0, description="How often events whose wake-up was lost are looked for."
    )
    job_lease_seconds: float = Field(
        default=15.0,
        gt=0,
        le=3600,
        description=(
            "How long after a worker was killed, hangs or lost its machine another one takes its job over. A "
            "worker that is told to end hands its job over at once."
        ),
    )
    feedback_max_attempts: int = Field(
        default=5, ge=1, description="Failed applications after which an event is parked."
    )

    # Retention
    keep_queries_days: int = Field(
        default=90,
        ge=0,
        le=36_500,
        description=(
            "Days that answered queries are kept from the end of the week (UTC) they came in, and sessions from "
            "their ends; 0 is for ever. "
            "Verdicts keep what they go by, so nothing that was learned depends on it."
        ),
    )
    keep_jobs_days: int = Field(
        default=30, ge=0, le=36_500, description="Days that jobs are kept once they ended; 0 is for ever."
    )
    keep_idempotency_days: int = Field(
        default=7,
        ge=0,
        le=36_500,
        description=(
            "Days within which a write repeated under its Idempotency-Key is answered as it was first; 0 is for "
            "ever. Feedback is recognised for ever."
        ),
    )
    keep_audit_bodies_days: int = Field(
        default=365,
        ge=0,
        le=36_500,
        description=(
            "Days that the record of administrative acts keeps what was sent and from which address; who did what, "
            "when, and what came of it stays. 0 is for ever."
        ),
    )

    keep_verdicts_days: int = Field(
        default=0,
        ge=0,
        le=36_500,
        description=(
            "Days that verdicts keep who gave them and the words of their question; after that they go on counting "
            "under a random judge, as after `engram erase --anonymise`. 0 is for ever."
        ),
    )

    # Index maintenance
    maintenance_interval_seconds: float = Field(
        default=600.0,
        ge=0,
        le=31_536_000,
        description="How often a worker looks whether vector indexes need to be built anew; 0 is never.",
    )
    maintenance_dead_share: float = Field(
        default=0.3,
        gt=0,
        lt=1,
        description="Share of an index's entries whose rows are gone from which on it is built anew.",
    )
    maintenance_dead_rows: int = Field(
        default=1000, ge=1, description="An index with fewer dead entries than this is left alone."
    )
    maintenance_recall: float = Field(
        default=0.98,
        ge=0,
        lt=1,
        description=(
            "Share of the ten nearest that a vector index is to find, measured with the questions that were asked; "
            "one that finds less is searched more broadly. 0: nothing is measured."
        ),
    )
    maintenance_memory_mb: int = Field(
        default=512,
        ge=1,
        le=2_000_000,
        description=(
            "Memory that the Postgres server may take for building one index anew (maintenance_work_mem); a graph "
            "that does not fit is built much more slowly."
        ),
    )

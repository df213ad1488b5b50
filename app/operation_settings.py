"""Settings of what stands around the service: how much each may ask, and what is told of it."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings


class OperationSettings(BaseSettings):
    """Limits, metrics, traces and backups."""

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
    concurrency: int | None = Field(
        default=None,
        ge=0,
        description=(
            "Requests of one principal that a process has in hand at once; 0: any number. Unset: any number on "
            "loopback, else 16."
        ),
    )
    working: int = Field(
        default=64,
        ge=0,
        description="Requests that a process works on at once, but for streamed passages; 0: any number.",
    )
    waiting: int = Field(
        default=400, ge=0, description="Requests that wait for one of these to end; one more is answered 503."
    )
    wait_seconds: float = Field(default=10.0, gt=0, description="How long they wait before they are answered 503.")

    # Seen from outside
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description=(
            "Port on which this process shows Prometheus its metrics, at `/metrics`, to whoever reaches it; `engram"
            " up` gives the worker the next one. Unset: the API shows them at `/metrics` of its own port if it "
            "listens on loopback only, workers and judges not at all. 0: nobody does."
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

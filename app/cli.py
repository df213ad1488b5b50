"""The ``engram`` command: run the service, and talk to a running one."""

import io
import json
import signal
import sys
import uuid
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from app import logs
from app.client import Client, ClientError, open_corpus
from app.errors import ConfigurationError, EngramError
from app.settings import Settings

cli = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Engram: retrieval that learns from being used.",
)
out = Console(soft_wrap=True)
err = Console(stderr=True, soft_wrap=True)

CollectionOption = Annotated[str, typer.Option("--collection", "-c", help="The collection's name.")]
UrlOption = Annotated[str | None, typer.Option(help="Where the service is; ENGRAM_URL sets it as well.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the service's JSON as it is.")]


def main() -> None:
    """Run the command line; a failure is one line and exit code 1."""
    try:
        cli()
    except EngramError as error:
        err.print(f"engram: {error.detail}", markup=False, highlight=False)
        sys.exit(1)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        err.print(f"engram: setting {name}: {first['msg']}", markup=False, highlight=False)
        sys.exit(1)


def _settings() -> Settings:
    settings = Settings()
    logs.configure(settings.log_format, settings.log_level)
    return settings


@cli.command()
def up(
    sample: Annotated[bool, typer.Option("--sample", help="Ingest the sample corpus and print a tour.")] = False,
) -> None:
    """Start everything on this machine: Postgres, Redis, migrations, API, worker. Ctrl-C stops it all."""
    from app import local

    sys.exit(local.run(_settings(), sample=sample))


@cli.command()
def serve() -> None:
    """Run the API."""
    import uvicorn

    from app.composition import application
    from app.main import create_app

    settings = _settings()
    with application(settings) as services:
        services.claim_embedding_space()
        uvicorn.run(
            create_app(services),
            host=settings.host,
            port=settings.port,
            access_log=False,
            log_level="warning",
            timeout_graceful_shutdown=15,
        )


@cli.command()
def worker() -> None:
    """Apply feedback and ingest passages."""
    from app.composition import application
    from app.worker import Worker

    with application(_settings(), consumer=f"worker-{uuid.uuid4()}") as services:
        process = Worker(services)
        _on_stop(process.stop)
        process.run()


@cli.command()
def judge(
    collection: CollectionOption = "default",
    once: Annotated[bool, typer.Option(help="Judge what is there and return.")] = False,
) -> None:
    """Let the configured LLM judge recent unjudged episodes and post feedback."""
    from app.composition import application

    with application(_settings()) as services:
        service = services.judge
        _on_stop(service.stop)
        judged = service.run(collection, once=once)
    out.print(f"{judged} episodes judged")


@cli.command()
def migrate(
    revision: Annotated[str, typer.Argument(help="Alembic revision; 'base' removes the schema.")] = "head",
) -> None:
    """Bring the database's schema to a revision."""
    from app.composition import servers
    from app.storage.schema import migrate as run

    with servers(_settings()) as addresses:
        run(addresses.database_url, revision)


@cli.command()
def ingest(
    files: Annotated[list[Path], typer.Argument(help="JSONL, plain or .gz; the BEIR layout is understood.")],
    collection: CollectionOption = "default",
    url: UrlOption = None,
) -> None:
    """Ingest passages from files and wait until they are searchable."""
    failed = False
    with _client(url) as client:
        for path in files:
            with open_corpus(path) as stream:
                failed |= not _ingest(client, stream, path.name, collection)
    if failed:
        raise typer.Exit(1)


def _ingest(client: Client, stream: Any, label: str, collection: str) -> bool:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err) as progress:
        task = progress.add_task(f"{label}: sending", total=None)
        accepted = client.ingest(stream, collection)
        job: dict[str, Any] = {}
        for job in client.follow(accepted["job_id"], collection):
            done = job["received"] - job["waiting"]
            progress.update(task, description=label, total=job["received"], completed=done)
    counts = ", ".join(f"{job[name]} {name}" for name in ("created", "updated", "unchanged", "rejected"))
    out.print(f"{label}: {counts}", highlight=False)
    for error in job["errors"]:
        err.print(f"{label}: line {error['line']}: {error['reason']}", markup=False, highlight=False)
    if job["next_errors_after"] is not None:
        err.print(f"{label}: more of them: GET /jobs/{job['job_id']}?collection={collection}", markup=False)
    if job["status"] == "failed":
        err.print(f"{label}: {job['error']}", markup=False, highlight=False)
    return bool(job["status"] == "succeeded" and job["rejected"] == 0)


@cli.command()
def query(
    text: Annotated[str, typer.Argument(help="The question.")],
    collection: CollectionOption = "default",
    top_k: Annotated[int, typer.Option(min=1, max=100)] = 5,
    memory: Annotated[str, typer.Option(help="off or read")] = "read",
    profile: Annotated[str, typer.Option(help="paper or default")] = "default",
    trace: Annotated[bool, typer.Option("--trace", help="Show why each sentence was selected.")] = False,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a question and show the passages that answer it."""
    body = {
        "query": text,
        "collection": collection,
        "top_k": top_k,
        "arm": {"memory": memory, "profile": profile},
        "include": ["trace"] if trace else [],
    }
    with _client(url) as client:
        answer = client.send("POST", "/query", json=body)
    if as_json:
        _print_json(answer)
        return
    out.print(f"query {answer['query_id']}: {answer['hops']} hops, {answer['stop_reason']}", highlight=False)
    for rank, passage in enumerate(answer["passages"], start=1):
        out.print(f"{rank}. {passage['passage_id']}  {passage['score']:.3f}", markup=False, highlight=False)
        for sentence in passage["sentences"]:
            out.print(f"     [{sentence['sentence_id']}] {sentence['text']}", markup=False, highlight=False)
    for hop in (answer["trace"] or {}).get("hops", []):
        out.print(f"hop {hop['hop']}: {hop['candidates']} candidates from {list(hop['entities'])}", markup=False)
        for row in hop["sentences"]:
            out.print(
                f"     [{row['sentence_id']}] {row['score']:.3f} = activation {row['activation']:.3f} x "
                f"semantic {row['semantic']:.3f} x task {row['task_factor']:.3f} x time "
                f"{row['time_factor']:.3f} (normalised), recall {row['recall_prior']:.3f}, by {row['activated_by']}",
                markup=False,
                highlight=False,
            )


@cli.command()
def feedback(
    query_id: Annotated[str, typer.Argument(help="The query_id of an answer.")],
    supporting: Annotated[list[int] | None, typer.Option("--supporting", "-s", help="A sentence id.")] = None,
    rejected: Annotated[list[int] | None, typer.Option("--rejected", "-r", help="A sentence id.")] = None,
    missed: Annotated[list[int] | None, typer.Option("--missed", "-m", help="A sentence id.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Judge only what is named.")] = False,
    judge_name: Annotated[str, typer.Option("--judge", help="Who judges.")] = "cli",
    key: Annotated[str | None, typer.Option(help="Idempotency-Key; a new one by default.")] = None,
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say which sentences helped, and show what that changed."""
    body = {
        "query_id": query_id,
        "collection": collection,
        "supporting": supporting or [],
        "rejected": rejected or [],
        "missed": missed or [],
        "partial": partial,
        "judge": judge_name,
        "wait": True,
    }
    with _client(url) as client:
        receipt = client.send("POST", "/feedback", json=body, headers={"idempotency-key": key or str(uuid.uuid4())})
    if as_json:
        _print_json(receipt)
        return
    out.print(f"feedback {receipt['feedback_id']}: {receipt['status']}", highlight=False)
    for change in receipt["changes"]:
        out.print(
            f"     [{change['sentence_id']}] {change['channel']}: gain {change['gain']:.3f}, perplexity "
            f"{change['perplexity_before']:.3f} -> {change['perplexity_after']:.3f}",
            markup=False,
            highlight=False,
        )


@cli.command()
def sample(url: UrlOption = None) -> None:
    """Ingest the sample corpus into a running service and print a tour of it."""
    from app.sample import COLLECTION, corpus
    from app.sample.tour import tour

    settings = _settings()
    base_url = (url or settings.base_url).rstrip("/")
    with _client(url) as client:
        ok = _ingest(client, io.BytesIO(corpus()), "sample corpus", COLLECTION)
    out.print(tour(base_url), markup=False, highlight=False)
    if not ok:
        raise typer.Exit(1)


@cli.command()
def openapi(
    path: Annotated[Path, typer.Argument(help="Where the document is kept.")] = Path("openapi/openapi.json"),
    check: Annotated[bool, typer.Option("--check", help="Only see whether the file is up to date.")] = False,
) -> None:
    """Export the OpenAPI document."""
    from app.main import create_app

    document = json.dumps(create_app(None).openapi(), indent=2, sort_keys=True) + "\n"
    if check:
        if not path.exists() or path.read_text(encoding="utf-8") != document:
            raise ConfigurationError(f"{path} is out of date; run `engram openapi`.")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document, encoding="utf-8")


def _client(url: str | None) -> Client:
    return Client((url or _settings().base_url).rstrip("/"))


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _on_stop(stop: Any) -> None:
    def handle(_signal: int, _frame: FrameType | None) -> None:
        stop()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)


__all__ = ["ClientError", "cli", "main"]

if __name__ == "__main__":
    main()

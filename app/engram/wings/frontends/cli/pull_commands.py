"""Commands that pull thumbs from products that people use."""

import os
import re
import threading
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli.terminal import (
    ASK,
    CollectionOption,
    UrlOption,
    cli,
    complain,
    format_count,
    open_client,
    say,
    say_json,
)
from engram.context.errors import EngramError, InvalidRequestError

if TYPE_CHECKING:
    from engram.wings.frontends.pulls.product_http import ProductHttp
    from engram.wings.frontends.pulls.product_scores import Scale
    from engram.wings.frontends.pulls.pull_run import Product, PullCounts, PullRun

DAYS = 30
EVERY_SECONDS = 60
RECENT = timedelta(hours=1)
"""The age of the scores that a pass between two full ones reads, of a product that filters by time."""
FULL_PASS_SECONDS = 3_600
THUMB_NAME = "user-feedback"
"""The name of the score of a thumb in Langfuse's own examples and in LibreChat."""

pull = typer.Typer(no_args_is_help=True, help="Pull thumbs from what you run, and learn from them.")
cli.add_typer(pull, name="pull", rich_help_panel=ASK)

NameOption = Annotated[
    str | None,
    typer.Option("--name", help="Name of this pull, if several pull from one host; by default product@host."),
]
JudgeOption = Annotated[
    str | None,
    typer.Option("--judge", help="Judge of all ratings; by default the product and the person, as dify:ada."),
]
WatchOption = Annotated[bool, typer.Option("--watch", help="Go on pulling until the process is told to end.")]
EveryOption = Annotated[
    float, typer.Option("--every", min=1, max=86_400, help="Seconds between two passes of --watch.")
]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Print what would be sent; send and store nothing.")]
MassOption = Annotated[
    bool,
    typer.Option("--allow-mass-revocation", help="Revoke even if most of the known scores are missing."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the counts of each pass as a line of JSON.")]


@pull.command("langfuse")
def pull_langfuse(
    collection: CollectionOption = "default",
    score: Annotated[
        list[str] | None, typer.Option(help="Name of scores that are thumbs, repeatable; by default user-feedback.")
    ] = None,
    scale: Annotated[str, typer.Option(help="LOW:HIGH of numeric scores, such as 1:5.")] = "0:1",
    days: Annotated[
        int, typer.Option(min=1, max=3_650, help="Scores of the last days are read and watched for changes.")
    ] = DAYS,
    name: NameOption = None,
    judge: JudgeOption = None,
    watch: WatchOption = False,
    every: EveryOption = EVERY_SECONDS,
    dry_run: DryOption = False,
    allow_mass: MassOption = False,
    as_json: JsonOption = False,
    url: UrlOption = None,
) -> None:
    """Pull scores of Langfuse; a query's trace id is the score's trace.

    Reads LANGFUSE_HOST (by default Langfuse Cloud), LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY.
    """
    from engram.wings.frontends.pulls.langfuse_scores import LangfuseScores
    from engram.wings.frontends.pulls.product_http import ProductHttp

    variables = "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
    host = os.environ.get("LANGFUSE_HOST") or os.environ.get("LANGFUSE_BASE_URL") or "https://cloud.langfuse.com"
    auth = (_require_variable("LANGFUSE_PUBLIC_KEY"), _require_variable("LANGFUSE_SECRET_KEY"))
    numbers = _scale(scale)
    with ExitStack() as stack:
        http = ProductHttp("Langfuse", host.rstrip("/"), variables, auth=auth)
        stack.callback(http.close)
        product = LangfuseScores(http, score or [THUMB_NAME], numbers)
        run = _run(stack, product, http, collection, name, judge, url, dry=dry_run, mass=allow_mass, quiet=as_json)
        _pull(run, timedelta(days=days), watch=watch, every=every, as_json=as_json)


@pull.command("dify")
def pull_dify(
    collection: CollectionOption = "default",
    name: NameOption = None,
    judge: JudgeOption = None,
    watch: WatchOption = False,
    every: EveryOption = EVERY_SECONDS,
    dry_run: DryOption = False,
    allow_mass: MassOption = False,
    as_json: JsonOption = False,
    url: UrlOption = None,
) -> None:
    """Pull the feedback of a Dify app; it finds queries by the message, or by the message's resources.

    Reads DIFY_API_URL (by default Dify Cloud, with /v1) and DIFY_API_KEY, the app's key.
    """
    from engram.wings.frontends.pulls.dify_feedbacks import DifyFeedbacks
    from engram.wings.frontends.pulls.product_http import ProductHttp

    host = (os.environ.get("DIFY_API_URL") or "https://api.dify.ai/v1").rstrip("/")
    headers = {"authorization": f"Bearer {_require_variable('DIFY_API_KEY')}"}
    with ExitStack() as stack:
        http = ProductHttp("Dify", host, "DIFY_API_KEY", headers=headers)
        stack.callback(http.close)
        product = DifyFeedbacks(http)
        run = _run(stack, product, http, collection, name, judge, url, dry=dry_run, mass=allow_mass, quiet=as_json)
        _pull(run, None, watch=watch, every=every, as_json=as_json)


@pull.command("open-webui")
def pull_open_webui(
    file: Annotated[
        Path | None, typer.Argument(help="The export of feedback as JSON; without it, the API is read.")
    ] = None,
    collection: CollectionOption = "default",
    name: NameOption = None,
    judge: JudgeOption = None,
    watch: WatchOption = False,
    every: EveryOption = EVERY_SECONDS,
    dry_run: DryOption = False,
    allow_mass: MassOption = False,
    as_json: JsonOption = False,
    url: UrlOption = None,
) -> None:
    """Pull the feedback of Open WebUI; a query's trace id is the message.

    Without a file it reads OPEN_WEBUI_URL and OPEN_WEBUI_API_KEY, the key of an administrator.
    """
    from engram.wings.frontends.pulls.open_webui_feedbacks import OpenWebUiFeedbacks
    from engram.wings.frontends.pulls.product_http import ProductHttp

    with ExitStack() as stack:
        http: ProductHttp | None = None
        if file is not None:
            product = OpenWebUiFeedbacks(file)
        else:
            host, key = _require_variable("OPEN_WEBUI_URL").rstrip("/"), _require_variable("OPEN_WEBUI_API_KEY")
            headers = {"authorization": f"Bearer {key}"}
            http = ProductHttp("Open WebUI", host, "OPEN_WEBUI_API_KEY", headers=headers)
            stack.callback(http.close)
            product = OpenWebUiFeedbacks(http)
        run = _run(stack, product, http, collection, name, judge, url, dry=dry_run, mass=allow_mass, quiet=as_json)
        _pull(run, None, watch=watch, every=every, as_json=as_json)


def _require_variable(variable: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InvalidRequestError(f"{variable} is not set.")
    return value


def _scale(text: str) -> "Scale":
    from engram.wings.frontends.pulls.product_scores import Scale

    low, _, high = text.partition(":")
    try:
        return Scale(float(low), float(high))
    except ValueError as error:
        raise InvalidRequestError(f"--scale {text!r} is not LOW:HIGH, such as 1:5.") from error


def _run(
    stack: ExitStack,
    product: "Product",
    http: "ProductHttp | None",
    collection: str,
    name: str | None,
    judge: str | None,
    url: str | None,
    *,
    dry: bool,
    mass: bool,
    quiet: bool,
) -> "PullRun":
    """Put a run together; its ledger is kept under the name of the product and its host."""
    from engram.core.filter.judge_names import normalise_name
    from engram.wings.frontends.cli.pull_service import PullService
    from engram.wings.frontends.pulls.pull_run import PullRun

    by_host = product.product if http is None else f"{product.product}@{http.host}"
    source = name or re.sub(r"[^a-z0-9._@:-]", "-", by_host.lower())
    if not re.fullmatch(r"[a-z0-9][a-z0-9._@:-]{0,199}", source):
        raise InvalidRequestError(f"--name {source!r} may hold a to z, digits and . _ @ : - only.")
    try:
        fixed = None if judge is None else normalise_name(judge)
    except ValueError as error:
        raise InvalidRequestError(f"--judge {judge!r}: {error}.") from error
    client = stack.enter_context(open_client(url))
    report = complain if quiet else say
    return PullRun(
        product,
        PullService(client, collection, source),
        source,
        judge=fixed,
        report=report if dry or not quiet else lambda _: None,
        dry=dry,
        allow_mass=mass,
    )


def _pull(run: "PullRun", window: timedelta | None, *, watch: bool, every: float, as_json: bool) -> None:
    """Make one pass, or one after the other until the process is told to end."""
    from engram.cli.process_commands import on_stop

    stopping = threading.Event()
    if watch:
        on_stop(stopping.set)
    last_full: datetime | None = None
    while True:
        began = datetime.now(UTC)
        full = window is None or last_full is None or (began - last_full).total_seconds() >= FULL_PASS_SECONDS
        oldest = None if window is None else began - window
        since = oldest if full or oldest is None else max(oldest, began - RECENT)
        try:
            _say(run.run_once(since, oldest), as_json=as_json)
            last_full = began if full else last_full
        except EngramError as error:
            if not watch or not _passes(error):
                raise
            complain(f"engram: {error.detail} The next pass tries again.")
        if not watch or stopping.wait(every):
            return


def _passes(error: EngramError) -> bool:
    """Return True if a later try may succeed."""
    from engram.cli.http_client import AwayError
    from engram.wings.frontends.pulls.product_http import UnavailableProductError

    busy = error.extra.get("status_code") == HTTPStatus.TOO_MANY_REQUESTS
    return busy or isinstance(error, AwayError | UnavailableProductError)


def _say(counts: "PullCounts", *, as_json: bool) -> None:
    if as_json:
        say_json(asdict(counts))
        return
    rated = f"{counts.up} up, {counts.down} down, {counts.revoked} revoked, {counts.unchanged} unchanged"
    remarks = [
        f"{format_count(counts.unknown, 'score')} of traces without a query here" if counts.unknown else "",
        f"{format_count(counts.skipped, 'score')} skipped" if counts.skipped else "",
    ]
    say("; ".join([rated, *filter(None, remarks)]))

"""``engram-pull``: pull thumbs from what you run, and have Engram learn from them."""

import argparse
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from engram_client import BusyError, Engram, EngramError, UnreachableError
from engram_pull.dify_feedbacks import DifyFeedbacks
from engram_pull.langfuse_scores import LangfuseScores
from engram_pull.open_webui_feedbacks import OpenWebUiFeedbacks
from engram_pull.product_http import ProductHttp, PullError, UnavailableProductError
from engram_pull.product_scores import Scale, normalise_judge
from engram_pull.pull_run import Product, PullCounts, PullRun
from engram_pull.pull_service import PullService

DAYS = 30
EVERY_SECONDS = 60.0
RECENT = timedelta(hours=1)
"""The age of the scores that a pass between two full ones reads, of a product that filters by time."""
FULL_PASS_SECONDS = 3_600
THUMB_NAME = "user-feedback"
"""The name of the score of a thumb in Langfuse's own examples and in LibreChat."""


def main() -> None:
    """Run the command line; a failure is one line and exit code 1."""
    try:
        run(build_parser().parse_args())
    except OSError as error:
        sys.exit(f"engram-pull: {error.filename}: {error.strerror}" if error.filename else f"engram-pull: {error}")
    except (EngramError, PullError) as error:
        sys.exit(f"engram-pull: {error}")


def build_parser() -> argparse.ArgumentParser:
    """Build the command line: one command for each product."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-c", "--collection", default="default", help="the collection that was asked")
    common.add_argument("--name", help="name of this pull, if several pull from one host; by default product@host")
    common.add_argument("--judge", help="judge of all ratings; by default the product and the person, as dify:ada")
    common.add_argument("--watch", action="store_true", help="go on pulling until the process is told to end")
    common.add_argument(
        "--every", type=float, default=EVERY_SECONDS, metavar="SECONDS", help="time between two passes of --watch"
    )
    common.add_argument("--dry-run", action="store_true", help="print what would be sent; send and store nothing")
    common.add_argument(
        "--allow-mass-revocation", action="store_true", help="revoke even if most of the known scores are missing"
    )
    common.add_argument("--json", action="store_true", help="print the counts of each pass as a line of JSON")
    common.add_argument("--url", help="where the service is; ENGRAM_URL sets it as well")
    parser = argparse.ArgumentParser(prog="engram-pull", description="Send thumbs of other products to Engram.")
    products = parser.add_subparsers(dest="product", required=True)

    langfuse = products.add_parser(
        "langfuse",
        parents=[common],
        help="scores of Langfuse; a query's trace id is the score's trace",
        epilog="Reads LANGFUSE_HOST (by default Langfuse Cloud), LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY.",
    )
    langfuse.add_argument(
        "--score", action="append", help="name of scores that are thumbs, repeatable; by default user-feedback"
    )
    langfuse.add_argument("--scale", default="0:1", metavar="LOW:HIGH", help="of numeric scores, such as 1:5")
    langfuse.add_argument(
        "--days", type=int, default=DAYS, help="scores of the last days are read and watched for changes"
    )
    products.add_parser(
        "dify",
        parents=[common],
        help="feedback of a Dify app; queries are found by the message, or by its resources",
        epilog="Reads DIFY_API_URL (by default Dify Cloud, with /v1) and DIFY_API_KEY, the app's key.",
    )
    open_webui = products.add_parser(
        "open-webui",
        parents=[common],
        help="feedback of Open WebUI; a query's trace id is the message",
        epilog="Without a file it reads OPEN_WEBUI_URL and OPEN_WEBUI_API_KEY, the key of an administrator.",
    )
    open_webui.add_argument(
        "file", nargs="?", type=Path, help="the export of feedback; without it, the API is read"
    )
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        PullError: a variable or an option is wrong, or the product cannot be read.
        EngramError: the service refuses or is out of reach.
    """
    with ExitStack() as stack:
        product, http = _open_product(arguments, stack)
        by_host = product.product if http is None else f"{product.product}@{http.host}"
        source = arguments.name or re.sub(r"[^a-z0-9._@:-]", "-", by_host.lower())
        if not re.fullmatch(r"[a-z0-9][a-z0-9._@:-]{0,199}", source):
            raise PullError(f"--name {source!r} may hold a to z, digits and . _ @ : - only.")
        judge = None if arguments.judge is None else normalise_judge(arguments.judge)
        # The client reads ENGRAM_ACCESS_KEY: a key on the command line would stand in every list of processes.
        client = stack.enter_context(Engram(arguments.url, collection=arguments.collection))
        pull = PullRun(
            product,
            PullService(client, source),
            source,
            judge=judge,
            report=_choose_report(arguments),
            dry=arguments.dry_run,
            allow_mass=arguments.allow_mass_revocation,
        )
        window = timedelta(days=arguments.days) if arguments.product == "langfuse" else None
        repeat(pull, window, watch=arguments.watch, every=arguments.every, as_json=arguments.json)


def _open_product(arguments: argparse.Namespace, stack: ExitStack) -> tuple[Product, ProductHttp | None]:
    if arguments.product == "open-webui" and arguments.file is not None:
        return OpenWebUiFeedbacks(arguments.file), None
    if arguments.product == "langfuse":
        host = (
            os.environ.get("LANGFUSE_HOST") or os.environ.get("LANGFUSE_BASE_URL") or "https://cloud.langfuse.com"
        )
        variables = "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
        auth = (_require_variable("LANGFUSE_PUBLIC_KEY"), _require_variable("LANGFUSE_SECRET_KEY"))
        http = ProductHttp("Langfuse", host.rstrip("/"), variables, auth=auth)
        product: Product = LangfuseScores(http, arguments.score or [THUMB_NAME], _read_scale(arguments.scale))
    elif arguments.product == "dify":
        host = (os.environ.get("DIFY_API_URL") or "https://api.dify.ai/v1").rstrip("/")
        http = ProductHttp("Dify", host, "DIFY_API_KEY", headers=_read_bearer("DIFY_API_KEY"))
        product = DifyFeedbacks(http)
    else:
        host = _require_variable("OPEN_WEBUI_URL").rstrip("/")
        http = ProductHttp("Open WebUI", host, "OPEN_WEBUI_API_KEY", headers=_read_bearer("OPEN_WEBUI_API_KEY"))
        product = OpenWebUiFeedbacks(http)
    stack.callback(http.close)
    return product, http


def _choose_report(arguments: argparse.Namespace) -> Callable[[str], None]:
    """Choose where lines about changes go: beside JSON only those of a dry run are printed."""
    if not arguments.json:
        return lambda line: print(line, flush=True)
    return (lambda line: print(line, file=sys.stderr, flush=True)) if arguments.dry_run else lambda _: None


def _require_variable(variable: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise PullError(f"{variable} is not set.")
    return value


def _read_bearer(variable: str) -> dict[str, str]:
    return {"authorization": f"Bearer {_require_variable(variable)}"}


def _read_scale(text: str) -> Scale:
    low, _, high = text.partition(":")
    try:
        return Scale(float(low), float(high))
    except ValueError as error:
        raise PullError(f"--scale {text!r} is not LOW:HIGH, such as 1:5.") from error


def repeat(pull: PullRun, window: timedelta | None, *, watch: bool, every: float, as_json: bool) -> None:
    """Make one pass, or one after the other until the process is told to end."""
    stopping = threading.Event()
    if watch:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
    last_full: datetime | None = None
    while True:
        began = datetime.now(UTC)
        full = window is None or last_full is None or (began - last_full).total_seconds() >= FULL_PASS_SECONDS
        oldest = None if window is None else began - window
        since = oldest if full or oldest is None else max(oldest, began - RECENT)
        try:
            _print_counts(pull.run_once(since, oldest), as_json=as_json)
            last_full = began if full else last_full
        except (BusyError, UnreachableError, UnavailableProductError) as error:
            if not watch:
                raise
            print(f"engram-pull: {error} The next pass tries again.", file=sys.stderr, flush=True)
        if not watch or stopping.wait(every):
            return


def _print_counts(counts: PullCounts, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(counts)), flush=True)
        return
    rated = f"{counts.up} up, {counts.down} down, {counts.revoked} revoked, {counts.unchanged} unchanged"
    remarks = [
        f"{_count_scores(counts.unknown)} of traces without a query here" if counts.unknown else "",
        f"{_count_scores(counts.skipped)} skipped" if counts.skipped else "",
    ]
    print("; ".join([rated, *filter(None, remarks)]), flush=True)


def _count_scores(number: int) -> str:
    return "1 score" if number == 1 else f"{number:,} scores"


if __name__ == "__main__":
    main()

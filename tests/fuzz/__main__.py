"""Look for what makes the service fail, hang, answer slowly or lose a verdict: ``python -m tests.fuzz``.

A service of its own is started as ``engram up`` starts it, on its own Postgres and Redis. Rows of requests follow
the links of the OpenAPI document, bodies are changed at random, and raw sockets send what no library would. It
prints what it found and ends with 1 if that is anything. Seed and number name a body or a socket's request again
(``--only``); rows depend on what the service answers as well.
"""

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.fuzz import campaign, mutations
from tests.fuzz.guests import invite
from tests.fuzz.ledger import MOODY_MODEL, NO_MODEL, Ledger
from tests.fuzz.model import TIMEOUT_SECONDS, open_moody_server
from tests.fuzz.service import Service


def main() -> int:
    """Run it."""
    asked = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--seconds", type=float, default=300.0, help="for all of it, but for start and end")
    asked.add_argument("--bodies", type=int, default=10_000, help="mutated bodies at most")
    asked.add_argument("--sockets", type=int, default=2_000, help="requests by raw sockets at most")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--slow", type=float, default=10.0, help="seconds from which on an answer is a finding")
    asked.add_argument("--report", type=Path, help="a file for the report, as JSON")
    asked.add_argument("--keys", action="store_true", help="need access keys, and ask by keys of random scopes")
    asked.add_argument("--llm", action="store_true", help="have a language model, of changing moods")
    asked.add_argument("--only", type=int, help="print the body of this number, and send nothing")
    given = asked.parse_args()
    if given.only is not None:
        known = {"collection": campaign.COLLECTION, "query_id": "QUERY", "sentences": [1]}
        sent = mutations.mutate(given.seed, given.only, mutations.seeds(known), known)
        sys.stdout.write(f"{sent.method} {sent.target}\n{json.dumps(sent.headers)}\n{sent.content!r}\n")
        return 0
    ledger = Ledger(slow_seconds=given.slow, expected=MOODY_MODEL if given.llm else NO_MODEL)
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="engram-fuzz-")))
        more = {"ENGRAM_ACCESS": "keys"} if given.keys else {}
        if given.llm:
            model = stack.enter_context(open_moody_server(given.seed))
            more |= {"ENGRAM_LLM_BASE_URL": model.base_url, "ENGRAM_LLM_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS)}
        service = stack.enter_context(Service(folder, more))
        guests = None
        if given.keys:
            guests = invite(service.url, folder, service.env, given.seed, campaign.COLLECTION)
        bounds = campaign.Bounds(given.seconds, given.bodies, given.sockets)
        counts = campaign.run(service.url, given.seed, bounds, ledger, guests)
        if given.llm:
            counts["model_asked"] = len(model.requests)
        if not service.running:
            ledger.record_finding("ended", "the service", service.errors()[-1] if service.errors() else "")
        for line in service.errors():
            ledger.record_finding("logged error", "the service", line)
        differs = service.verify()
        if differs is not None:
            ledger.record_finding("verify", "engram verify", differs)
    report = {"seed": given.seed, "seconds": round(time.monotonic() - began), **counts, **ledger.as_report()}
    text = json.dumps(report, indent=2, ensure_ascii=False)
    if given.report is not None:
        given.report.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{text}\n")
    return 1 if ledger.findings else 0


if __name__ == "__main__":
    sys.exit(main())

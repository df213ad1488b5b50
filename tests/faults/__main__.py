"""Repeat faults, and count what they lost or doubled: ``python -m tests.faults``.

Each fault hits real processes at random moments, which follow from the seed. After each repetition `engram verify`
and `engram doctor` must be clean, no row may belong to nothing, and what was acknowledged must be there once. It
prints a table with one line for each fault, then the findings, and ends with 1 if there are any.
"""

import argparse
import logging
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import structlog

from engram.config.settings import Settings
from engram.providers.embedded import EmbeddedPostgres, EmbeddedRedis
from engram.providers.embedder import load_embedder
from engram.runtime.container import Application, Servers
from engram.storage.schema_revision import migrate
from tests.faults import kills
from tests.faults.installation import Installation, Tally
from tests.faults.kills import Kills
from tests.support import encoder

MEMORY_MB = 128


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", type=int, default=20, help="repetitions of each fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", metavar="FAULT", help="names of faults, or parts of them")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    tallies = []
    with _kills(arguments.seed) as faults:
        for name, repeat in kills.FAULTS.items():
            if arguments.only and not any(part in name for part in arguments.only):
                continue
            tally, began = Tally(name), time.monotonic()
            faults.draw = random.Random(f"{arguments.seed} {name}")
            tallies.append(tally)
            while tally.runs < arguments.n:
                tally.runs += 1
                repeat(faults, tally)
            print(f"{name}: {tally.runs} runs, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print("| fault | repetitions | hit work under way | lost, doubled or not clean |\n|---|---|---|---|")
    for tally in tallies:
        print(f"| {tally.fault} | {tally.runs} | {tally.hits} | {len(tally.findings)} |")
    findings = [f"{tally.fault}: {line}" for tally in tallies for line in tally.findings]
    print("\n".join(findings))
    return 1 if findings else 0


@contextmanager
def _kills(seed: int) -> Iterator[Kills]:
    """Servers in a folder that goes again, with an application of two encoders."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="engram-faults-")))
        postgres = stack.enter_context(EmbeddedPostgres(folder / "postgres", memory_mb=MEMORY_MB))
        redis = stack.enter_context(EmbeddedRedis(folder / "redis"))
        migrate(postgres.url)
        settings = Settings(_env_file=None, data_dir=folder / "data", log_level="CRITICAL", facts=False)
        application = Application(settings, Servers(postgres.url, redis.url), consumer="faults")
        stack.callback(application.close)
        second = encoder.shallow(folder / "shallow")
        application.models.embedder_also = load_embedder(str(second), "onnx", settings.data_dir, 1, 64)
        env = {
            "DATABASE_URL": postgres.url,
            "REDIS_URL": redis.url,
            "ENGRAM_DATA_DIR": str(settings.data_dir),
            "ENGRAM_FACTS": "false",
            "ENGRAM_FEEDBACK_SWEEP_SECONDS": "0.2",
            "ENGRAM_MAINTENANCE_INTERVAL_SECONDS": "0",
        }
        yield Kills(Installation(application, env, folder), str(second), random.Random(seed), stack)


if __name__ == "__main__":
    sys.exit(main())

"""Repeat faults, and count what they lost or doubled: ``python -m tests.faults``.

Each fault hits real processes at random moments, which follow from the seed. After each repetition `engram verify`
and `engram doctor` must be clean, no row may belong to nothing, and what was acknowledged must be there once. It
prints a table with one line for each fault, then the findings, and ends with 1 if there are any.
"""

import argparse
import logging
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from pathlib import Path

import structlog

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context import tenancy
from engram.providers.embedder import load_embedder
from engram.storage.schema_revision import migrate
from engram.wings.local.servers import EmbeddedPostgres, EmbeddedRedis
from tests.faults import clocks, kills, races, replicas
from tests.faults.clocks import Clocks
from tests.faults.installation import Installation, Tally
from tests.faults.kills import Kills
from tests.faults.races import Races
from tests.faults.replicas import Replicas
from tests.support import encoder
from tests.support.constants import SWEEP_SECONDS

MEMORY_MB = 128


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", type=int, default=20, help="repetitions of each fault, which take turns")
    parser.add_argument("--minutes", type=float, default=math.inf, help="time after which no fault is repeated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", metavar="FAULT", help="names of faults, or parts of them")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    over = time.monotonic() + 60.0 * arguments.minutes
    with _faults(arguments.seed) as faults:
        tallies = [
            Tally(name) for name in faults if not arguments.only or any(part in name for part in arguments.only)
        ]
        for number, tally in product(range(arguments.n), tallies):
            if time.monotonic() < over:
                tally.runs += 1
                faults[tally.fault](tally)
                sys.stderr.write(
                    f"{number + 1} {tally.fault}: {tally.hits} of {tally.times} hit, {tally.findings}\n"
                )
    lines = ["| fault | times | hit work under way | lost, doubled or not clean |", "|---|---|---|---|"]
    lines += [f"| {tally.fault} | {tally.times} | {tally.hits} | {len(tally.findings)} |" for tally in tallies]
    findings = [f"{tally.fault}: {line}" for tally in tallies for line in tally.findings]
    sys.stdout.write("\n".join([*lines, *findings, ""]))
    return 1 if findings else 0


@contextmanager
def _faults(seed: int) -> Iterator[dict[str, Callable[[Tally], None]]]:
    """Name of each fault -> its repetition, on servers in a folder that goes again."""
    with tenancy.allow_all_tenants(), ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="engram-faults-")))
        postgres = stack.enter_context(EmbeddedPostgres(folder / "postgres", memory_mb=MEMORY_MB))
        redis = stack.enter_context(EmbeddedRedis(folder / "redis"))
        migrate(postgres.url)
        settings = Settings(_env_file=None, data_dir=folder / "data", log_level="ERROR")
        application = Application(settings, Servers(postgres.url, redis.url), consumer="faults")
        stack.callback(application.close)
        second = encoder.shallow(folder / "shallow")
        application.models.embedder_also = load_embedder(str(second), "onnx", settings.data_dir, 1, 64)
        env = {
            "DATABASE_URL": postgres.url,
            "REDIS_URL": redis.url,
            "ENGRAM_DATA_DIR": str(settings.data_dir),
            SWEEP_SECONDS: "0.2",
        }
        site = Installation(application, env, folder)
        killing = Kills(site, str(second), random.Random(seed), stack)
        racing = Races(site, random.Random(seed), stack)
        jumping = Clocks(site, random.Random(seed), stack)
        repetitions = {name: partial(repeat, killing) for name, repeat in kills.FAULTS.items()}
        repetitions |= {name: partial(repeat, racing) for name, repeat in races.FAULTS.items()}
        repetitions |= {name: partial(repeat, jumping) for name, repeat in clocks.FAULTS.items()}
        lagging = Replicas(site, postgres, random.Random(seed), stack)
        yield repetitions | {name: partial(repeat, lagging) for name, repeat in replicas.FAULTS.items()}


if __name__ == "__main__":
    sys.exit(main())

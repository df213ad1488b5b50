"""Learning in a process of its own: low priority, one core, bounded memory and time.

The parent sends the samples and reads what came of them; the other side loads little but NumPy.
"""

import math
import os
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import structlog

from engram.wings.tuning.core.acceptance import AcceptanceRule, Trial, try_adapter, try_tuning
from engram.wings.tuning.core.bert_gradients import BertWeights, Ids
from engram.wings.tuning.core.learn_adapter import Adapter, TuningOptions, TuningSamples

log = structlog.get_logger(__name__)

MODULE = "engram.wings.tuning.services.learning_process"
ROOT = Path(__file__).parents[4]
"""The folder that holds the package ``engram``."""
SECONDS = 900.0
"""The longest that learning may take. 1,000 verdicts take 72 s of one core, 3,000 below 4 minutes."""
MEMORY_BYTES = 1 << 30
"""Most memory for its data. 1,000 verdicts take 170 MB."""
NICENESS = 19
POLL_SECONDS = 0.5


OUT_OF_MEMORY = 3
"""Exit status of a process that needed more memory than it may."""
NO_MEMORY_FOR_THREADS = b"cannot allocate memory for thread-local data"
"""The loader's last words, if memory ends before Python could say so."""
ORPHAN_SECONDS = 60
"""Processor time beyond the limit after which the kernel ends a process whose parent died."""
ERROR_CHARACTERS = 2_000
"""The last so many characters that a failed process wrote are logged."""


class LearningLimitError(Exception):
    """Learning took longer, or more memory, than it may; the message says which."""


class LearningStoppedError(Exception):
    """Learning was told to stop."""


@dataclass(frozen=True)
class TrainingInput:
    """The input that learning and its trial are a pure function of.

    Attributes:
        lent: an adapter to try, see ``try_adapter``; None: one is learned, see ``try_tuning``.
        known: see ``try_adapter``.
    """

    weights: BertWeights
    samples: TuningSamples
    probes: list[Ids]
    options: TuningOptions
    rule: AcceptanceRule
    lent: Adapter | None = None
    known: frozenset[str] = frozenset()

    def decide(self) -> Trial:
        """Learn an adapter, or take the one that is lent, and try it."""
        if self.lent is None:
            return try_tuning(self.weights, self.samples, self.probes, self.options, self.rule)
        return try_adapter(self.weights, self.samples, self.probes, self.lent, self.known, self.options, self.rule)


def learn_in_subprocess(
    training: TrainingInput,
    should_stop: Callable[[], bool],
    *,
    seconds: float = SECONDS,
    memory_bytes: int = MEMORY_BYTES,
) -> Trial:
    """Learn and try an adapter in another process, and wait for it.

    Raises:
        LearningLimitError: it took too long, or too much memory.
        LearningStoppedError: ``should_stop`` said so.
        RuntimeError: the process failed; the log has the end of what it wrote.
    """
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    cpu_seconds = math.ceil(seconds) + ORPHAN_SECONDS
    ends = time.monotonic() + seconds
    # Waited for in a thread: a ``communicate`` that timed out before all was written would never write the rest.
    with (
        subprocess.Popen(
            [sys.executable, "-m", MODULE, str(memory_bytes), str(cpu_seconds), str(NICENESS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        ) as process,
        ThreadPoolExecutor(1, "learning") as waiter,
    ):
        spoken = waiter.submit(process.communicate, pickle.dumps(training))
        try:
            while not wait([spoken], POLL_SECONDS).done:
                if should_stop():
                    raise LearningStoppedError
                if time.monotonic() >= ends:
                    raise LearningLimitError(f"took longer than {seconds:g} seconds")
        finally:
            process.kill()
        answer, errors = spoken.result()
    if process.returncode == OUT_OF_MEMORY or NO_MEMORY_FOR_THREADS in errors:
        raise LearningLimitError(f"needs more than {memory_bytes >> 20} MB")
    if process.returncode != 0:
        tail = errors.decode(errors="replace")[-ERROR_CHARACTERS:]
        log.error("learning failed", exit_status=process.returncode, errors=tail)
        raise RuntimeError(f"the process that learns ended with status {process.returncode}")
    trial: Trial = pickle.loads(answer)  # noqa: S301 - of a process that this one started
    return trial


def main() -> None:
    """Read a training input, learn, and write the trial."""
    memory_bytes, cpu_seconds, niceness = (int(argument) for argument in sys.argv[1:])
    os.nice(niceness)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    try:
        training: TrainingInput = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started this one
        sys.stdout.buffer.write(pickle.dumps(training.decide()))
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)


if __name__ == "__main__":
    main()

"""Learning in a process of its own: low priority, one core, bounded memory and time.

The parent sends the samples and reads what came of them; only NumPy is loaded on the other side.
"""

import os
import pickle
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engram.wings.tuning.core.acceptance import AcceptanceRule, Trial, try_tuning
from engram.wings.tuning.core.bert_gradients import BertWeights, Ids
from engram.wings.tuning.core.learn_adapter import TuningOptions, TuningSamples

MODULE = "engram.wings.tuning.services.learning_process"
ROOT = Path(__file__).parents[4]
"""The folder that holds the package ``engram``."""
SECONDS = 900.0
"""The longest that learning may take. 1,000 verdicts take 72 s of one core, 3,000 below 4 minutes."""
MEMORY_BYTES = 1 << 30
"""Most memory for its data. 1,000 verdicts take 170 MB."""
NICENESS = 19
POLL_SECONDS = 0.5


class LearningLimitError(Exception):
    """Learning took longer, or more memory, than it may; the message says which."""


class LearningStoppedError(Exception):
    """Learning was told to stop."""


@dataclass(frozen=True)
class Lesson:
    """All that learning and its trial are a pure function of; see ``try_tuning``."""

    weights: BertWeights
    samples: TuningSamples
    probes: list[Ids]
    options: TuningOptions
    rule: AcceptanceRule


def learn_apart(
    lesson: Lesson, should_stop: Callable[[], bool], *, seconds: float = SECONDS, memory_bytes: int = MEMORY_BYTES
) -> Trial:
    """Learn and try an adapter in another process, and wait for it.

    Raises:
        LearningLimitError: it took too long, or too much memory.
        LearningStoppedError: ``should_stop`` said so.
    """
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, str(memory_bytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    answers: list[bytes] = []

    def exchange() -> None:
        try:
            answers.append(process.communicate(pickle.dumps(lesson))[0])
        except BrokenPipeError:  # it ended before it had read everything
            process.wait()

    exchanging = threading.Thread(target=exchange, name="tuning", daemon=True)
    exchanging.start()
    ends = time.monotonic() + seconds
    try:
        while exchanging.is_alive():
            if should_stop():
                raise LearningStoppedError
            if time.monotonic() > ends:
                raise LearningLimitError(f"took longer than {seconds:g} seconds")
            exchanging.join(POLL_SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
        exchanging.join()
    if process.returncode != 0 or not answers:
        raise LearningLimitError(f"broke off, or needs more than {memory_bytes >> 20} MB")
    trial: Trial = pickle.loads(answers[0])  # noqa: S301 - of a process that this one started
    return trial


def main() -> None:
    """Read a lesson, learn, and write the trial."""
    os.nice(NICENESS)
    most = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    lesson: Lesson = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started this one
    trial = try_tuning(lesson.weights, lesson.samples, lesson.probes, lesson.options, lesson.rule)
    sys.stdout.buffer.write(pickle.dumps(trial))


if __name__ == "__main__":
    main()

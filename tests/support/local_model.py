"""A real chat model behind OpenAI's protocol: SmolLM2-135M, in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "local_model.py"


@contextmanager
def local_model(reply_tokens: int = 400) -> Iterator[str]:
    """Serve the model within the block; the block gets its base URL."""
    command = [sys.executable, str(SCRIPT), "--reply-tokens", str(reply_tokens)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("http://"), f"the model did not start: {process.wait()}"
            yield url
        finally:
            process.terminate()

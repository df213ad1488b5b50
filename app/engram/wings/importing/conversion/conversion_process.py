"""The processes behind ``Converter``: a template, and those that it forks, which answer files with passages."""

import gc
import json
import os
import resource
import selectors
import signal
import socket
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from typing import Any, cast

from engram.context.errors import EngramError
from engram.providers.language.language_detection import load_identifier
from engram.wings.importing.conversion.conversion_template import receive, send
from engram.wings.importing.conversion.formats import convert
from engram.wings.importing.conversion.import_limits import ConversionLimits

LIBRARIES = (
    "lxml.html",
    "bs4",
    "markdown_it",
    "openpyxl",
    "pptx",
    "pypdfium2",
    "mammoth",
    "yaml",
    "docutils.parsers.rst",
    "oxmsg",
    "orgparse",
)
"""What readers import when they are first used, the commonest first."""
IDLE_SECONDS = 300.0
"""After which the template ends: it takes 180 MB."""


def main() -> None:
    """Fork a process for each order, and kill it once its lifeline is cut.

    While nothing is ordered, import what the next processes may need. End once the parent closes the orders, or has
    ordered nothing for long.
    """
    load_identifier()
    children: dict[socket.socket, int] = {}
    libraries = iter(LIBRARIES)
    with socket.socket(fileno=os.dup(0)) as orders, selectors.DefaultSelector() as waiting:
        waiting.register(orders, selectors.EVENT_READ)
        while True:
            gc.freeze()  # else each process copies what it shares when it looks for garbage
            library = next(libraries, None)
            ready = waiting.select(IDLE_SECONDS if library is None else 0)
            if not ready and library is None and not children:
                return
            for key, _ in ready:
                readable = cast(socket.socket, key.fileobj)
                if readable is orders:
                    _, files, *_ = socket.recv_fds(orders, 1, 2)
                    if not files:
                        for child in children.values():
                            _kill(child)
                        return
                    lifeline = socket.socket(fileno=files[1])
                    children[lifeline] = _fork(files[0])
                    waiting.register(lifeline, selectors.EVENT_READ)
                    with suppress(OSError):  # who ordered it is gone
                        lifeline.send(b".")
                else:
                    waiting.unregister(readable)
                    _kill(children.pop(readable))
                    readable.close()
            if library is not None:
                with suppress(ImportError):
                    import_module(library)


def _kill(child: int) -> None:
    """Kill a process with the programs that it runs."""
    with suppress(ProcessLookupError):  # it leads no session yet, and has no programs
        os.killpg(child, signal.SIGKILL)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _fork(stream: int) -> int:
    child = os.fork()
    if child == 0:
        try:
            _answer_files(stream)
        finally:
            os._exit(0)
    os.close(stream)
    return child


def _answer_files(stream: int) -> None:
    """Convert what the stream brings until it ends. No other file of the template stays open; none is written."""
    os.setsid()
    os.dup2(1, 0)
    os.dup2(stream, 3)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=3) as files:
        while (header := receive(files)) is not None and (data := receive(files)) is not None:
            answer = _answer(json.loads(header), data)
            signal.alarm(0)
            send(files, json.dumps(answer).encode())


def _answer(header: dict[str, Any], data: bytes) -> dict[str, Any]:
    limits, source = ConversionLimits(**header["limits"]), header["source"]
    signal.alarm(int(limits.seconds) + 2)  # ends the process where the template is gone
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    try:
        options = {name: header[name] for name in ("kind", "size", "overlap")}
        conversion = convert(source, data, limits=limits, **options)
    except EngramError as error:
        return {"error": type(error).__name__, "detail": error.detail}
    except MemoryError:
        os._exit(1)  # libraries that ran out of memory would read the next file wrong
    return {
        "passages": [asdict(passage) for passage in conversion.passages],
        "notes": conversion.notes,
        "differences": conversion.differences,
    }


if __name__ == "__main__":
    main()

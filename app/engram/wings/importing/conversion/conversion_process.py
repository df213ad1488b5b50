"""The process behind ``Converter``: reads files from its standard input and answers with their passages."""

import json
import os
import resource
import signal
import sys
from dataclasses import asdict
from typing import Any

from engram.context.errors import EngramError
from engram.providers.language.language_detection import load_identifier
from engram.wings.importing.conversion.converter import receive, send
from engram.wings.importing.conversion.formats import convert
from engram.wings.importing.conversion.import_limits import ConversionLimits


def main() -> None:
    """Answer until the parent closes the pipe."""
    incoming = sys.stdin.buffer
    outgoing = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand among the answers
    load_identifier()  # it is unpacked into a temporary file, which the next line forbids
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while (header := receive(incoming)) is not None and (data := receive(incoming)) is not None:
        answer = _answer(json.loads(header), data)
        signal.alarm(0)
        send(outgoing, json.dumps(answer).encode())
        outgoing.flush()


def _answer(header: dict[str, Any], data: bytes) -> dict[str, Any]:
    limits, source = ConversionLimits(**header["limits"]), header["source"]
    signal.alarm(int(limits.seconds) + 2)  # ends the process where its parent is gone
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

"""``engram`` as a shell finds it, run by the server of forks whose socket ``FORKS`` names; see ``forks.py``.

It imports little, so that a page of thirty commands does not start Engram thirty times.
"""

import json
import os
import socket
import struct
import sys
import tempfile


def main() -> int:
    """Have the command forked with this process's output, folder and environment; return its exit code."""
    order = {"arguments": ["-m", "engram.cli", *sys.argv[1:]], "cwd": os.getcwd(), "env": dict(os.environ)}
    reports, theirs = socket.socketpair()
    with theirs, tempfile.TemporaryFile() as file, socket.socket(fileno=os.dup(int(os.environ["FORKS"]))) as server:
        file.write(json.dumps(order).encode())
        file.seek(0)
        socket.send_fds(server, [b"."], [file.fileno(), theirs.fileno(), 1, 2])
    reports.recv(4)  # its process id
    (code,) = struct.unpack("i", reports.recv(4))
    return int(code) if code >= 0 else 128 - int(code)


if __name__ == "__main__":
    sys.exit(main())

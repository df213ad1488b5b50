"""``engram up`` whose own processes are forked from it: to import Engram takes each of them seconds of a core.

They are as those that are started, except that ``/proc/ID/comm`` and not their command line names their role.
"""

import atexit
import ctypes
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from subprocess import Popen
from typing import NoReturn

from engram import cli
from engram.wings.local.runtime import supervisor
from tests.support import forks

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15


class ForkedChild(Popen[bytes]):
    """A process that is there already."""

    def __init__(self, pid: int) -> None:
        self.pid, self.args, self.returncode = pid, [], None
        self.stdin = self.stdout = self.stderr = None
        self._child_created = True
        self._waitpid_lock = threading.Lock()
        self._sigint_wait_secs = 0.25


def fork(
    command: Sequence[str], *, death_signal: int, env: Mapping[str, str], keep_open: Sequence[int] = ()
) -> ForkedChild:
    """Fork ``python -P -m engram.cli ...``, which dies with this process."""
    supervising = os.getpid()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
        ctypes.CDLL(None).prctl(_PR_SET_NAME, command[4].encode(), 0, 0, 0)
        if os.getppid() == supervising:
            _become(command[2:], env, keep_open)
        os._exit(1)
    return ForkedChild(child)


def _become(program: Sequence[str], env: Mapping[str, str], keep_open: Sequence[int]) -> NoReturn:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    kept = {0, 1, 2, *keep_open}
    for descriptor in {int(name) for name in os.listdir("/proc/self/fd")} - kept:
        try:
            os.close(descriptor)
        except OSError:  # that of the folder which was listed
            continue
    atexit._clear()  # noqa: SLF001 - what the first process is to do at its end
    os.environ.clear()
    os.environ.update(env)
    forks.end(forks.run_program(program))


if __name__ == "__main__":
    vars(supervisor)["spawn"] = fork
    cli.main()

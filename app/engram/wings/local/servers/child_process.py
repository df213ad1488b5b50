"""Starts programs that die with this process, under another user where that is needed.

Run as a script, this file is the launcher: inside the new process it gives up root, asks the kernel for a signal
when the parent dies, and then becomes the program. A ``preexec_fn`` would run the same Python between fork and
exec, where a lock held by another thread can deadlock it. The launcher starts without site-packages, so this file
imports the standard library only.
"""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from subprocess import DEVNULL, Popen
from typing import NamedTuple

_ON_LINUX = sys.platform.startswith("linux")
_SAME_USER = "-"  # launcher argument: stay the user that started it

_PR_SET_PDEATHSIG = 1
_PR_SET_KEEPCAPS = 8
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_DAC_OVERRIDE = 1
_CAP_DAC_READ_SEARCH = 2


class User(NamedTuple):
    """Numeric identity that a program runs under."""

    uid: int
    gid: int


def spawn(
    command: Sequence[str],
    *,
    death_signal: int,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    output: int | None = None,
    user: User | None = None,
    reach: Path | None = None,
    umask: int = -1,
    keep_open: Sequence[int] = (),
) -> "Popen[bytes]":
    """Start ``command`` in a session of its own, so that Ctrl-C in the terminal reaches only its supervisor.

    ``death_signal`` is sent to it when this process dies, however it dies (Linux only). ``output`` is the file
    descriptor of its stdout and stderr, inherited if None. As root, ``user`` is who it runs as; where that user
    cannot reach the program or the folder ``reach``, such as below a /root of mode 0700, it keeps the single
    capability to pass by directory permissions. ``keep_open`` are descriptors it inherits.

    A program that cannot be executed ends with exit status 126 and a line in ``output``.
    """
    identity = [_SAME_USER, _SAME_USER] if user is None else [str(user.uid), str(user.gid)]
    launcher = [sys.executable, "-I", "-S", str(Path(__file__).resolve())]
    arguments = [str(os.getpid()), str(int(death_signal)), *identity, str(reach or "/"), *command]
    return _spawner.call(
        lambda: Popen(
            [*launcher, *arguments],
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            env=env,
            cwd=cwd,
            pass_fds=keep_open,
            umask=umask,
            start_new_session=True,
        )
    )


class _Spawner:
    """Starts every program from one thread that never ends.

    The kernel sends the parent-death signal when the *thread* that started a program exits: a server started
    from a short-lived thread would be shut down with that thread.
    """

    def __init__(self) -> None:
        self._requests: SimpleQueue[tuple[Callable[[], Popen[bytes]], Future[Popen[bytes]]]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def call(self, task: Callable[[], "Popen[bytes]"]) -> "Popen[bytes]":
        """Run ``task`` on that thread and return, or raise, what it did."""
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._serve, name="engram-spawner", daemon=True)
                self._thread.start()
        future: Future[Popen[bytes]] = Future()
        self._requests.put((task, future))
        return future.result()

    def _serve(self) -> None:
        while True:
            task, future = self._requests.get()
            try:
                future.set_result(task())
            except Exception as error:  # noqa: BLE001 - handed to the caller, who waits for it
                future.set_exception(error)


_spawner = _Spawner()


def _become(user: User, needed: Sequence[str]) -> None:
    """Give up root for good; keep one capability if ``needed`` paths cannot be reached without it."""
    libc = ctypes.CDLL(None, use_errno=True)
    permitted = _read_permitted_capabilities()
    if _ON_LINUX:
        libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setgid(user.gid)
    os.setuid(user.uid)
    if not _ON_LINUX:
        return
    # access(2) disregards capabilities for a user other than root, so this asks about the bare user.
    reachable = all(os.access(path, os.X_OK) for path in needed)
    capability_kept = None
    if not reachable:
        capabilities = (_CAP_DAC_READ_SEARCH, _CAP_DAC_OVERRIDE)  # Docker grants only the second by default
        capability_kept = next((capability for capability in capabilities if permitted & 1 << capability), None)
    mask = 0 if capability_kept is None else 1 << capability_kept
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
    libc.capset(header, sets)
    if capability_kept is not None:
        libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability_kept, 0, 0)


def _read_permitted_capabilities() -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapPrm:")), 0)


def _launch(arguments: Sequence[str]) -> int:
    """Become the program; returns an exit status only if that failed."""
    parent, death_signal, uid, gid, reach, *command = arguments
    try:
        if uid != _SAME_USER:
            _become(User(int(uid), int(gid)), (command[0], reach))
        if _ON_LINUX:
            # After the change of user, which clears it.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
            if os.getppid() != int(parent):
                return 125
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it and exec would pass that on
        os.execv(command[0], command)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"cannot run {command[0]}: {error}\n")
    return 126


if __name__ == "__main__":
    sys.exit(_launch(sys.argv[1:]))

"""An Engram process that kills itself: ``python killed.py COMMAND MODULE:NAME before|after [NTH]``.

The named function is wrapped, and everything else is the process as it is shipped: at the NTH call of the function,
or after it, the process sends itself SIGKILL, as the kernel does when memory runs out.
"""

import functools
import importlib
import itertools
import os
import signal
import sys
from typing import Any

from engram.cli import main


def arm(target: str, when: str, nth: int) -> None:
    """Wrap the function."""
    module, _, path = target.partition(":")
    *inside, name = path.split(".")
    owner = functools.reduce(getattr, inside, importlib.import_module(module))
    inner = getattr(owner, name)
    calls = itertools.count(1)

    @functools.wraps(inner)
    def kill_at_call(*arguments: Any, **named: Any) -> Any:
        last = next(calls) == nth
        if last and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = inner(*arguments, **named)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, kill_at_call)


if __name__ == "__main__":
    command, target, when, *nth = sys.argv[1:]
    arm(target, when, int(nth[0]) if nth else 1)
    sys.argv = ["engram", command]
    main()

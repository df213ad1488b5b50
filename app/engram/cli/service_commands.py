"""Commands that ask a running service and print its answer."""

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import Parameter
from typing import Any

from engram.cli.terminal import JsonOption, UrlOption, open_client, say_json


def service_command(ask: Callable[..., Iterator[Any]]) -> Callable[..., None]:
    """Make a command of a generator that asks the service; adds the options ``--url`` and ``--json``.

    Args:
        ask: takes the client first. It yields the document that ``--json`` prints, and then prints it for people;
            with ``--json`` it is not resumed.
    """

    @wraps(ask)
    def run(*, url: str | None, as_json: bool, **arguments: Any) -> None:
        with open_client(url) as client:
            steps = ask(client, **arguments)
            document = next(steps)
            if as_json:
                say_json(document)
            else:
                next(steps, None)

    _, *own = inspect.signature(ask).parameters.values()
    common = [
        Parameter("url", Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=UrlOption),
        Parameter("as_json", Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation=JsonOption),
    ]
    vars(run)["__signature__"] = inspect.Signature([*own, *common])
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *common)}
    del vars(run)["__wrapped__"]
    return run

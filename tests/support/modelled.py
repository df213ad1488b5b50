"""Applications whose LLM is a handler of the test's."""

from contextlib import ExitStack
from typing import Any

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from tests.support.constants import LLM_ATTEMPTS, set_constants
from tests.support.openai_server import Handler, OpenAiServer, Reply
from tests.support.strict_client import TestClient


class ModelApplications:
    """Makes them, on the servers and with the encoder of one that there is, and closes them at the end.

    ``server`` is the endpoint of the latest; ``held`` has for each call of a handler how many database connections
    its application held meanwhile.
    """

    def __init__(self, settings: Settings, addresses: Servers, shared: Application) -> None:
        self._settings, self._addresses, self._shared = settings, addresses, shared
        self.held: list[int] = []
        self.server: OpenAiServer
        self.open = ExitStack()

    def application(self, handler: Handler, attempts: int = 1, **changed: Any) -> Application:
        """One whose LLM is ``handler``, tried so often; ``changed`` are further settings."""

        def answer_and_record(request: dict[str, Any]) -> str | Reply:
            self.held.append(sum(pool.in_use for pool in made.database.pools().values()))
            return handler(request)

        self.server = self.open.enter_context(OpenAiServer(answer_and_record))
        update = {"llm_base_url": self.server.base_url} | changed
        made = Application(self._settings.model_copy(update=update), self._addresses)
        made.models.embedder, made.models.language = self._shared.models.embedder, self._shared.models.language
        self.open.callback(made.close)
        with pytest.MonkeyPatch.context() as patch:
            set_constants(patch, {LLM_ATTEMPTS: attempts})
            assert made.models.llm is not None  # which is made here
        return made

    def __call__(self, handler: Handler, **changed: Any) -> TestClient:
        """A client of such an application."""
        return TestClient(create_app(self.application(handler, **changed)), raise_server_exceptions=False)

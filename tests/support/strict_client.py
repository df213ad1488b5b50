"""A client of the ASGI application that hands it nothing of the test's context, as a server would."""

from contextvars import Context
from typing import Any

from fastapi import testclient


class TestClient(testclient.TestClient):
    """Runs the application without the tenancy of the tests."""

    __test__ = False

    def __enter__(self) -> "TestClient":
        Context().run(super().__enter__)
        return self

    def send(self, *arguments: Any, **options: Any) -> Any:  # type: ignore[override]
        """Send a request."""
        return Context().run(super().send, *arguments, **options)

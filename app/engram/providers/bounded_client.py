"""An HTTP client whose requests end in their time, whatever the server does."""

import threading
from contextlib import ExitStack

import anyio
import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal


class TooLongError(Exception):
    """A response is longer than what its caller reads."""


class BoundedClient:
    """Posts to servers; safe to share between threads.

    An event loop cancels a request that takes too long and closes its connection. Blocking clients bound the wait
    for each piece alone: headers that come a byte at a time keep their thread for hours.
    """

    def __init__(self, api_key: str | None, connections: int | None = None) -> None:
        """Open nothing yet.

        Args:
            connections: how many there may be at once; None: any number.
        """
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {})
        self._client = httpx.AsyncClient(headers=headers, limits=httpx.Limits(max_connections=connections))
        self._lock = threading.Lock()
        self._closing = ExitStack()
        self._portal: BlockingPortal | None = None

    def post(self, url: str, content: bytes, *, seconds: float, most_bytes: int) -> tuple[httpx.Response, bytes]:
        """Send JSON and return the response with its body.

        Args:
            seconds: from now to the end of the response.

        Raises:
            TimeoutError: it takes longer.
            TooLongError: the body has more than ``most_bytes``.
            httpx.HTTPError: the server cannot be reached or breaks off.
        """
        return self._open_portal().call(self._post, url, content, seconds, most_bytes)

    def close(self) -> None:
        """Close the connections and give up what still waits."""
        with self._lock:
            if self._portal is not None:
                self._portal.call(self._end)
            self._closing.close()
            self._portal = None

    def _open_portal(self) -> BlockingPortal:
        with self._lock:
            if self._portal is None:
                self._portal = self._closing.enter_context(start_blocking_portal(name="bounded-requests"))
            return self._portal

    async def _end(self) -> None:
        await self._client.aclose()
        if self._portal is not None:
            await self._portal.stop(cancel_remaining=True)

    async def _post(
        self, url: str, content: bytes, seconds: float, most_bytes: int
    ) -> tuple[httpx.Response, bytes]:
        body = bytearray()
        with anyio.fail_after(seconds):
            async with self._client.stream("POST", url, content=content, timeout=None) as response:
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > most_bytes:
                        raise TooLongError
        return response, bytes(body)

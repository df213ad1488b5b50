"""The path below which a proxy shows the service (``ENGRAM_ROOT_PATH``)."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class RootPathMiddleware:
    """Serve the same routes below a prefix, whether or not the proxy removes it from the path.

    The routes see no prefix. Addresses of headers get it, since a client resolves them against the host.
    """

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        """``root_path``: as the setting has it, without a slash at its end."""
        self._app = app
        self._root = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_below(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("location", "").startswith("/"):
                    headers["location"] = self._root + headers["location"]
            await send(message)

        await self._app(self._remove_root(scope), receive, send_below)

    def _remove_root(self, scope: Scope) -> Scope:
        """The request as it is without the prefix; as it came if the proxy has removed it."""
        path, sent = scope["path"], scope.get("raw_path") or scope["path"].encode()
        prefix = self._root.encode()
        if not (f"{path}/".startswith(f"{self._root}/") and (sent + b"/").startswith(prefix + b"/")):
            return scope
        return {**scope, "path": path[len(self._root) :] or "/", "raw_path": sent[len(prefix) :] or b"/"}

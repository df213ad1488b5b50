"""Local HTTP servers that speak the published contracts of Langfuse, Dify and Open WebUI, as pulls read them.

Each holds its records in memory, checks credentials, pages as the product does, and can be told to fail first::

    with LangfuseServer([score("a", trace="t")]) as server:
        server.fail(429, {"retry-after": "0"})  # the next request
        server.records.clear()                  # the product deletes its scores
"""

import base64
import json
import threading
from collections import deque
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

Record = dict[str, Any]
Answer = tuple[int, Any]


class ProductServer:
    """A server on a free local port; subclasses answer GET requests by ``answer``."""

    def __init__(self, records: list[Record] | None = None) -> None:
        self.records = records if records is not None else []
        self.paths: list[str] = []
        self._failures: deque[tuple[int, Mapping[str, str]]] = deque()
        self._httpd = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._httpd.shutdown()
        self._thread.join()
        self._httpd.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._httpd.server_address[1]}"

    def fail(self, status: int, headers: Mapping[str, str] | None = None) -> None:
        """Answer the next request with this status; called again, the one after it too."""
        self._failures.append((status, headers or {}))

    def allows(self, authorization: str) -> bool:
        raise NotImplementedError

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        raise NotImplementedError

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                server.paths.append(self.path)
                headers: Mapping[str, str] = {}
                if server._failures:
                    status, headers = server._failures.popleft()
                    body: Any = {"message": "failing"}
                elif not server.allows(self.headers.get("authorization", "")):
                    status, body = 401, {"message": "Unauthorized"}
                else:
                    status, body = server.answer(parts.path, dict(parse_qsl(parts.query)))
                content = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"content-type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        return Handler


def langfuse_score(score_id: str, trace: str | None, **changed: Any) -> Record:
    """A boolean thumb up, with all fields that the two versions take their answers from."""
    return {
        "id": score_id,
        "traceId": trace,
        "observationId": None,
        "name": "user-feedback",
        "dataType": "BOOLEAN",
        "value": True,
        "source": "API",
        "comment": None,
        "authorUserId": None,
        "userId": None,
        "timestamp": "2026-11-20T10:00:00.000Z",
        "updatedAt": "2026-11-20T10:00:00.000Z",
    } | changed


class LangfuseServer(ProductServer):
    """The scores API: version 3 with cursors, or of an older server version 2 with pages."""

    def __init__(self, records: list[Record] | None = None, *, version: str = "v3") -> None:
        super().__init__(records)
        self.version = version

    def allows(self, authorization: str) -> bool:
        return authorization == "Basic " + base64.b64encode(b"pk-lf-1:sk-lf-1").decode()

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        if path != f"/api/public/{self.version}/scores":
            return 404, {"message": "Not Found"}
        limit = int(query.get("limit", 50))
        if limit > 100:
            return 400, {"message": "limit"}
        names, since = query.get("name", "").split(","), query.get("fromTimestamp", "")
        ids = query.get("id" if self.version == "v3" else "scoreIds")
        found = [
            record
            for record in sorted(self.records, key=lambda one: (one["timestamp"], one["id"]), reverse=True)
            if record["name"] in names
            and record["timestamp"] >= since
            and (ids is None or record["id"] in ids.split(","))
        ]
        return self._v3(found, query, limit) if self.version == "v3" else self._v2(found, query, limit)

    def _v3(self, found: list[Record], query: Mapping[str, str], limit: int) -> Answer:
        groups = set(query.get("fields", "").split(",")) - {""}
        if not groups <= {"details", "subject", "annotation"}:
            return 400, {"message": "fields"}
        start = int(base64.urlsafe_b64decode(query["cursor"])) if "cursor" in query else 0
        meta: Record = {"limit": limit}
        if start + limit < len(found):
            meta["cursor"] = base64.urlsafe_b64encode(str(start + limit).encode()).decode()
        return 200, {"data": [_v3(record, groups) for record in found[start : start + limit]], "meta": meta}

    def _v2(self, found: list[Record], query: Mapping[str, str], limit: int) -> Answer:
        page = int(query.get("page", 1))
        meta = {"page": page, "limit": limit, "totalItems": len(found), "totalPages": -(-len(found) // limit)}
        return 200, {"data": [_v2(record) for record in found[(page - 1) * limit : page * limit]], "meta": meta}


def _v3(record: Record, groups: set[str]) -> Record:
    core = ("id", "name", "dataType", "value", "source", "timestamp", "updatedAt")
    shown = {name: record[name] for name in core} | {"projectId": "p", "environment": "default"}
    shown["createdAt"] = record["timestamp"]
    if "details" in groups and record["comment"] is not None:
        shown["comment"] = record["comment"]
    if "annotation" in groups and record["authorUserId"] is not None:
        shown["authorUserId"] = record["authorUserId"]
    if "subject" in groups:
        if record["observationId"]:
            subject = {"kind": "observation", "id": record["observationId"], "traceId": record["traceId"]}
        elif record["traceId"] is None:
            subject = {"kind": "session", "id": "session-1"}
        else:
            subject = {"kind": "trace", "id": record["traceId"]}
        shown["subject"] = subject
    return shown


def _v2(record: Record) -> Record:
    value = record["value"]
    shown = {name: kept for name, kept in record.items() if name != "userId"} | {"createdAt": record["timestamp"]}
    if record["dataType"] == "BOOLEAN":
        shown |= {"value": int(value), "stringValue": str(value)}
    elif record["dataType"] == "CATEGORICAL":
        shown |= {"value": None, "stringValue": value}
    return shown | {"trace": {"userId": record["userId"]}}


def dify_feedback(feedback_id: str, message: str, rating: str, **changed: Any) -> Record:
    """A user's feedback, as the service API lists it."""
    return {
        "id": feedback_id,
        "app_id": "app-1",
        "conversation_id": "conversation-1",
        "message_id": message,
        "rating": rating,
        "content": None,
        "from_source": "user",
        "from_end_user_id": "end-user-1",
        "from_account_id": None,
        "created_at": "2026-11-20T10:00:00",
        "updated_at": "2026-11-20T10:00:00",
    } | changed


class DifyServer(ProductServer):
    """The service API of an app: feedback by pages, an end user, and that user's messages."""

    def __init__(self, records: list[Record] | None = None) -> None:
        super().__init__(records)
        self.messages: list[Record] = []

    def allows(self, authorization: str) -> bool:
        return authorization == "Bearer app-1"

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        limit = int(query.get("limit", 20))
        if path == "/v1/app/feedbacks":
            found = sorted(self.records, key=lambda one: (one["created_at"], one["id"]), reverse=True)
            page = int(query.get("page", 1))
            return 200, {"data": found[(page - 1) * limit : page * limit]}
        if path == "/v1/end-users/end-user-1":
            return 200, {"id": "end-user-1", "type": "service_api", "session_id": "ada"}
        if path == "/v1/messages" and query.get("user") == "ada":
            return self._messages(query, limit)
        return 404, {"code": "not_found", "message": "Not Found", "status": 404}

    def _messages(self, query: Mapping[str, str], limit: int) -> Answer:
        found = [one for one in self.messages if one["conversation_id"] == query["conversation_id"]]
        if "first_id" in query:  # those before it
            found = found[: [one["id"] for one in found].index(query["first_id"])]
        return 200, {"limit": limit, "has_more": len(found) > limit, "data": found[-limit:]}


def open_webui_feedback(feedback_id: str, message: str | None, rating: Any, **data: Any) -> Record:
    """A feedback of the export."""
    return {
        "id": feedback_id,
        "user_id": "user-1",
        "version": 0,
        "type": "rating",
        "data": {"rating": rating, "model_id": "engram", "reason": None, "comment": None} | data,
        "meta": {"arena": False, "chat_id": "chat-1", "message_id": message, "message_index": 2},
        "snapshot": {"chat": {}},
        "created_at": 1_795_000_000,
        "updated_at": 1_795_000_000,
    }


class OpenWebUiServer(ProductServer):
    """The export of feedback; ``old`` servers have only the list."""

    def __init__(self, records: list[Record] | None = None, *, old: bool = False) -> None:
        super().__init__(records)
        self._old = old

    def allows(self, authorization: str) -> bool:
        return authorization == "Bearer sk-1"

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        route = "/api/v1/evaluations/feedbacks/all" + ("" if self._old else "/export")
        return (200, self.records) if path == route else (404, {"detail": "Not Found"})

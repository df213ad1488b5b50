"""Documents of a collection, as the service lists and changes them."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from engram.cli.http_client import Client, ClientError, build_path

if TYPE_CHECKING:
    from engram.wings.importing.conversion.known_documents import KnownDocument

MOST_LISTED = 50_000
"""Documents of one request to compare."""


def list_documents(client: Client, collection: str) -> list["KnownDocument"]:
    """List the documents of the collection; none if it does not exist yet."""
    from engram.wings.importing.conversion.known_documents import KnownDocument

    try:
        rows = list(client.list_rows("/documents", "documents", {"collection": collection}))
    except ClientError as error:
        if error.extra.get("status_code") == HTTPStatus.NOT_FOUND:
            return []
        raise
    return [KnownDocument(one["source"], one["folder"], one["digest"]) for one in rows]


def compare_documents(
    client: Client,
    collection: str,
    folder: str,
    documents: Sequence[dict[str, Any]],
    earlier_folders: Sequence[str] = (),
) -> dict[str, Any]:
    """Ask for the steps that bring the documents of a folder in step."""
    body = {"folder": folder, "earlier_folders": list(earlier_folders), "documents": list(documents)}
    steps: dict[str, Any] = client.send("POST", "/documents:compare", params={"collection": collection}, json=body)
    return steps


def count_restricted(client: Client, collection: str, folder: str, documents: Sequence["KnownDocument"]) -> int:
    """Count the documents of a folder that not everyone may read."""
    listed = [{"source": one.source, "digest": one.digest, "readers": None} for one in documents]
    pieces = [listed[at : at + MOST_LISTED] for at in range(0, len(listed), MOST_LISTED)]
    return sum(len(compare_documents(client, collection, folder, piece)["changed"]) for piece in pieces)


def change_document(client: Client, collection: str, source: str, change: dict[str, Any]) -> None:
    """Change the source, folder or readers of a document."""
    client.send("PATCH", build_path("documents", source), params={"collection": collection}, json=change)


def delete_document(client: Client, collection: str, source: str) -> None:
    """Delete a document, unless somebody else did."""
    try:
        client.send("DELETE", build_path("documents", source), params={"collection": collection})
    except ClientError as error:
        if error.extra.get("status_code") != HTTPStatus.NOT_FOUND:
            raise

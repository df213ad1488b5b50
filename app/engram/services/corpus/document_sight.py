"""Documents as far as a caller sees them: who sees only a part changes nothing of the rest."""

from collections.abc import Mapping

from engram.context import tenancy
from engram.services.auth.scope import Principal
from engram.storage.corpus import document_manifest, documents
from engram.storage.database import Database


def find_seen_in_part(database: Database, collection_id: int, counts: Mapping[int, int]) -> set[int]:
    """Find the documents that the caller does not see all of; ``counts``: how many passages of each it sees."""
    if tenancy.get_visibility().readers is None:
        return set()
    with tenancy.allow_all_readers(), database.read() as reader:
        held = documents.count_passages(reader, collection_id, list(counts))
    return {document for document, count in counts.items() if held.get(document) != count}


def find_irreplaceable(
    database: Database, principal: Principal, collection_id: int, folders: Mapping[str, str | None]
) -> set[str]:
    """Find the documents that somebody cannot replace: passages that they do not see would be lost.

    An importer that may not read what it imports replaces the documents of its own folder.

    Args:
        folders: source of a document -> folder that it comes from now.
    """
    if not folders or principal.readers is None:
        return set()
    with tenancy.allow_all_readers(), database.read() as reader:
        held = document_manifest.list_held(reader, collection_id, [], list(folders), [], with_readers=False)
        ids = documents.find_ids(reader, collection_id, [one.source for one in held])
    with tenancy.restrict_to(principal.tenant, principal.readers):
        with database.read() as reader:
            seen_counts = documents.count_passages(reader, collection_id, list(ids.values()))
        in_part = find_seen_in_part(database, collection_id, dict.fromkeys(ids.values(), 0) | seen_counts)
    own = {one.source for one in held if one.folder is not None and one.folder == folders[one.source]}
    return {
        source
        for source, document in ids.items()
        if document in in_part and (document in seen_counts or source not in own)
    }

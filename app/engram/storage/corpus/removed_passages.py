"""Removed passages that verdicts taught something about: a digest, and the ids that one has again if it returns."""

from collections.abc import Collection, Sequence

from engram.storage.corpus.passages import ReturningPassage
from engram.storage.database import Writer
from engram.storage.row_lookups import WANTED_IDS, join_by_index


def find_revised(writer: Writer, collection_id: int, sentences: Collection[int]) -> set[int]:
    """Find those of the sentences whose text was revised: what was learned of them weighs less."""
    rows = writer.rows(
        f"""
        SELECT s.id FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id AND s.revised_at IS NOT NULL")}
        """,
        {"collection": collection_id, "ids": list(sentences)},
    )
    return {row.id for row in rows}


def remember(
    writer: Writer, collection_id: int, passage_id: int, digest: bytes, sentences: Sequence[int | None]
) -> None:
    """Keep the ids of a passage that is about to be removed; of two with one digest, those of the later removal."""
    writer.execute(
        """
        INSERT INTO removed_passage (collection_id, digest, passage_id, text_since, sentences)
        SELECT p.collection_id, %(digest)s, p.id, p.text_since, %(sentences)s::bigint[]
        FROM passage p WHERE p.collection_id = %(collection)s AND p.id = %(id)s
        ON CONFLICT (collection_id, digest) DO UPDATE SET passage_id = excluded.passage_id,
            text_since = excluded.text_since, sentences = excluded.sentences
        """,
        {"collection": collection_id, "id": passage_id, "digest": digest, "sentences": list(sentences)},
    )


def take(writer: Writer, collection_id: int, digests: Collection[bytes]) -> dict[bytes, ReturningPassage]:
    """Digest -> the removed passage, of those that are known, which are forgotten now."""
    rows = writer.rows(
        """
        DELETE FROM removed_passage
        WHERE collection_id = %(collection)s AND digest = ANY(%(digests)s::bytea[])
        RETURNING digest, passage_id, text_since, sentences
        """,
        {"collection": collection_id, "digests": list(digests)},
    )
    return {bytes(row.digest): ReturningPassage(row.passage_id, row.text_since, row.sentences) for row in rows}


def mark_returned(writer: Writer, collection_id: int, sentences: Collection[int]) -> None:
    """Note of sentences that they were away until now; ``collections.lock_learning`` is held."""
    writer.execute(
        f"""
        UPDATE sentence SET returned_at = clock_timestamp() FROM {WANTED_IDS}
        WHERE sentence.collection_id = wanted.collection_id AND sentence.id = wanted.id
        """,
        {"collection": collection_id, "ids": sorted(sentences)},
    )

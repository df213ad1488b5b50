"""Removed passages that verdicts taught something about: a digest, and the ids that one has again if it returns."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from engram.storage.corpus.passages import ReturningPassage
from engram.storage.database import Writer
from engram.storage.row_lookups import WANTED_IDS, join_by_index


def find_credited(writer: Writer, collection_id: int, passages: Collection[int]) -> set[int]:
    """Find those of the passages that have an evolved key, or to which a verdict credited an expansion."""
    found: set[int] = set()
    for table in ("passage_key", "key_credit"):
        rows = writer.rows(
            f"""
            SELECT held.passage_id FROM {WANTED_IDS}
            {join_by_index(f"{table} held", "held.passage_id = wanted.id LIMIT 1")}
            """,
            {"collection": collection_id, "ids": list(passages)},
        )
        found.update(row.passage_id for row in rows)
    return found


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
    """Keep the ids of a passage that is about to be removed."""
    writer.execute(
        """
        INSERT INTO removed_passage (collection_id, digest, passage_id, text_since, sentences)
        SELECT p.collection_id, %(digest)s, p.id, p.text_since, %(sentences)s::bigint[]
        FROM passage p WHERE p.collection_id = %(collection)s AND p.id = %(id)s
        """,
        {"collection": collection_id, "id": passage_id, "digest": digest, "sentences": list(sentences)},
    )


def take(writer: Writer, collection_id: int, wanted: Mapping[bytes, int]) -> dict[bytes, list[ReturningPassage]]:
    """Digest -> the removed passages with it, in id order, as many as wanted at most; these are forgotten now."""
    rows = writer.rows(
        f"""
        SELECT known.digest, known.passage_id AS id, known.text_since, known.sentences
        FROM unnest(%(digests)s::bytea[]) AS wanted(digest)
        {join_by_index("removed_passage known", "known.digest = wanted.digest")}
        ORDER BY known.passage_id
        """,
        {"collection": collection_id, "digests": list(wanted)},
    )
    taken: defaultdict[bytes, list[ReturningPassage]] = defaultdict(list)
    for row in rows:
        if len(taken[digest := bytes(row.digest)]) < wanted[digest]:
            taken[digest].append(ReturningPassage(row.id, row.text_since, row.sentences))
    if taken:
        keys = [(digest, passage.id) for digest, passages in taken.items() for passage in passages]
        writer.execute(
            """
            DELETE FROM removed_passage USING (
                SELECT %(collection)s::bigint AS collection_id, unnest(%(digests)s::bytea[]) AS digest,
                       unnest(%(ids)s::bigint[]) AS id
            ) AS taken
            WHERE removed_passage.collection_id = taken.collection_id AND removed_passage.digest = taken.digest
              AND removed_passage.passage_id = taken.id
            """,
            {"collection": collection_id, "digests": [key[0] for key in keys], "ids": [key[1] for key in keys]},
        )
    return taken


def mark_returned(writer: Writer, collection_id: int, sentences: Collection[int]) -> None:
    """Note of sentences that they were away until now; ``collections.lock_learning`` is held."""
    writer.execute(
        f"""
        UPDATE sentence SET returned_at = statement_timestamp() FROM {WANTED_IDS}
        WHERE sentence.collection_id = wanted.collection_id AND sentence.id = wanted.id
        """,
        {"collection": collection_id, "ids": sorted(sentences)},
    )

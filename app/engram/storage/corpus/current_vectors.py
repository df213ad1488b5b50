"""Versions of what a snapshot holds of a collection. What was computed or cached under others is stale."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from engram.context.errors import UnavailableError
from engram.storage.column_parameters import integers
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import NOT_DELETED, WANTED_IDS, join_by_index

RENEWED_SHARE = 0.1
"""Share of a collection's judged questions that verdicts change before they are sampled anew.

It moves what is measured by no more than chance does, which chose the questions of the sample."""


@dataclass(frozen=True, slots=True)
class Current:
    """Versions of a collection's vectors and question memory in a snapshot.

    Attributes:
        space: that all of them are of.
        base_keys: the version of its passages with their base keys and of its graph, another one with each change
            of what answers are made of. Metadata may change without.
        evolved_keys: the same of evolved keys; None: no key evolved.
        questions: the version of what judged questions are sampled; None: nobody judged.
        sampled_until: the newest question that is sampled.
        question_generation: of the question encoder that verdicts taught; 0: the encoder as it is serves.
    """

    space: int
    base_keys: str
    evolved_keys: str | None
    questions: str | None
    sampled_until: int
    question_generation: int


_CURRENT_STATEMENT = """
    SELECT jsonb_build_object('space', space, 'base_keys', keys_version, 'evolved_keys', (
        SELECT version FROM evolved_key_version WHERE collection_id = %(collection)s
    ), 'questions', memory.version, 'sampled_until', coalesce(memory.sampled_until, 0),
    'question_generation', coalesce(memory.question_generation, 0))
    FROM collection LEFT JOIN question_memory memory ON memory.collection_id = %(collection)s
    WHERE collection.id = %(collection)s
"""
CURRENT = f"({_CURRENT_STATEMENT})"
"""As a column of a statement that reads something else."""


def find_current(reader: Reader, collection_id: int) -> Current | None:
    """Return the versions of the collection; None if it is gone."""
    current = reader.scalar(f"{_CURRENT_STATEMENT} AND {NOT_DELETED}", {"collection": collection_id})
    return None if current is None else Current(**current)


def load_if_moved(reader: Reader, collection: Collection, current: Current | None) -> Collection | None:
    """The collection as it is now, if its vectors were ``current`` to be of another space; else None."""
    is_current = current is None or current.space == collection.space
    return None if is_current else collections.load_by_id(reader, collection.id)


def check_space(reader: Reader, collection: Collection) -> None:
    """See that the collection's vectors are still comparable with those that were made for it.

    Raises:
        UnavailableError: they were exchanged at this moment.
    """
    current = find_current(reader, collection.id)
    if current is not None and current.space != collection.space:
        raise UnavailableError(f"Collection {collection.name!r} was given other vectors at this moment; ask again.")


def renew_base_version(writer: Writer, collection_id: int) -> None:
    """Give them another version, in the transaction that changes them, under ``collections.lock_graph``."""
    writer.execute(
        "UPDATE collection SET keys_version = %(version)s WHERE id = %(collection)s",
        {"collection": collection_id, "version": uuid4()},
    )


def renew_evolved_version(writer: Writer, collection_id: int) -> None:
    """Give evolved keys another version, in the transaction that changes them."""
    writer.execute(
        """
        INSERT INTO evolved_key_version (collection_id, version) VALUES (%(collection)s, %(version)s)
        ON CONFLICT (collection_id) DO UPDATE SET version = excluded.version
        """,
        {"collection": collection_id, "version": uuid4()},
    )


def serve_question_generation(writer: Writer, collection_id: int, number: int) -> None:
    """Have a generation of the taught question encoder serve; 0: the encoder as it is.

    Whoever calls it holds ``collections.lock_learning`` exclusively. The pointer is not in the collection's row:
    an ingest holds that one and may wait for the lock of learning.
    """
    writer.execute(
        "UPDATE question_memory SET question_generation = %(number)s WHERE collection_id = %(collection)s",
        {"collection": collection_id, "number": number},
    )


def forget_question_generations(writer: Writer) -> None:
    """Have the encoder as it is serve all collections: there are no generations any more."""
    writer.execute("UPDATE question_memory SET question_generation = 0 WHERE question_generation <> 0")


def renew_question_version(writer: Writer, collection_id: int, changed: int | None = None) -> None:
    """Have judged questions be sampled anew, in the transaction that changes them or their supports.

    A sample costs hundreds of milliseconds in each process and for each list of readers, so verdicts renew it when
    they have changed ``RENEWED_SHARE`` of the questions: each verdict where fewer than 20 were judged.

    Args:
        changed: questions that verdicts changed. None: something was taken back, which no sample may go on having.
    """
    parameters = {"collection": collection_id, "changed": changed}
    if changed is not None and writer.rows(
        """
        UPDATE question_memory SET changes_left = changes_left - %(changed)s
        WHERE collection_id = %(collection)s AND changes_left > %(changed)s RETURNING collection_id
        """,
        parameters,
    ):
        return
    writer.execute(
        f"""
        INSERT INTO question_memory (collection_id, version, sampled_until, changes_left)
        SELECT %(collection)s, %(version)s, coalesce(max(id), 0), floor({RENEWED_SHARE} * count(*))
        FROM question WHERE collection_id = %(collection)s
        ON CONFLICT (collection_id) DO UPDATE SET version = excluded.version,
            sampled_until = excluded.sampled_until, changes_left = excluded.changes_left
        """,
        {"collection": collection_id, "version": uuid4()},
    )


def renew_if_supporting(writer: Writer, collection_id: int, sentences: Sequence[int]) -> None:
    """Have judged questions be sampled anew if one of these sentences supports one, before it changes or goes."""
    writer.execute(
        f"""
        UPDATE question_memory SET version = %(version)s WHERE collection_id = %(collection)s AND EXISTS (
            SELECT FROM {WANTED_IDS} {join_by_index("question_support held", "held.sentence_id = wanted.id")}
        )
        """,
        {"collection": collection_id, "version": uuid4(), "ids": integers(sentences)},
    )

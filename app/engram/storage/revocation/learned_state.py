"""Everything that verdicts left behind in a collection, taken together."""

from engram.storage.corpus import collections
from engram.storage.corpus.collection_lock import EXCLUSIVE, lock_row
from engram.storage.database import Writer

# In the order in which a worker locks them while it applies an event, so that the two wait instead of deadlocking.
# Audit rows go with their events, supports with their questions.
TABLES = (
    "feedback_event",
    "judged_query",
    "question",
    "question_memory",
    "passage_key",
    "evolved_posting",
    "evolved_key_version",
    "learned_weights",
    "removed_passage",
    "episode",
)


def delete_all(writer: Writer, collection_id: int) -> dict[str, int]:
    """Remove a collection's episodes, events with their audit, questions with their supports, evolved keys and
    learned weights.

    Returns:
        Table -> rows removed from it directly.

    Raises:
        NotFoundError: the collection is gone.
    """
    parameters = {"collection": collection_id}
    # Events that are being applied hold the collection; those accepted from now on wait for it.
    lock_row(writer, collection_id, EXCLUSIVE, condition="true")
    collections.load_by_id(writer, collection_id)
    writer.execute("UPDATE collection SET key_generation = 0 WHERE id = %(collection)s", parameters)
    return {
        table: writer.execute(f"DELETE FROM {table} WHERE collection_id = %(collection)s", parameters)
        for table in TABLES
    }

"""Collections, and the encoders that their vectors are made with."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from engram.context.errors import GoneError, NotFoundError
from engram.core.passage_keys.key_text import KeyBuilding
from engram.core.ranking.corpus_kind import CorpusKind, CorpusKindMeasure, KindSource
from engram.storage.corpus.collection_lock import EXCLUSIVE, SHARED_LOCK, WRITE, hold, lock_row, row_lock
from engram.storage.database import Reader, Writer
from engram.storage.moved_collections import check_name_not_moved, check_not_moved, check_row
from engram.storage.row_lookups import NOT_DELETED

LOCAL_TENANT = "local"
"""Whose collections are where nobody needs a key."""


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """A kind of thing in collections that can be found by its id alone.

    Attributes:
        name: as in "There is no job 7".
        table: that holds such things, by ``collection_id`` and ``id``.
    """

    name: str
    table: str


JOB = ResourceKind("job", "job")
QUERY = ResourceKind("query", "episode")
VERDICT = ResourceKind("verdict", "feedback_event")


@dataclass(frozen=True, slots=True)
class EncoderId:
    """Identity of an encoder: its name ``model``, and a ``fingerprint`` (SHA-256, hex).

    Encoders of the same fingerprint make comparable vectors.

    Attributes:
        dimension: length of its vectors, 1 to 4,096.
    """

    model: str
    fingerprint: str
    dimension: int


@dataclass(frozen=True, slots=True)
class IndexRecall:
    """Measured recall of a collection's vector index.

    Attributes:
        recall: share of the ten nearest that it finds, in [0, 1], at this ``breadth`` of search.
        configured: the breadth that all indexes were searched with then.
        rows: how many the collection held then.
        measured_at: ISO 8601.
    """

    recall: float
    breadth: int
    configured: int
    rows: int
    measured_at: str


@dataclass(frozen=True, slots=True)
class MeasuredLevel:
    """Level of ``min_sufficiency`` "auto" that questions made from a collection's own passages give.

    Attributes:
        value: a probability of sufficiency, in [0, 1]; None: too few passages gave a question.
        prior: fingerprint of the weights of sufficiency that it was measured by.
        space: vector space of the collection then.
        passages: how many the collection had then.
        midpoint: log odds of sufficiency at which answers state even odds, see ``withholding_level``; None as
            ``value``.
    """

    value: float | None
    prior: str
    space: int
    passages: int
    midpoint: float | None = None


@dataclass(frozen=True, slots=True)
class Collection:
    """One tenant's corpus and what it holds.

    Attributes:
        encoder_model, encoder_fingerprint: what its vectors are made with.
        encoder_dimension: their length.
        space: another number after each change of these: vectors of before are not comparable.
        key_generation: the evolution that its passage keys stand at; 0: base keys serve.
        key_building: what base keys are made of: full, title, abstract or keywords.
        serving: live, or shadow: it learns, and serves without memory.
        published: as the wing ``published`` keeps it; None: verdicts teach sentence memories and passage keys.
        experiment, exploration: as the wing ``experiments`` keeps them; None for none.
        past: of a copy that a replay made: ``of`` which collection, as of when (``until``), by which ``job``, and
            its ``report``; None: it is none.
        tenant: whose it is; names are unique within it.
        indexed: tables that have a vector index of this collection's rows, see ``vector_indexes``.
        index_recall: by table, what was measured of these indexes, if it was.
        title_share: share of its passages titled after what they describe, in [0, 1]; None: not measured yet.
        question_share: share of its questions that name what a candidate is titled after, in [0, 1]; None: not
            measured, or of too few.
        question_count: different questions that were looked at for that.
        fixed_kind: the kind of corpus that somebody set; None: by these shares.
        languages: language -> passages of it, most first.
        link_template: makes the links to passages, see ``link_template``; None: there are none.
        language: of passages that come without one; None: theirs is recognised.
        has_versions: whether a document of it replaces another.
        newer_half_life_days: days after which half of its texts hold no more; None: age does not count.
        level: below which answers are withheld, as its own passages tell; None: not measured.
        created_at: when it was made; None: not read from the database.
        keys_version: another one after each change of its passages, their keys or readers; None: not read.
        is_whole: whether counts are of all that it holds; False: of what a caller sees of it.
    """

    id: int
    name: str
    encoder_model: str
    encoder_fingerprint: str
    encoder_dimension: int
    passage_count: int
    sentence_count: int
    entity_count: int
    key_generation: int
    key_building: KeyBuilding
    serving: str = "live"
    experiment: Mapping[str, Any] | None = None
    exploration: Mapping[str, Any] | None = None
    published: Mapping[str, Any] | None = None
    past: Mapping[str, Any] | None = None
    indexed: Sequence[str] = ()
    tenant: str = LOCAL_TENANT
    space: int = 0
    index_recall: Mapping[str, IndexRecall] = field(default_factory=dict)
    title_share: float | None = None
    fixed_kind: CorpusKind | None = None
    question_share: float | None = None
    question_count: int = 0
    languages: Mapping[str, int] = field(default_factory=dict)
    language: str | None = None
    link_template: str | None = None
    has_versions: bool = False
    newer_half_life_days: float | None = None
    level: MeasuredLevel | None = None
    created_at: datetime | None = None
    keys_version: UUID | None = None
    is_whole: bool = True

    @property
    def corpus_kind(self) -> CorpusKind:
        """Kind of corpus, which decides the ranking weights."""
        return self.fixed_kind or CorpusKindMeasure(self.title_share, self.question_share).kind

    @property
    def kind_source(self) -> KindSource:
        """Source of the kind: a setting, its questions or its titles."""
        return "setting" if self.fixed_kind else CorpusKindMeasure(self.title_share, self.question_share).source

    @property
    def encoder(self) -> EncoderId:
        """Encoder of its vectors."""
        return EncoderId(self.encoder_model, self.encoder_fingerprint, self.encoder_dimension)


@dataclass(frozen=True, slots=True)
class OpenedCollection:
    """A collection about to be written to, and whether this made it."""

    collection: Collection
    created: bool


COLUMNS = (
    "id, name, encoder_model, encoder_fingerprint, encoder_dimension, passage_count, sentence_count, entity_count, "
    "key_generation, key_building, serving, experiment, exploration, published, past, indexed, tenant, space, "
    "index_recall, title_share, fixed_kind, question_share, question_count, languages, language, "
    "link_template, has_versions, newer_half_life_days, level, created_at, keys_version"
)
_NAMES = COLUMNS.split(", ")


def find(reader: Reader, name: str, tenant: str = LOCAL_TENANT) -> Collection:
    """The tenant's collection called ``name``.

    Raises:
        NotFoundError: there is none.
        CollectionMovingError, CollectionMovedError: it is hidden for its move.
    """
    row = reader.row(
        f"SELECT {COLUMNS}, {NOT_DELETED} AS is_there, move FROM collection"
        " WHERE tenant = %(tenant)s AND name = %(name)s",
        {"tenant": tenant, "name": name},
    )
    if row is None or not row.is_there:
        check_row(row)
        raise build_missing_error(name)
    return build_from_row(row)


def build_missing_error(name: str) -> NotFoundError:
    """Make the error for a collection that does not exist."""
    return NotFoundError(f"There is no collection {name!r}.")


def build_missing_resource_error(kind: ResourceKind, identity: int | UUID) -> NotFoundError:
    """Make the error for a resource that does not exist, or is not for the caller to see.

    It names no collection: the collection of another's resource is not for the caller to know.
    """
    return NotFoundError(f"There is no {kind.name} {identity}.")


def build_gone_error(name: str) -> GoneError:
    """Make the error for a collection that was deleted during the request."""
    return GoneError(f"Collection {name!r} was deleted meanwhile.")


def load_by_id(reader: Reader, collection_id: int) -> Collection:
    """The collection of this id.

    Raises:
        NotFoundError: it is gone.
        CollectionMovingError, CollectionMovedError: it is hidden for its move.
    """
    row = reader.row(f"SELECT {COLUMNS} FROM collection WHERE id = %(id)s AND {NOT_DELETED}", {"id": collection_id})
    if row is None:
        check_not_moved(reader, collection_id)
        raise NotFoundError("The collection was deleted meanwhile.")
    return build_from_row(row)


def open_for_writing(writer: Writer, name: str, encoder: EncoderId, tenant: str = LOCAL_TENANT) -> OpenedCollection:
    """The tenant's collection called ``name``, kept from deletion by this transaction.

    Args:
        encoder: of the collection that is made if there is none; one that there is may be of another.

    Raises:
        CollectionMovingError, CollectionMovedError: it is hidden for its move.
    """
    parameters = {"tenant": tenant, "name": name, **asdict(encoder)}
    insert = """
        INSERT INTO collection (tenant, name, encoder_model, encoder_fingerprint, encoder_dimension)
        VALUES (%(tenant)s, %(name)s, %(model)s, %(fingerprint)s, %(dimension)s)
        ON CONFLICT (tenant, name) DO NOTHING
    """
    named = f"FROM collection WHERE tenant = %(tenant)s AND name = %(name)s AND {NOT_DELETED}"
    while True:
        created = writer.execute(insert, parameters) > 0
        # None: another transaction, waited for here, has just deleted what the insert collided with.
        if writer.distributed and (there := writer.scalar(f"SELECT id {named}", parameters)) is not None:
            hold(writer, there, SHARED_LOCK)
        row = writer.row(f"SELECT {COLUMNS} {named} {row_lock(writer, SHARED_LOCK)}", parameters)
        if row is not None:
            return OpenedCollection(build_from_row(row), created)
        check_name_not_moved(writer, name, tenant)


def lock_against_deletion(writer: Writer, collection_id: int) -> bool:
    """Lock the collection against deletion until the transaction ends; False if it is gone already.

    Taken before any other lock: a deletion locks the collection and then every row in it, so a transaction that
    came to the collection only after its rows would deadlock with it.
    """
    return lock_row(writer, collection_id, SHARED_LOCK) is not None


def lock_and_load(writer: Writer, collection_id: int) -> Collection | None:
    """Like ``lock_against_deletion``, but return the collection; None if it is gone already."""
    row = lock_row(writer, collection_id, SHARED_LOCK, columns=COLUMNS)
    return None if row is None else build_from_row(row)


def lock_learning(writer: Writer, collection_id: int, *, exclusive: bool) -> None:
    """Apply events to the collection until the transaction ends: beside others, or, to revoke some, ``exclusive``.

    Taken right after ``lock_against_deletion``. Whoever revokes removes rows that a worker would wait for and then
    miss; with this, neither sees the other half done. Postgres serves the waiting in turn, so neither starves the
    other.
    """
    lock = "pg_advisory_xact_lock" if exclusive else "pg_advisory_xact_lock_shared"
    writer.row(f"SELECT {lock}(hashtextextended(%(name)s, 0))", {"name": f"learning:{collection_id}"})


def try_lock_learning(writer: Writer, collection_id: int) -> bool:
    """Like ``lock_learning`` with ``exclusive``, but only if nobody applies or revokes events just now."""
    statement = "SELECT pg_try_advisory_xact_lock(hashtextextended(%(name)s, 0))"
    return bool(writer.scalar(statement, {"name": f"learning:{collection_id}"}))


def claim_learning(writer: Writer, collection_id: int) -> bool:
    """Be, until the transaction ends, the one worker that applies events to the collection; False if another is."""
    statement = "SELECT pg_try_advisory_xact_lock(hashtextextended(%(name)s, 0))"
    return bool(writer.scalar(statement, {"name": f"worker-learning:{collection_id}"}))


def try_lock_graph(writer: Writer, collection_id: int) -> bool:
    """``lock_graph``, but only if nobody holds the collection: a re-key can hold it for minutes."""
    return lock_row(writer, collection_id, WRITE, wait=False) is not None


def lock_graph(writer: Writer, collection_id: int) -> bool:
    """Serialise writers of one collection's graph until the transaction ends; False if it is gone already.

    Readers are not held up. The lock is the collection's row, which their counts change in the end: taken first,
    so that a deletion of the collection waits for them instead of deadlocking.
    """
    return lock_row(writer, collection_id, WRITE) is not None


def lock_graph_in(writer: Writer, collection_id: int) -> int | None:
    """Lock the graph as ``lock_graph`` does and return the space of its vectors; None if the collection is gone."""
    row = lock_row(writer, collection_id, WRITE)
    return None if row is None else row.space


def record_indexed(writer: Writer, collection_id: int, tables: Sequence[str]) -> None:
    """Record which tables have a vector index of the collection's rows that can be searched.

    What was measured of an index that was there before goes with it.
    """
    writer.execute(
        """
        UPDATE collection SET indexed = %(tables)s,
            index_recall = index_recall - ARRAY(SELECT unnest(indexed) EXCEPT SELECT unnest(%(tables)s::text[]))
        WHERE id = %(id)s
        """,
        {"id": collection_id, "tables": list(tables)},
    )


def set_index_recall(writer: Writer, collection: Collection, table: str, measured: IndexRecall | None) -> None:
    """Record what was ``measured`` of an index, unless its vectors were exchanged since; None: nothing yet."""
    writer.execute(
        """
        UPDATE collection SET index_recall = index_recall - %(table)s::text || %(measured)s::jsonb
        WHERE id = %(id)s AND space = %(space)s AND %(table)s = ANY(indexed)
        """,
        {
            "id": collection.id,
            "space": collection.space,
            "table": table,
            "measured": Jsonb({} if measured is None else {table: asdict(measured)}),
        },
    )


def set_key_building(writer: Writer, collection_id: int, building: KeyBuilding) -> None:
    """Record what base keys are made of from now on, in the transaction that makes them so."""
    writer.execute(
        "UPDATE collection SET key_building = %(building)s WHERE id = %(id)s",
        {"id": collection_id, "building": building},
    )


def configure(
    writer: Writer,
    collection_id: int,
    *,
    serving: str,
    fixed_kind: CorpusKind | None,
    language: str | None,
    link_template: str | None,
    newer_half_life_days: float | None,
    of_wings: Mapping[str, Mapping[str, Any] | None],
) -> None:
    """Serve queries like this from now on.

    Args:
        of_wings: column of a wing's setting -> its value.
    """
    changes = "".join(f", {name} = %({name})s" for name in of_wings)
    writer.execute(
        f"""
        UPDATE collection SET serving = %(serving)s, fixed_kind = %(fixed_kind)s,
            language = %(language)s, link_template = %(link_template)s,
            newer_half_life_days = %(newer_half_life_days)s{changes}
        WHERE id = %(id)s
        """,
        {name: None if value is None else Jsonb(dict(value)) for name, value in of_wings.items()}
        | {
            "id": collection_id,
            "serving": serving,
            "fixed_kind": fixed_kind,
            "language": language,
            "link_template": link_template,
            "newer_half_life_days": newer_half_life_days,
        },
    )


def add_languages(writer: Writer, collection_id: int, passages: Mapping[str, int]) -> None:
    """Count passages by language: so many more, or fewer, of each."""
    writer.execute(
        """
        UPDATE collection SET languages = (
            SELECT coalesce(jsonb_object_agg(code, passages), '{}') FROM (
                SELECT code, sum(passages) AS passages FROM (
                    SELECT key AS code, value::bigint AS passages FROM jsonb_each_text(languages)
                    UNION ALL SELECT * FROM unnest(%(codes)s::text[], %(passages)s::bigint[])
                ) AS counted GROUP BY code
            ) AS summed WHERE passages > 0
        )
        WHERE id = %(id)s
        """,
        {"id": collection_id, "codes": list(passages), "passages": list(passages.values())},
    )


def add_counts(
    writer: Writer, collection_id: int, *, passages: int, sentences: int, entities: int, lexical_length: float
) -> None:
    """Keep true what the collection says of itself: search methods are chosen and terms are weighed by it."""
    writer.execute(
        """
        UPDATE collection SET passage_count = passage_count + %(passages)s,
            sentence_count = sentence_count + %(sentences)s, entity_count = entity_count + %(entities)s,
            lexical_length = lexical_length + %(length)s
        WHERE id = %(id)s
        """,
        {
            "id": collection_id,
            "passages": passages,
            "sentences": sentences,
            "entities": entities,
            "length": lexical_length,
        },
    )


def delete_unused(writer: Writer, collection_id: int) -> None:
    """Remove the collection if nothing was ever put into it and nothing is on its way."""
    parameters = {"id": collection_id}
    # The lock waits for jobs being opened, so that the deletion's own snapshot sees them.
    lock_row(writer, collection_id, EXCLUSIVE, condition="true")
    used = """
        SELECT EXISTS (SELECT FROM job WHERE collection_id = %(id)s)
            OR EXISTS (SELECT FROM episode WHERE collection_id = %(id)s)
    """
    if not writer.scalar(used, parameters):
        writer.execute("DELETE FROM collection WHERE id = %(id)s AND passage_count = 0", parameters)


def page(
    reader: Reader,
    after: str | None,
    limit: int,
    tenant: str = LOCAL_TENANT,
    names: frozenset[str] | None = None,
    *,
    descending: bool = False,
) -> list[Collection]:
    """The tenant's collections in name order, those after ``after``; only ``names``, unless that is None.

    The order is that of code points, whatever the database's locale: names of other databases stand among them.

    Args:
        descending: the other way round, so that names below ``after`` follow it.
    """
    further, order = ("<", "DESC") if descending else (">", "ASC")
    rows = reader.rows(
        f"""
        SELECT {COLUMNS} FROM collection
        WHERE tenant = %(tenant)s AND (%(after)s::text IS NULL OR name COLLATE "C" {further} %(after)s)
          AND {NOT_DELETED} AND (%(names)s::text[] IS NULL OR name = ANY(%(names)s))
        ORDER BY name COLLATE "C" {order} LIMIT %(limit)s
        """,
        {
            "tenant": tenant,
            "after": after,
            "names": None if names is None else sorted(names),
            "limit": limit,
        },
    )
    return [build_from_row(row) for row in rows]


def list_of_all_tenants(reader: Reader, after: tuple[str, int], limit: int) -> list[Collection]:
    """Collections by name and id, those after ``after``: for whoever looks after the whole database."""
    rows = reader.rows(
        f"""
        SELECT {COLUMNS} FROM collection WHERE (name, id) > (%(name)s, %(id)s) AND {NOT_DELETED}
        ORDER BY name, id LIMIT %(limit)s
        """,
        {"name": after[0], "id": after[1], "limit": limit},
    )
    return [build_from_row(row) for row in rows]


def list_holding(reader: Reader, kind: ResourceKind, identity: int | UUID, tenant: str) -> list[Collection]:
    """The tenant's collections that hold something of this kind and id, the oldest first.

    One unless there are copies, which keep ids. It costs one look into an index for each collection there is.
    """
    if reader.distributed:
        holders = reader.rows(f"SELECT collection_id FROM {kind.table} WHERE id = %(id)s", {"id": identity})
        rows = reader.rows(
            f"""
            SELECT {COLUMNS} FROM collection
            WHERE id = ANY(%(found)s) AND tenant = %(tenant)s AND {NOT_DELETED} ORDER BY id
            """,
            {"found": [row.collection_id for row in holders], "tenant": tenant},
        )
        return [build_from_row(row) for row in rows]
    rows = reader.rows(
        f"""
        SELECT {COLUMNS}
        FROM collection, LATERAL (
            SELECT FROM {kind.table} held
            WHERE held.collection_id = collection.id AND held.id = %(id)s LIMIT 1
        ) AS held
        WHERE tenant = %(tenant)s AND {NOT_DELETED}
        ORDER BY collection.id
        """,
        {"id": identity, "tenant": tenant},
    )
    return [build_from_row(row) for row in rows]


def list_of_other_encoders(reader: Reader, fingerprints: Sequence[str], limit: int) -> list[Collection]:
    """The first ``limit`` collections, in name order, whose vectors encoders but these made."""
    rows = reader.rows(
        f"""
        SELECT {COLUMNS} FROM collection WHERE encoder_fingerprint <> ALL(%(fingerprints)s) AND {NOT_DELETED}
        ORDER BY name LIMIT %(limit)s
        """,
        {"fingerprints": list(fingerprints), "limit": limit},
    )
    return [build_from_row(row) for row in rows]


def list_holding_settings(reader: Reader, settings: Sequence[str], limit: int) -> list[str]:
    """Names of the first ``limit`` collections, in name order, that hold any of these settings.

    Args:
        settings: columns that are null where nothing is set.
    """
    held = " OR ".join(f"{name} IS NOT NULL" for name in settings)
    rows = reader.rows(
        f"SELECT name FROM collection WHERE ({held}) AND {NOT_DELETED} ORDER BY name LIMIT %(limit)s",
        {"limit": limit},
    )
    return [row.name for row in rows]


def clear_settings(writer: Writer, settings: Sequence[str]) -> int:
    """Set these settings to null in all collections that hold any; returns their number."""
    held = " OR ".join(f"{name} IS NOT NULL" for name in settings)
    cleared = ", ".join(f"{name} = NULL" for name in settings)
    return writer.execute(f"UPDATE collection SET {cleared} WHERE ({held}) AND {NOT_DELETED}")


def build_from_row(row: Any) -> Collection:
    """Make a collection of a row with ``COLUMNS``, among others."""
    columns = {name: getattr(row, name) for name in _NAMES}
    measured, languages, level = (columns.pop(name) for name in ("index_recall", "languages", "level"))
    return Collection(
        **columns,
        index_recall={table: IndexRecall(**one) for table, one in measured.items()},
        languages=dict(sorted(languages.items(), key=lambda counted: (-counted[1], counted[0]))),
        level=None if level is None else MeasuredLevel(**level),
    )

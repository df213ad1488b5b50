"""What the database holds after a soak, beside verdicts: texts, readers, queries, jobs, nothing of the erased."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from running import Service
from soak.actors import Leaver
from soak.ledger import Ledger, Readers, get_thing
from soak.verdict_checks import Rows

SHOWN = 5
PERSONAL = """
    SELECT c.table_name AS "table", c.column_name AS "column" FROM information_schema.columns c
    JOIN information_schema.tables t USING (table_schema, table_name)
    WHERE c.table_schema = 'public' AND c.column_name IN ('principal', 'judge') AND t.table_type = 'BASE TABLE'
      AND c.table_name !~ '^episode_'
    """


def find_differences(
    wanted: Mapping[str, tuple[str, Readers]], found: Iterable[tuple[str, str, Readers]]
) -> list[str]:
    """Where passages are not what things have to be: each one passage, with this text and these readers."""
    stored: dict[str, list[tuple[str, Readers]]] = defaultdict(list)
    for passage_id, text, readers in found:
        stored[get_thing(passage_id)].append((text, None if readers is None else sorted(readers)))
    kinds: dict[str, list[str]] = defaultdict(list)
    for thing in sorted(wanted.keys() | stored.keys()):
        if (kind := _compare(wanted.get(thing), stored[thing])) is not None:
            kinds[kind].append(thing)
    return [f"{len(things)} {kind}, such as {', '.join(things[:SHOWN])}" for kind, things in kinds.items()]


def _compare(wanted: tuple[str, Readers] | None, stored: Sequence[tuple[str, Readers]]) -> str | None:
    if wanted is None:
        return "that were removed, or never put in, are there"
    if not stored:
        return "are lost"
    if len(stored) > 1:
        return "are there more than once"
    text, readers = wanted
    if " ".join(stored[0][0].split()) != " ".join(text.split()):
        return "have another text than the newest"
    return None if stored[0][1] == (None if readers is None else sorted(readers)) else "have other readers"


def check_passages(rows: Rows, ledger: Ledger, stable: Mapping[str, str]) -> list[str]:
    """What is wrong with the passages; ``stable`` are texts that nothing changed, which everyone reads."""
    wanted: dict[str, tuple[str, Readers]] = {name: (text, None) for name, text in stable.items()}
    wanted |= {thing: (text, ledger.get_readers(thing)) for thing, text in ledger.texts.items()}
    found = rows(
        """
        SELECT passage.external_id AS id, passage.text, readers.readers FROM passage
        LEFT JOIN reader_set readers ON readers.id = passage.reader_set_id
        WHERE passage.collection_id = %(collection)s
        """
    )
    return [f"passages: {line}" for line in find_differences(wanted, ((r.id, r.text, r.readers) for r in found))]


def check_erased(rows: Rows, leavers: Sequence[Leaver]) -> list[str]:
    """Where something is stored of persons who were erased."""
    names = [leaver.name for leaver in leavers] + [leaver.principal for leaver in leavers]
    left = {
        f"{place.table}.{place.column}": rows(
            f'SELECT count(*) AS n FROM "{place.table}" WHERE "{place.column}" = ANY(%(names)s)', names=names
        )[0].n
        for place in rows(PERSONAL)
    }
    return [f"{n} rows of {column} are of persons who were erased" for column, n in left.items() if n]


def check_queries(rows: Rows, answered: Sequence[str]) -> list[str]:
    """How many answered queries are gone."""
    found = rows(
        "SELECT id FROM episode WHERE collection_id = %(collection)s AND id = ANY(%(answered)s::uuid[])",
        answered=list(answered),
    )
    lost = len(set(answered)) - len(found)
    return [f"{lost} of {len(set(answered))} answered queries are gone"] if lost else []


def check_jobs(rows: Rows) -> list[str]:
    """Jobs that did not succeed."""
    found = Counter(
        f"{row.kind} {row.status}"
        for row in rows(
            """
            SELECT kind, status FROM job WHERE collection_id = %(collection)s AND status IN ('failed', 'cancelled')
            """
        )
    )
    return [f"{n} jobs: {which}" for which, n in found.items()]


def check_replica(service: Service) -> list[str]:
    """Where the replica, once it has caught up, differs from the primary."""
    if service.replica is None:
        return []
    from tests.faults.installation import contents, different

    service.wait_for_replica()
    one, other = contents(service.postgres.url), contents(service.replica.url)
    return [
        f"primary and replica differ in {name}: {_count(one, name)}, {_count(other, name)}"
        for name in different(one, other)
    ]


def _count(tables: Mapping[str, Any], name: str) -> int:
    return int(tables.get(name, (0,))[0])

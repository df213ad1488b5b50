"""A look at everything that can be wrong with an installation, with what to do about it."""

import os
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import httpx

from engram import __version__
from engram.composition.parts.retrieval_services import RERANKER_SECONDS
from engram.config.settings import Settings
from engram.context.bounded_call import call_within
from engram.context.errors import ConfigurationError, EngramError
from engram.providers.reranker import Reranker, RerankerError
from engram.services.encoders.encoder import Encoder
from engram.services.maintenance.health_checks import LATE_SECONDS, LEAST_DISK_BYTES
from engram.services.maintenance.index_maintenance import EXACT_SEARCH_LIMIT, LEAST_RECALL
from engram.services.maintenance.wing_clearing import WingClearingService
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database
from engram.storage.maintenance import gauge_queries, server_clock, table_statistics, vector_indexes
from engram.storage.maintenance.backlog import backlog
from engram.storage.maintenance.schema_standing import load_standing
from engram.storage.wake_stream import WakeStream
from engram.wings.upkeep.storage import collection_moves, database_contents, poor_indexes, schema_drift

Verdict = Literal["ok", "warning", "wrong"]
LEAST_POSTGRES = 16
LEAST_PGVECTOR = (0, 8)
SOUND_PGVECTOR = (0, 8, 4)
"""The first that builds HNSW indexes without the faults that its changelog names for 0.8.3 and 0.8.4."""
LEAST_REDIS = (6, 2)
SKEW_SECONDS = 2.0
FILES_BESIDE = 200
"""Descriptors that a process needs besides those of its clients."""
LLM_SECONDS = 5.0
RERANKER_CHECK_SECONDS = 10.0
RERANKER_PROBE = (
    "Which river flows through Warsaw?",
    ("The Vistula flows through Warsaw.", "Bread costs three crowns."),
)
"""A question and the texts that a reranker is asked about."""
COLLECTIONS_PER_PAGE = 200
LEAST_LANGUAGE_SHARE = 0.01
"""Of a collection's passages: fewer may have been recognised wrongly."""
REPLICA_SECONDS = 2.0
"""Within which it should have replayed what the primary had written."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check; ``remedy`` is what to do, empty where nothing is."""

    thing: str
    verdict: Verdict
    found: str
    remedy: str = ""


class DoctorService:
    """Looks; it changes nothing."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        stream: WakeStream,
        encoder: Callable[[], Encoder],
        reranker: Callable[[], Reranker | None],
        wings: WingClearingService,
    ) -> None:
        """Examine by these parts; ``encoder`` and ``reranker`` load theirs when they are called."""
        self._reranker = reranker
        self._wings = wings
        self._settings = settings
        self._database = database
        self._stream = stream
        self._encoder = encoder

    def examine(self) -> Iterator[CheckResult]:
        """One finding after the other."""
        yield CheckResult("version", "ok", f"Engram {__version__}")
        looks: list[tuple[str, Callable[[], Iterator[CheckResult]]]] = [
            ("settings", self._variables),
            ("files", self._files),
            ("disk", self._disk),
            ("redis", self._redis),
            ("postgres", self._postgres),
            ("replica", self._replica),
            ("schema", self._schema),
            ("encoder", self._vectors),
            ("languages", self._languages),
            ("clocks", self._clocks),
            ("work", self._work),
            ("moves", self._moves),
            ("indexes", self._indexes),
            ("statistics", self._statistics),
            ("reranker", self._check_reranker),
            ("llm", self._llm),
            ("wings", self._check_wings),
        ]
        for thing, look in looks:
            try:
                yield from look()
            except EngramError as error:
                yield CheckResult(thing, "wrong", error.detail, "docs/operations.md")

    def _variables(self) -> Iterator[CheckResult]:
        unknown = Settings.list_unknown_variables(os.environ)
        if unknown:
            yield CheckResult(
                "settings", "warning", f"not settings: {', '.join(unknown)}", "docs/settings.md has them"
            )
        else:
            yield CheckResult("settings", "ok", "no unknown variables")

    def _files(self) -> Iterator[CheckResult]:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = self._settings.max_connections + FILES_BESIDE
        if limit < needed:
            yield CheckResult("files", "warning", f"{limit} open files allowed, {needed} needed", "raise ulimit -n")
        else:
            yield CheckResult("files", "ok", f"{limit} open files allowed")

    def _disk(self) -> Iterator[CheckResult]:
        folder = self._settings.data_dir.absolute()
        while not folder.exists():
            folder = folder.parent
        free = shutil.disk_usage(folder).free
        size = 0
        if self._settings.database_url is None:
            with self._database.read() as reader:
                size = gauge_queries.counts(reader).database_bytes
        message = f"{_gib(free)} free at {folder}"
        if free < LEAST_DISK_BYTES:
            yield CheckResult("disk", "wrong", message, "make room: writes fail when it is full")
        elif free < size:
            yield CheckResult(
                "disk", "warning", f"{message}, the database has {_gib(size)}", "backups go elsewhere"
            )
        else:
            yield CheckResult("disk", "ok", message)

    def _redis(self) -> Iterator[CheckResult]:
        version = self._stream.version()
        if version is None:
            yield CheckResult(
                "redis", "wrong", "out of reach", "start it, or correct REDIS_URL; learning is delayed"
            )
        elif numbers(version) < LEAST_REDIS:
            yield CheckResult("redis", "wrong", version, "6.2 or newer is needed")
        else:
            yield CheckResult("redis", "ok", version)

    def _postgres(self) -> Iterator[CheckResult]:
        with self._database.read() as reader:
            versions, indexed = database_contents.versions(reader), bool(gauge_queries.vector_indexes(reader))
        old = numbers(versions.postgres) < (LEAST_POSTGRES,)
        remedy = f"{LEAST_POSTGRES} or newer is needed" if old else ""
        yield CheckResult("postgres", "wrong" if old else "ok", versions.postgres, remedy)
        vector = versions.pgvector or "not there"
        if versions.pgvector is None or numbers(vector) < LEAST_PGVECTOR:
            yield CheckResult("pgvector", "wrong", vector, "0.8 or newer is needed, rather 0.8.4")
        elif numbers(vector) < SOUND_PGVECTOR:
            yield CheckResult(
                "pgvector",
                "wrong" if indexed else "warning",
                f"{vector}, whose HNSW indexes may be corrupt",
                "install 0.8.4 or newer, ALTER EXTENSION vector UPDATE" + indexed * ", engram maintain --force",
            )
        else:
            yield CheckResult("pgvector", "ok", vector)

    def _replica(self) -> Iterator[CheckResult]:
        replica = self._database.replica
        if replica is None:
            yield CheckResult("replica", "ok", "none configured")
            return
        ends = time.monotonic() + REPLICA_SECONDS
        while (seen := replica.look()).standing == "stale" and time.monotonic() < ends:
            time.sleep(0.05)
        if seen.standing == "ok":
            yield CheckResult("replica", "ok", "replays what the primary writes")
        else:
            remedy = "start it, or correct READ_DATABASE_URL; queries are read on the primary meanwhile"
            yield CheckResult("replica", "wrong", seen.standing, remedy)

    def _moves(self) -> Iterator[CheckResult]:
        with self._database.read() as reader:
            names = collection_moves.list_open(reader)
        if names:
            yield CheckResult(
                "moves",
                "warning",
                f"{', '.join(names)}: closed until the move is over",
                "run engram collection move again; retention waits for it",
            )
        else:
            yield CheckResult("moves", "ok", "no collection is closed")

    def _schema(self) -> Iterator[CheckResult]:
        with self._database.read() as reader:
            stands = load_standing(reader)
        if stands == "behind":
            yield CheckResult("schema", "wrong", "of an earlier version", "engram migrate")
            return
        if stands == "unknown":
            yield CheckResult("schema", "wrong", "of a later version, on which this one fails", "run that version")
            return
        lacking = schema_drift.list_missing(self._database) if stands == "current" else []
        if lacking:
            yield CheckResult("schema", "wrong", f"lacks {', '.join(lacking)}", "restore a backup, or make it anew")
        elif stands == "newer":
            yield CheckResult("schema", "warning", "of a later version", "run that version")
        else:
            yield CheckResult("schema", "ok", "nothing is missing")

    def _vectors(self) -> Iterator[CheckResult]:
        encoder = self._encoder()
        for probe in encoder.probe():
            place = probe.model if probe.url is None else f"{probe.model} at {probe.url}"
            if probe.seconds is None or probe.encoder is None:
                yield CheckResult("encoder", "wrong", f"{place}: {probe.problem}", "docs/models.md")
                continue
            known = f"{probe.encoder.dimension} dimensions, {probe.encoder.fingerprint[:12]}"
            yield CheckResult("encoder", "ok", f"{place} answers in {_milliseconds(probe.seconds)}, {known}")
        with self._database.read() as reader:
            foreign_collections = collections.list_of_other_encoders(reader, encoder.fingerprints, 4)
        if foreign_collections:
            named = ", ".join(f"{other.name} ({other.encoder_model})" for other in foreign_collections[:3])
            yield CheckResult(
                "collections",
                "warning",
                f"need encoders that do not run here: {named}",
                "run their encoder, or engram collection reembed",
            )
        else:
            yield CheckResult("collections", "ok", "all of encoders that run here")

    def _languages(self) -> Iterator[CheckResult]:
        encoder = self._encoder()
        fingerprints = set(encoder.fingerprints)
        unknown = []
        for collection in self._list_collections():
            total = sum(collection.languages.values())
            languages = [
                one for one, count in collection.languages.items() if count >= LEAST_LANGUAGE_SHARE * total
            ]
            if collection.encoder.fingerprint in fingerprints:
                lacking = encoder.find_unknown_languages(collection, languages)
                unknown += [f"{collection.name} ({', '.join(lacking)})"] if lacking else []
        if unknown:
            listed = ", ".join(unknown[:3]) + (f" and {len(unknown) - 3} more" if len(unknown) > 3 else "")
            yield CheckResult(
                "languages", "warning", f"unknown to the encoder: {listed}", "docs/operations.md, Another encoder"
            )
        else:
            yield CheckResult("languages", "ok", "of all collections are known to their encoders")

    def _list_collections(self) -> Iterator[Collection]:
        after = ("", 0)
        while True:
            with self._database.read() as reader:
                page = collections.list_of_all_tenants(reader, after, COLLECTIONS_PER_PAGE)
            yield from page
            if len(page) < COLLECTIONS_PER_PAGE:
                return
            after = (page[-1].name, page[-1].id)

    def _clocks(self) -> Iterator[CheckResult]:
        before = time.time()
        with self._database.read() as reader:
            server_time = server_clock.present(reader).timestamp()
        apart = {"Postgres": _compute_clock_distance(server_time, before, time.time())}
        before = time.time()
        clock = self._stream.clock()
        if clock is not None:
            apart["Redis"] = _compute_clock_distance(clock, before, time.time())
        worst = max(apart, key=lambda name: apart[name])
        if apart[worst] > SKEW_SECONDS:
            yield CheckResult("clocks", "warning", f"{worst}'s is {apart[worst]:.0f} s off", "keep clocks by NTP")
        else:
            yield CheckResult("clocks", "ok", "agree")

    def _work(self) -> Iterator[CheckResult]:
        with self._database.read() as reader:
            waiting, counts = backlog(reader), gauge_queries.counts(reader)
        workers = self._stream.workers()
        if workers:
            yield CheckResult("workers", "ok", f"{_count(workers, 'worker')} at work")
        elif workers == 0:
            yield CheckResult(
                "workers", "wrong", "none has beaten lately", "engram worker; nothing is learned meanwhile"
            )
        late = max(waiting.verdict_seconds or 0.0, waiting.job_seconds or 0.0)
        if late > LATE_SECONDS:
            yield CheckResult("backlog", "wrong", f"the oldest waits for {late:.0f} s", "start more workers")
        else:
            yield CheckResult("backlog", "ok", f"{_count(counts.pending, 'verdict')} waiting")
        if counts.parked:
            yield CheckResult("parked", "warning", _count(counts.parked, "verdict"), "engram parked list")

    def _indexes(self) -> Iterator[CheckResult]:
        with self._database.read() as reader:
            left, built = vector_indexes.leftovers(reader), vector_indexes.indexes(reader)
            searched_rows = vector_indexes.count_searched_rows(reader)
            poor = poor_indexes.list_poor_indexes(reader, LEAST_RECALL)
            building = vector_indexes.list_being_built(reader)
        left = [name for name in left if name not in building]
        invalid = [index.name for index in built if not index.valid and index.name not in building]
        have = {(index.collection_id, index.table) for index in built}
        large = [row for row in searched_rows if row.rows > EXACT_SEARCH_LIMIT]
        lacking = [row for row in large if (row.collection_id, row.table) not in have]
        problems = [f"not valid: {', '.join(invalid)}"] if invalid else []
        problems += [f"left behind: {', '.join(left)}"] if left else []
        problems += [f"{len(lacking)} large tables of collections have none"] if lacking else []
        problems += [f"that of {name}'s {table}s finds {recall:.3f} of the nearest" for name, table, recall in poor]
        if problems:
            yield CheckResult("indexes", "wrong" if invalid else "warning", "; ".join(problems), "engram maintain")
        else:
            found = f"{len(built)} vector indexes, all valid" + f" but {len(building)} being built" * bool(building)
            yield CheckResult("indexes", "ok", found)

    def _statistics(self) -> Iterator[CheckResult]:
        with self._database.read() as reader:
            outgrown = table_statistics.list_outgrown(reader)
        if outgrown:
            message = f"the planner knows too little of {', '.join(outgrown)}"
            yield CheckResult("statistics", "warning", message, "a worker sees to it; or ANALYZE")
        else:
            yield CheckResult("statistics", "ok", "the planner's are up to date")

    def _check_reranker(self) -> Iterator[CheckResult]:
        reranker = self._reranker()
        if reranker is None:
            yield CheckResult("reranker", "ok", "none configured")
            return
        began = time.perf_counter()
        try:
            reranker.score(*RERANKER_PROBE, seconds=RERANKER_CHECK_SECONDS)
        except RerankerError as error:
            yield CheckResult("reranker", "wrong", str(error), "docs/models.md")
            return
        seconds = time.perf_counter() - began
        message = f"{reranker.name} answers in {_milliseconds(seconds)}"
        if seconds > RERANKER_SECONDS:
            limit = _milliseconds(RERANKER_SECONDS)
            yield CheckResult("reranker", "warning", f"{message}, and has {limit}", "use a faster one")
        else:
            yield CheckResult("reranker", "ok", message)

    def _llm(self) -> Iterator[CheckResult]:
        url = self._settings.llm_base_url
        if url is None:
            yield CheckResult("llm", "ok", "none configured")
            return
        key = self._settings.llm_api_key
        headers = {} if key is None else {"authorization": f"Bearer {key.get_secret_value()}"}
        began = time.perf_counter()
        try:
            answer = call_within(
                LLM_SECONDS,
                lambda: httpx.get(f"{url.rstrip('/')}/models", headers=headers, timeout=LLM_SECONDS),
            )
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            problem = f"{url} is out of reach: {type(error).__name__}"
            yield CheckResult("llm", "wrong", problem, "correct ENGRAM_LLM_BASE_URL, or start it")
            return
        refused = answer.status_code in (401, 403)
        verdict: Verdict = "wrong" if refused else "ok"
        took = _milliseconds(time.perf_counter() - began)
        message = f"{self._settings.llm_model} at {url} answers {answer.status_code} in {took}"
        yield CheckResult("llm", verdict, message, "correct ENGRAM_LLM_API_KEY" * refused)

    def _check_wings(self) -> Iterator[CheckResult]:
        try:
            self._wings.check()
        except ConfigurationError as error:
            yield CheckResult("wings", "wrong", error.detail)
            return
        on = sorted(wing.name for wing in self._wings.list_wings() if wing.is_on)
        yield CheckResult("wings", "ok", f"on: {', '.join(on) or 'none'}")


def numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with: "18.4 (Debian 18.4-1)" is (18, 4)."""
    versions = []
    for part in version.split(maxsplit=1)[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        versions.append(int(digits))
    return tuple(versions)


def _compute_clock_distance(server_time: float, before: float, after: float) -> float:
    """Return the least distance of a clock from ours, given our readings before and after."""
    return max(0.0, before - server_time, server_time - after)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"

"""The doctor: a line for everything, and the right one where something is wrong."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context import tenancy
from engram.storage.maintenance import gauge_queries, vector_indexes
from engram.wings.upkeep.parts import upkeep_of
from engram.wings.upkeep.services import doctor_checks
from engram.wings.upkeep.services.doctor_checks import CheckResult, numbers
from engram.wings.upkeep.storage import database_contents
from tests.support.command import Cli
from tests.support.databases import application_on
from tests.support.dripping_server import drip_headers
from tests.support.encoder import ResizedEncoder, RotatedEncoder
from tests.support.model_server import ModelServer
from tests.support.openai_server import OpenAiServer
from tests.support.processes import eventually

CHECKED_THINGS = [
    "version",
    "settings",
    "files",
    "disk",
    "redis",
    "postgres",
    "pgvector",
    "replica",
    "schema",
    "encoder",
    "collections",
    "languages",
    "clocks",
    "workers",
    "backlog",
    "moves",
    "indexes",
    "statistics",
    "reranker",
    "llm",
    "wings",
]


@pytest.fixture(scope="module")
def alone(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """An application on a database of its own, with a worker that beats."""
    with application_on(own, settings, application) as services:
        services.stream.beat()
        yield services
        services.stream.leave()


def findings(services: Application, **changed: Any) -> dict[str, CheckResult]:
    services.stream.beat()
    examined = doctor_checks.DoctorService(
        services.settings.model_copy(update=changed),
        services.database,
        services.stream,
        lambda: services.models.encoder,
        lambda: services.models.reranker,
        services.maintenance.wing_clearing,
    )
    return {finding.thing: finding for finding in examined.examine()}


def execute(services: Application, *statements: str) -> None:
    with services.database.write() as writer:
        for statement in statements:
            writer.execute(statement)


def test_healthy_service_passes_all_checks(alone: Application) -> None:
    found = findings(alone)
    assert list(found) == CHECKED_THINGS
    assert {finding.verdict for finding in found.values()} == {"ok"}, found
    assert not any(finding.remedy for finding in found.values())


@pytest.mark.parametrize(
    ("version", "verdict"), [("0.7.4", "wrong"), ("0.8.0", "warning"), ("0.8.3", "warning"), ("0.8.4", "ok")]
)
def test_pgvector_is_as_new_as_it_has_to_be(
    alone: Application, monkeypatch: pytest.MonkeyPatch, version: str, verdict: str
) -> None:
    monkeypatch.setattr(database_contents, "versions", lambda _: database_contents.Versions("18.4", version, None))
    monkeypatch.setattr(doctor_checks, "load_standing", lambda _: "newer")
    assert findings(alone)["pgvector"].verdict == verdict


def test_languages_that_an_encoder_does_not_know_are_reported(alone: Application) -> None:
    encoder = alone.models.encoder.id
    execute(
        alone,
        "INSERT INTO collection (name, encoder_model, encoder_fingerprint, encoder_dimension, languages) VALUES "
        f"('wetter', '{encoder.model}', '{encoder.fingerprint}', 384, '{{\"en\": 9, \"ru\": 4, \"la\": 3}}'), "
        f"('notes', '{encoder.model}', '{encoder.fingerprint}', 384, '{{\"en\": 500, \"ru\": 1}}')",
    )
    try:
        found = findings(alone)["languages"]
    finally:
        execute(alone, "DELETE FROM collection")
    # Of Latin there are no sentences to measure by; one passage of 501 may have been recognised wrongly.
    assert (found.verdict, found.found) == ("warning", "unknown to the encoder: wetter (ru)")


def test_old_postgres_is_reported(alone: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        database_contents, "versions", lambda _: database_contents.Versions("15.6 (Debian)", "0.8.4", None)
    )
    assert findings(alone)["postgres"].verdict == "wrong"


def test_missing_schema_parts_are_named(alone: Application) -> None:
    execute(
        alone,
        "ALTER TABLE passage RENAME COLUMN title TO heading",
        "ALTER INDEX feedback_event_pending_idx RENAME TO x",
    )
    try:
        found = findings(alone)["schema"]
    finally:
        execute(
            alone,
            "ALTER TABLE passage RENAME COLUMN heading TO title",
            "ALTER INDEX x RENAME TO feedback_event_pending_idx",
        )
    assert found.verdict == "wrong"
    assert "column title of passage" in found.found
    assert "index feedback_event_pending_idx of feedback_event" in found.found


def test_missing_worker_is_reported(alone: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone.stream, "workers", lambda: 0)
    assert findings(alone)["workers"].verdict == "wrong"


def test_large_collections_without_an_index_are_reported(
    alone: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_checks, "EXACT_SEARCH_LIMIT", 8)
    execute(
        alone,
        "INSERT INTO collection (name, encoder_model, encoder_fingerprint, encoder_dimension, passage_count) "
        "VALUES ('l', 'm', 'f', 384, 9)",
    )
    try:
        found = findings(alone)
    finally:
        execute(alone, "DELETE FROM collection")
    assert found["indexes"].found == "1 large tables of collections have none"
    assert found["collections"].verdict == "warning", "and it is of another encoder"


def test_indexes_that_are_being_built_are_not_reported(alone: Application) -> None:
    """A build waits for transactions that were open before: the index is there, and not valid."""

    def build() -> None:
        with tenancy.allow_all_tenants(), alone.database.administer() as administrator:
            vector_indexes.build(administrator, "passage", 7, 384, 64)

    def count_invalid() -> int:
        with alone.database.read() as reader:
            return sum(row.invalid for row in gauge_queries.vector_indexes(reader))

    with ThreadPoolExecutor(1) as pool:
        with alone.database.write() as writer:
            writer.execute("UPDATE passage SET title = title WHERE false")
            building = pool.submit(build)
            eventually(lambda: "being built" in findings(alone)["indexes"].found or building.done())
            assert not building.done()
            found, meanwhile = findings(alone)["indexes"], count_invalid()
        building.result()
    try:
        assert (found.verdict, found.found, meanwhile) == ("ok", "1 vector indexes, all valid but 1 being built", 0)
        execute(alone, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'passage_hnsw_7'::regclass")
        assert findings(alone)["indexes"].found == "not valid: passage_hnsw_7"
        assert count_invalid() == 1
    finally:
        execute(alone, "DROP INDEX passage_hnsw_7")
        execute(alone, "ALTER TABLE passage RESET (vacuum_index_cleanup)")


@pytest.mark.parametrize(
    ("changed", "thing"),
    [
        ({"max_connections": 100_000_000}, "files"),
        ({"llm_base_url": "http://127.0.0.1:1/v1"}, "llm"),
    ],
)
def test_excessive_settings_are_reported(alone: Application, changed: dict[str, Any], thing: str) -> None:
    assert findings(alone, **changed)[thing].verdict != "ok"


def test_endpoint_that_refuses_the_key_is_reported(alone: Application) -> None:
    with OpenAiServer(api_key="another") as server:
        assert findings(alone, llm_base_url=server.base_url)["llm"].verdict in {"wrong", "ok"}


def test_an_endpoint_whose_headers_never_end_is_given_up(
    alone: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_checks, "LLM_SECONDS", 0.2)
    with drip_headers() as address:
        found = findings(alone, llm_base_url=f"{address}/v1")["llm"]
    assert (found.verdict, found.found) == ("wrong", f"{address}/v1 is out of reach: TimeoutError")


@contextmanager
def open_with_servers(
    own: Servers, settings: Settings, application: Application, **changed: Any
) -> Iterator[Application]:
    """A process with models behind servers."""
    services = Application(settings.model_copy(update=changed), own, consumer="connected")
    services.models.language = application.models.language
    try:
        yield services
    finally:
        services.close()


def test_model_servers_are_reported_with_latency_and_model(
    own: Servers, settings: Settings, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = ResizedEncoder(application.models.embedder, 96).embed
    with ModelServer(vectors, scores=lambda _, texts: [0.5] * len(texts)) as server:
        stated = {
            "embedding_url": server.base_url,
            "embedding_model": "bge",
            "reranker_url": server.root,
            "reranker_model": "cross",
            "llm_base_url": server.base_url,
            "llm_model": "qwen",
        }
        with open_with_servers(own, settings, application, **stated) as services:
            found = findings(services)
            assert {found[thing].verdict for thing in ("encoder", "reranker", "llm")} == {"ok"}
            assert re.fullmatch(
                rf"bge at {server.base_url} answers in \d+ ms, 96 dimensions, \w{{12}}", found["encoder"].found
            )
            assert re.fullmatch(r"cross answers in \d+ ms", found["reranker"].found)
            assert re.fullmatch(rf"qwen at {server.base_url} answers 200 in \d+ ms", found["llm"].found)
            monkeypatch.setattr(doctor_checks, "RERANKER_SECONDS", 1e-9)
            assert findings(services)["reranker"].verdict == "warning"
            server.vectors = server.scores = None
            found = findings(services)
            assert {found[thing].verdict for thing in ("encoder", "reranker")} == {"wrong"}
            assert "nothing at" in found["encoder"].found
            assert {found[thing].remedy for thing in ("encoder", "reranker")} == {"docs/models.md"}


def test_exchanged_model_behind_a_server_is_reported(
    own: Servers, settings: Settings, application: Application
) -> None:
    other = ResizedEncoder(application.models.embedder, 96)
    with (
        ModelServer(other.embed) as server,
        open_with_servers(
            own, settings, application, embedding_url=server.base_url, embedding_model="bge"
        ) as services,
    ):
        assert findings(services)["encoder"].verdict == "ok"
        server.vectors = RotatedEncoder(other).embed
        found = findings(services)["encoder"]
        assert found.verdict == "wrong"
        assert "runs another model under the name 'bge'" in found.found


def test_misspelt_setting_is_reported(alone: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_RECAL_GATE", "1")
    assert "ENGRAM_RECAL_GATE" in findings(alone)["settings"].found


def test_variables_of_other_packages_are_known(alone: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_COLLECTION", "films")
    assert findings(alone)["settings"].verdict == "ok"


def test_clock_difference_is_reported(alone: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone.stream, "clock", lambda: 0.0)
    assert findings(alone)["clocks"].verdict == "warning"


def test_without_servers_there_is_still_a_line_for_each(settings: Settings, application: Application) -> None:
    nowhere = Servers("postgresql://127.0.0.1:1/none", "redis://127.0.0.1:1/0")
    with application_on(nowhere, settings, application) as services:
        found = {finding.thing: finding.verdict for finding in upkeep_of(services).doctor.examine()}
    assert found["redis"] == found["postgres"] == found["schema"] == "wrong"
    assert found["files"] == "ok"


@pytest.mark.parametrize(
    ("version", "read"), [("18.4 (Debian 18.4-1)", (18, 4)), ("0.8.5", (0, 8, 5)), ("19beta2", (19,))]
)
def test_numbers_of_a_version(version: str, read: tuple[int, ...]) -> None:
    assert numbers(version) == read


def test_the_command_says_a_line_each_and_ends_with_what_is_wrong(
    cli: Cli, env: dict[str, str], curie: str, application: Application
) -> None:
    application.stream.beat()
    done = cli("doctor", **env)
    assert done.returncode == (1 if "WRONG" in done.stdout else 0)
    assert len(done.stdout.splitlines()) >= len(CHECKED_THINGS)
    application.stream.leave()
    said = cli("doctor", "--json", **env | {"REDIS_URL": "redis://127.0.0.1:1/0"})
    assert said.returncode == 1
    found = {finding["thing"]: finding for finding in json.loads(said.stdout)["findings"]}
    assert found["redis"]["verdict"] == "wrong"
    assert found["redis"]["remedy"]

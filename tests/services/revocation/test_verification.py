"""Proof by replay: a clean collection is clean, and a row that the log does not lead to is found, in any table."""

import threading
from dataclasses import replace

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.services.revocation.verification import VerificationService
from engram.services.revocation.verification_findings import TABLES, VerificationReport
from engram.storage.corpus import collections
from engram.storage.tables.table_base import metadata
from engram.wings.published.parts import published_of
from engram.wings.published.services.derived_keys import DerivedKeys
from engram.wings.published.services.derived_memories import DerivedMemories
from engram.wings.published.services.key_evolution import KeyEvolutionService
from tests.support import evolving, state, twins, undo
from tests.support.databases import application_on, open_migrated

WING_TABLES = (*DerivedMemories.verified_tables, *DerivedKeys.verified_tables)


def mark_wing(table: str, *case: str) -> object:
    """A case, marked with the wing whose table it is about."""
    marks = [pytest.mark.wing("published")] if table in (*WING_TABLES, "key_generation") else []
    return pytest.param(*case, marks=marks)


def list_different_tables(application: Application, collection: str) -> set[str]:
    """Tables that differ."""
    report = application.revocation.verification.verify(application.auth.access.scope(collection), most=1_000)
    assert report.clean == (not report.differences)
    return {difference.table for difference in report.differences}


def tamper(application: Application, collection: str, statement: str) -> int:
    with application.database.write() as writer:
        return writer.execute(statement, {"c": state.collection_id(application, collection)})


def build_choice(table: str, order: str = "") -> str:
    """A condition that holds for one row of the collection: its first by an order, or by its key."""
    key = ", ".join(metadata.tables[table].primary_key.columns.keys())
    first = f"SELECT {key} FROM {table} WHERE collection_id = %(c)s ORDER BY {order or key} LIMIT 1"
    return f"collection_id = %(c)s AND ({key}) = ({first})"


def build_change(table: str, change: str, order: str) -> str:
    """A statement that changes one row of the collection."""
    return f"UPDATE {table} SET {change} WHERE {build_choice(table, order)}"


TURNED = "vector * array_fill(-1, ARRAY[384])::vector"
# Each changes as little as the column's type can tell.
TAMPERED = {
    "the rules of keys": ("UPDATE key_generation SET rules = '{}' WHERE collection_id = %(c)s", "key_generation"),
    "a perplexity": (
        build_change("sentence_memory", "perplexity = perplexity + 1e-15", "sentence_id"),
        "sentence_memory",
    ),
    "a count": (
        build_change("sentence_memory", "update_count = update_count + 1", "sentence_id"),
        "sentence_memory",
    ),
    "a time memory": (
        build_change("sentence_memory", f"vector = {TURNED}", "channel DESC"),
        "sentence_memory",
    ),
    "a support": (build_change("question_support", "support = support + 1e-12", "sentence_id"), "question_support"),
    "an acceptance": (
        build_change("question_support", "acceptance = acceptance + 1e-12", "sentence_id"),
        "question_support",
    ),
    "completeness": (
        build_change("question_support", "complete = NOT complete", "sentence_id"),
        "question_support",
    ),
    "a question": (build_change("question", "text = text || '?'", "id"), "question"),
    "a gain": (build_change("memory_audit", "gain = gain + 1e-15", "event_id, channel"), "memory_audit"),
    "a target": (build_change("memory_audit", "target = 1 - target", "event_id, channel"), "memory_audit"),
    "a noise": (build_change("memory_audit", "observation_noise = 9", "event_id, channel"), "memory_audit"),
    "the belief": (
        build_change("learned_weights", "information[1] = information[1] + 1e-12", "model DESC"),
        "learned_weights",
    ),
    "the belief of what is enough": (
        build_change("learned_weights", "information[1] = information[1] + 1e-12", "model"),
        "learned_weights",
    ),
    "a term of what is enough": (
        build_change("weight_audit", "information[1] = information[1] + 0.1", "model, event_id"),
        "weight_audit",
    ),
    "a count of terms": (build_change("learned_weights", "events = events + 1", "prior"), "learned_weights"),
    "a term": (
        build_change("weight_audit", "information[1] = information[1] + 0.1", "model DESC, event_id"),
        "weight_audit",
    ),
    "a credit": (build_change("key_credit", "gain = gain + 1e-6", "weight DESC, event_id"), "key_credit"),
    "a weight": (build_change("key_credit", "weight = weight / 2", "weight DESC, event_id"), "key_credit"),
    "a score": (build_change("expansion_memory", "score = score * (1 + 1e-12)", "passage_id"), "expansion_memory"),
    "a key": (build_change("passage_key", f"vector = {TURNED}", "passage_id"), "passage_key"),
    "a key's units": (build_change("passage_key", "units = units || units[1]", "passage_id"), "passage_key"),
    "a posting": (
        build_change("evolved_posting", "frequency = frequency * 1.001", "passage_id, term"),
        "evolved_posting",
    ),
}
REMOVED = (
    ("sentence_memory", "sentence_memory"),
    ("question_support", "question_support"),
    ("question", "question"),
    ("memory_audit", "memory_audit"),
    ("learned_weights", "learned_weights"),
    ("expansion_memory", "expansion_memory"),
    ("passage_key", "passage_key"),
    ("evolved_posting", "evolved_posting"),
)


class TestCleanReports:
    def test_learned_state_follows_from_the_log(self, application: Application, taught: str) -> None:
        report = application.revocation.verification.verify(application.auth.access.scope(taught))
        assert report.clean
        rows = {table.table: table.rows for table in report.tables}
        learned = (*TABLES, *(WING_TABLES if "published" in application.wing_services else ()))
        assert list(rows)[: len(TABLES)] == list(TABLES)
        for table in learned:
            assert rows[table] == len(state.rows(application, taught, table)), table
            assert rows[table] > 0, table

    def test_a_collection_without_verdicts_is_clean(self, application: Application, curie: str) -> None:
        report = application.revocation.verification.verify(application.auth.access.scope(curie))
        assert report.clean
        assert all(table.rows == 0 for table in report.tables)

    @pytest.mark.wing("published")
    def test_pages_do_not_matter(
        self, application: Application, taught: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = application.revocation.verification.verify(application.auth.access.scope(taught))
        monkeypatch.setattr("engram.services.revocation.verification.CHUNK", 2)
        monkeypatch.setattr("engram.wings.published.services.derived_keys.VERIFIED", 2)
        monkeypatch.setattr("engram.services.revocation.verification.EVENTS", 3)
        monkeypatch.setattr("engram.storage.feedback_log.replay_history.PAGE", 3)
        monkeypatch.setattr("engram.services.feedback_log.log_replay.PAGE", 3)
        assert application.revocation.verification.verify(application.auth.access.scope(taught)) == whole

    def test_a_checksum_tells_states_apart(self, application: Application, taught: str) -> None:
        def checksums(report: VerificationReport) -> dict[str, str]:
            return {table.table: table.checksum for table in report.tables}

        before = checksums(application.revocation.verification.verify(application.auth.access.scope(taught)))
        assert (
            checksums(application.revocation.verification.verify(application.auth.access.scope(taught))) == before
        )
        tamper(application, taught, TAMPERED["a support"][0])
        after = checksums(application.revocation.verification.verify(application.auth.access.scope(taught)))
        assert {table for table in after if after[table] != before[table]} == {"question_support"}

    def test_others_learn_and_revoke_meanwhile(self, application: Application, taught: str) -> None:
        events = undo.stream(application, taught, 30, seed=42)
        done = threading.Event()
        reports: list[VerificationReport] = []

        def look() -> None:
            while not done.is_set():
                reports.append(application.revocation.verification.verify(application.auth.access.scope(taught)))

        def learn() -> None:
            try:
                undo.apply(application, taught, events, 3)
                evolving.evolve(application, application.auth.access.scope(taught))
                for event in events[::4]:
                    application.learning.revocation.revoke(application.auth.access.scope(taught), event)
            finally:
                done.set()

        state.together(look, learn)
        assert reports
        assert [report.differences for report in reports if not report.clean] == []

    def test_every_collection_is_verified_in_name_order(
        self, application: Application, addresses: Servers, settings: Settings
    ) -> None:
        # In a database of its own: the one of all tests has hundreds, each of which takes its time.
        with open_migrated(addresses) as own, application_on(own, settings, application) as few:
            for name in ("b", "a", "c"):
                events = undo.stream(few, twins.create_twin(few, name), 4, seed=43)
                undo.apply(few, name, events, 4)
            encoder = few.auth.access.scope("a").collection.encoder
            with few.database.write() as writer:
                writer.execute("INSERT INTO tenant (name) VALUES ('verified')")
                collections.open_for_writing(writer, "b", encoder, "verified")
            reports = list(few.revocation.verification.verify_all())
        assert [report.collection for report in reports] == ["a", "b", "verified/b", "c"], "other tenants as well"
        assert [any(table.rows for table in report.tables) for report in reports] == [True, True, False, True]


class TestDifferences:
    @pytest.mark.parametrize("what", [mark_wing(table, what) for what, (_, table) in TAMPERED.items()])
    def test_a_changed_row_is_found(self, application: Application, taught: str, what: str) -> None:
        statement, table = TAMPERED[what]
        assert tamper(application, taught, statement) == 1
        assert table in list_different_tables(application, taught)

    @pytest.mark.parametrize(("table", "named"), [mark_wing(table, table, named) for table, named in REMOVED])
    def test_a_missing_row_is_found(self, application: Application, taught: str, table: str, named: str) -> None:
        assert tamper(application, taught, f"DELETE FROM {table} WHERE {build_choice(table)}") == 1
        assert named in list_different_tables(application, taught)

    @pytest.mark.wing("published")
    def test_a_row_too_many_is_found(self, application: Application, taught: str) -> None:
        statement = """
            INSERT INTO sentence_memory (collection_id, sentence_id, channel, vector, perplexity, update_count)
            SELECT collection_id, id, 'time', embedding, 1, 0 FROM sentence WHERE collection_id = %(c)s
            ON CONFLICT DO NOTHING
        """
        added = tamper(application, taught, statement)
        report = application.revocation.verification.verify(application.auth.access.scope(taught))
        assert added == len(report.differences) > 0
        assert {difference.reason for difference in report.differences} == {"no event that counts leads to it"}

    @pytest.mark.wing("published")
    def test_an_event_that_was_dropped_from_the_log_is_missed(self, application: Application, taught: str) -> None:
        tamper(
            application,
            taught,
            """
            UPDATE feedback_event SET status = 'revoked' WHERE id = (
                SELECT event_id FROM key_evidence WHERE collection_id = %(c)s AND generation IS NOT NULL LIMIT 1
            )
            """,
        )
        assert {
            "sentence_memory",
            "question_support",
            "memory_audit",
            "learned_weights",
            "weight_audit",
        } <= list_different_tables(application, taught)

    def test_another_order_of_application_is_not_the_same(self, application: Application, taught: str) -> None:
        tamper(
            application,
            taught,
            "UPDATE feedback_event SET applied_sequence = -applied_sequence WHERE collection_id = %(c)s",
        )
        assert "question_support" in list_different_tables(application, taught)

    def test_verification_counts_differences_and_shows_a_few(self, application: Application, taught: str) -> None:
        changed = tamper(
            application, taught, "UPDATE question_support SET update_count = 77 WHERE collection_id = %(c)s"
        )
        report = application.revocation.verification.verify(application.auth.access.scope(taught), most=2)
        assert report.difference_count == changed > 2
        assert len(report.differences) == 2
        assert report.differences[0].reason.startswith("update_count is 77, replayed ")

    def test_terms_of_another_prior_are_summed_but_not_made_anew(
        self, application: Application, taught: str
    ) -> None:
        for table in ("learned_weights", "weight_audit"):
            tamper(application, taught, f"UPDATE {table} SET prior = 'another' WHERE collection_id = %(c)s")
        tamper(application, taught, TAMPERED["a term"][0])
        assert list_different_tables(application, taught) == {"learned_weights"}

    @pytest.mark.wing("published")
    def test_it_verifies_with_the_capacity_it_is_given(self, application: Application, taught: str) -> None:
        narrow_keys = KeyEvolutionService(
            application.database, replace(published_of(application).key_learning.rules, units=1, capacity=1)
        )
        derived = DerivedKeys(lambda: published_of(application).attribution, lambda: narrow_keys)
        narrow = VerificationService(application.database, application.models.priors, [derived])
        assert {d.table for d in narrow.verify(application.auth.access.scope(taught)).differences} == {
            "expansion_memory"
        }

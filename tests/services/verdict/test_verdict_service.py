"""Accepting verdicts: once per key, resolved to sentences, parked when they cannot be applied."""

import uuid

import pytest

from engram.composition.container import Application
from engram.composition.parts.learning_services import APPLY_ATTEMPTS
from engram.context.errors import ConflictError, IdempotencyConflictError, InvalidRequestError, NotFoundError
from engram.core.learning.logged_verdict import LoggedVerdict
from engram.core.learning.ratings import find_meaning
from engram.services.question.query import Query
from engram.services.verdict.receipt import Receipt
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.feedback_log import audit_rows
from engram.storage.feedback_log.logged_verdicts import VERSION
from tests.conftest import Ingest
from tests.support import state

QUESTION = "Where was Marie Curie born?"


@pytest.fixture
def query_id(application: Application, curie: str) -> uuid.UUID:
    return state.add_episode(application, curie, QUESTION, state.list_sentence_ids(application, curie)[:3])


def set_version(application: Application, event: int, version: int) -> None:
    """Have a verdict be of another version."""
    with application.database.write() as writer:
        writer.execute(
            "UPDATE feedback_event SET version = %(version)s WHERE id = %(event)s",
            {"version": version, "event": event},
        )


class TestIdempotencyKeys:
    def test_the_same_verdict_again_gets_the_first_receipt(
        self, application: Application, curie: str, query_id: uuid.UUID
    ) -> None:
        born = state.list_sentence_ids(application, curie)[0]
        first = state.judge(application, curie, query_id, [born], key="once", wait=True)
        learned = state.list_learned(application, curie)
        second = state.judge(application, curie, query_id, [born], key="once", wait=True)

        assert second == first
        assert first.changes
        assert state.list_learned(application, curie) == learned
        assert application.answers.episodes.read(application.auth.access.scope(curie), query_id).judged == 1

    def test_another_verdict_is_refused(self, application: Application, curie: str, query_id: uuid.UUID) -> None:
        born, discovered, *_ = state.list_sentence_ids(application, curie)
        state.judge(application, curie, query_id, [born], key="once")
        with pytest.raises(IdempotencyConflictError, match="once"):
            state.judge(application, curie, query_id, [discovered], key="once")

        assert len(state.rows(application, curie, "feedback_event")) == 1

    def test_senders_at_once_make_one_event(
        self, application: Application, curie: str, query_id: uuid.UUID
    ) -> None:
        born = state.list_sentence_ids(application, curie)[0]
        receipts: list[Receipt] = []

        def send() -> None:
            receipts.append(state.judge(application, curie, query_id, [born], key="once", wait=True))

        state.together(*[send] * 8)

        assert len({receipt.event.id for receipt in receipts}) == 1
        assert all(receipt.event.status == "applied" and receipt.changes for receipt in receipts)
        assert len(state.rows(application, curie, "feedback_event")) == 1
        assert {row["update_count"] for row in state.rows(application, curie, "question_support")} == {1}
        assert application.answers.episodes.read(application.auth.access.scope(curie), query_id).judged == 1


class TestSentenceReferences:
    def accept_names(
        self, application: Application, collection: str, query_id: uuid.UUID, *names: NamedSentence
    ) -> list[int]:
        verdict = Verdict(query_id=query_id, scope=application.auth.access.scope(collection), supporting=names)
        event = application.learning.verdicts.accept(verdict, uuid.uuid4().hex).event.id
        return list(
            application.learning.verdicts.read(
                application.auth.access.scope(collection), event
            ).event.verdict.supports
        )

    def test_a_sentence_is_found_by_its_text(
        self, application: Application, curie: str, query_id: uuid.UUID
    ) -> None:
        named = state.sentences(application, curie, "warsaw")
        lies = named["Warsaw lies on the Vistula."]
        for text in (
            "Warsaw lies on the Vistula.",
            " warsaw  LIES on the vistula",
            "They say: Warsaw lies on the Vistula, as everyone knows",
        ):
            assert self.accept_names(
                application, curie, query_id, NamedSentence(passage_id="warsaw", text=text)
            ) == [lies]

    def test_a_longer_text_names_every_sentence_in_it(
        self, application: Application, curie: str, query_id: uuid.UUID
    ) -> None:
        whole = " ".join(state.sentences(application, curie, "warsaw"))
        found = self.accept_names(application, curie, query_id, NamedSentence(passage_id="warsaw", text=whole))

        assert found == sorted(state.sentences(application, curie, "warsaw").values())

    @pytest.mark.parametrize(
        "name",
        [
            NamedSentence(sentence_id=0),
            NamedSentence(sentence_id=2**62),
            NamedSentence(passage_id="none", text="Warsaw lies on the Vistula."),
            NamedSentence(passage_id="warsaw", text="Nothing of the kind."),
            NamedSentence(passage_id="warsaw", text="  "),
            NamedSentence(passage_id="warsaw", text="lies on the"),
            NamedSentence(passage_id="warsaw"),
            NamedSentence(text="Warsaw lies on the Vistula."),
            NamedSentence(),
        ],
    )
    def test_verdict_naming_no_sentence_is_refused(
        self, application: Application, curie: str, query_id: uuid.UUID, name: NamedSentence
    ) -> None:
        with pytest.raises(InvalidRequestError, match=r"There is no|has no sentence"):
            self.accept_names(application, curie, query_id, name)
        assert state.rows(application, curie, "feedback_event") == []

    def test_a_sentence_of_another_collection_is_none(
        self, application: Application, curie: str, query_id: uuid.UUID, ingest: Ingest
    ) -> None:
        other = f"{curie}-other"
        ingest({"id": "a", "text": "Bees fly."}, into=other)
        (foreign,) = state.list_sentence_ids(application, other)
        with pytest.raises(InvalidRequestError, match="no sentence"):
            self.accept_names(application, curie, query_id, NamedSentence(sentence_id=foreign))

    def test_a_sentence_cannot_be_both_supported_and_rejected(
        self, application: Application, curie: str, query_id: uuid.UUID
    ) -> None:
        born = state.list_sentence_ids(application, curie)[0]
        with pytest.raises(InvalidRequestError, match="both"):
            state.judge(application, curie, query_id, missed=[born], rejected=[born])

    def test_an_unknown_query_is_refused(self, application: Application, curie: str) -> None:
        with pytest.raises(NotFoundError, match="no query"):
            state.judge(application, curie, uuid.uuid4())


class TestChangedPassages:
    """Verdicts on an answer whose passages got another text since."""

    NEW_TEXT = "Warsaw was rebuilt after the war. Warsaw lies on the Vistula."

    @pytest.fixture(params=["edited", "deleted and written again"])
    def changed(
        self, request: pytest.FixtureRequest, application: Application, curie: str, ingest: Ingest
    ) -> Query:
        """A query that showed Warsaw's earlier text."""
        scope = application.auth.access.scope(curie)
        query = Query(text="Where does Warsaw lie?", scope=scope, top_k=10)
        self.query_id = application.answers.question.serve(query).query_id
        if request.param != "edited":
            application.corpus.ingest.delete_passage(scope, "warsaw")
        ingest({"id": "warsaw", "title": "Warsaw", "text": self.NEW_TEXT}, into=curie)
        return query

    def accept(self, application: Application, verdict: Verdict) -> LoggedVerdict:
        event = application.learning.verdicts.accept(verdict, uuid.uuid4().hex).event.id
        return application.learning.verdicts.read(verdict.scope, event).event.verdict

    def build_verdict(self, query: Query, **named: object) -> Verdict:
        return Verdict(query_id=self.query_id, scope=query.scope, judge="j", **named)  # type: ignore[arg-type]

    def test_a_passage_that_was_not_shown_so_is_refused(self, application: Application, changed: Query) -> None:
        cited: list[dict[str, object]] = [
            {"supporting_passages": ("warsaw",)},
            {"rating": "up", "cited": (NamedSentence(passage_id="warsaw"),)},
            {"supporting": (NamedSentence(passage_id="warsaw", text="Warsaw was rebuilt after the war in 1953."),)},
        ]
        for named in cited:
            with pytest.raises(ConflictError, match="'warsaw' has another text now"):
                application.learning.verdicts.accept(self.build_verdict(changed, **named), uuid.uuid4().hex)

    def test_a_sentence_that_was_kept_can_be_named(self, application: Application, changed: Query) -> None:
        name = NamedSentence(passage_id="warsaw", text="Warsaw lies on the Vistula.")
        verdict = self.build_verdict(changed, supporting=(name,))
        kept = state.sentences(application, changed.scope.collection.name, "warsaw")["Warsaw lies on the Vistula."]
        assert self.accept(application, verdict).supports == (kept,)

    def test_a_thumb_spares_it(self, application: Application, changed: Query) -> None:
        verdict = self.build_verdict(changed, rating="up")
        likely = {one.sentence_id: one.probability for one in self.accept(application, verdict).likely}
        new = state.sentences(application, changed.scope.collection.name, "warsaw").values()
        assert likely
        assert not likely.keys() & set(new)
        first = find_meaning("up", None, has_citations=False).compute_reference_probability(1)
        assert max(likely.values()) < first  # Warsaw stood first, and none takes its place

    def test_the_stored_answer_tells_which_text_it_showed(self, application: Application, changed: Query) -> None:
        answer = application.answers.episodes.read(changed.scope, self.query_id).answer
        is_changed = {shown["passage_id"]: shown["changed"] for shown in answer["shown_texts"]}
        assert not is_changed.pop("curie")
        assert is_changed.get("warsaw", True)  # left out where its row is gone


class TestInapplicableEvents:
    def test_events_on_a_deleted_sentence_pass_it_over(
        self, application: Application, curie: str, query_id: uuid.UUID
    ) -> None:
        born, discovered = state.sentences(application, curie, "curie").values()
        (vistula,) = state.sentences(application, curie, "vistula").values()
        event = state.judge(application, curie, query_id, [born, vistula], rejected=[discovered]).event.id
        application.corpus.ingest.delete_passage(application.auth.access.scope(curie), "curie")

        assert application.learning.learner.apply(state.collection_id(application, curie), [event]) == 1

        receipt = application.learning.verdicts.read(application.auth.access.scope(curie), event)
        assert receipt.event.status == "applied"
        assert {row.sentence_id for row in receipt.changes or []}.isdisjoint({born, discovered})
        assert vistula in {row.sentence_id for row in receipt.changes or []}

    def test_event_of_unknown_version_is_parked_and_blocks_no_others(
        self, application: Application, curie: str, query_id: uuid.UUID
    ) -> None:
        born = state.list_sentence_ids(application, curie)[0]
        events = [state.judge(application, curie, query_id, [born]).event.id for _ in range(3)]
        set_version(application, events[1], VERSION + 1)
        target = state.collection_id(application, curie)

        assert application.learning.learner.apply(target, events) == 2
        assert state.event_statuses(application, curie)[events[1]] == "pending"
        for _ in range(APPLY_ATTEMPTS):
            assert application.learning.learner.apply(target, events) == 0

        assert state.event_statuses(application, curie) == dict(
            zip(events, ["applied", "parked", "applied"], strict=True)
        )
        parked = application.learning.verdict_listing.page(
            application.auth.access.scope(curie), status="parked", after=0, limit=9
        )
        assert [(one.event.id, one.event.attempts, bool(one.event.error)) for one in parked] == [
            (events[1], APPLY_ATTEMPTS, True)
        ]
        with application.database.read() as reader:
            assert audit_rows.read(reader, target, [events[1]]) == {events[1]: []}
        assert {row["update_count"] for row in state.rows(application, curie, "question_support")} == {2}

    def test_waiting_for_such_an_event_ends_with_it_parked(
        self, application: Application, curie: str, query_id: uuid.UUID
    ) -> None:
        born = state.list_sentence_ids(application, curie)[0]
        set_version(
            application, state.judge(application, curie, query_id, [born], key="once").event.id, VERSION + 1
        )

        receipt = state.judge(application, curie, query_id, [born], key="once", wait=True)

        assert (receipt.event.status, receipt.changes) == ("parked", [])

"""Generations: learned by a job, withdrawn with their verdicts, proved by ``verify``."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.services.auth.scope import Scope
from engram.services.jobs.work import Work
from engram.storage.database import Reader, Writer
from engram.storage.maintenance import staged_embeddings
from engram.wings.tuning.core.acceptance import DEFAULT_RULE
from engram.wings.tuning.core.learn_adapter import Adapter
from engram.wings.tuning.parts import tuning_of
from engram.wings.tuning.services import learning_process
from engram.wings.tuning.services.learning_process import learn_in_subprocess
from engram.wings.tuning.services.training_input import LoggedSamples, load_samples
from engram.wings.tuning.services.tuning_job import TUNE, TuningJob
from engram.wings.tuning.storage import tuning_generations
from engram.wings.tuning.wing import WING
from tests.services.erasure.test_erasure_service import erase
from tests.support import past, state, undo
from tests.support.encoder import SOME_ENCODER
from tests.support.jobs import run_again, runner
from tests.support.tuned import JUDGED, PERMISSIVE, finish_jobs, judge_questions
from tests.wings.tuning.conftest import Tune

LEARN = "engram.wings.tuning.services.tuning_job.learn_in_subprocess"


@pytest.fixture
def scope(application: Application, curie: str) -> Scope:
    return application.auth.access.scope(curie)


def find_serving(application: Application, scope: Scope) -> int:
    with application.database.read() as reader:
        return tuning_generations.find_serving(reader, scope.collection.id)


def revoke(application: Application, scope: Scope, event: int) -> None:
    assert application.learning.revocation.revoke(scope, event).status == "revoked"


def count_open_jobs(application: Application, scope: Scope) -> int:
    jobs = state.rows(application, scope.collection.name, "job")
    return len([job for job in jobs if job["kind"] == TUNE.name and job["status"] == "queued"])


def test_a_job_stores_the_adapter_with_its_verdicts_and_has_it_serve(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    job = tune(scope)
    assert job.status == "succeeded"
    standing = tuning_of(application).tuning.load_standing(scope)
    (made,) = standing.generations
    assert job.result == {"generation": 1, "accepted": True, "reason": made.reason}
    assert standing.serving == made.number == 1
    assert made.reason.startswith("used: held-out questions ")
    assert (made.judged_count, made.question_count, made.verdict_count) == (len(JUDGED),) * 3
    assert made.figures["others"]["questions"] + made.figures["sharing"]["questions"] == len(JUDGED)
    listed = state.rows(application, scope.collection.name, "tuning_verdict")
    assert sorted(row["event_id"] for row in listed) == judged
    undo.assert_verified(application, scope.collection.name)


def test_the_same_log_gives_the_same_adapter(
    application: Application, scope: Scope, judged: list[int], tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LEARN, learn_in_subprocess)
    for _ in range(2):
        tune(scope)
    one, two = state.rows(application, scope.collection.name, "tuning_generation")
    assert one["adapter"] == two["adapter"]
    assert Adapter.from_bytes(bytes.fromhex(one["adapter"][2:])).rank == 4
    assert len(one["adapter"]) / 2 < 700_000


def test_what_is_refused_is_stored_without_its_adapter(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    job = tune(scope, replace(PERMISSIVE, z=1e9))
    assert job.result is not None
    assert not job.result["accepted"]
    assert job.result["reason"].startswith("not used: held-out questions ")
    (row,) = state.rows(application, scope.collection.name, "tuning_generation")
    assert row["adapter"] is None
    assert state.rows(application, scope.collection.name, "tuning_verdict") == []
    assert find_serving(application, scope) == 0


def test_too_few_needs_teach_nothing(application: Application, scope: Scope, judged: list[int], tune: Tune) -> None:
    job = tune(scope, DEFAULT_RULE)
    assert job.result is not None
    assert job.result["reason"] == "not learned: verdicts on 5 needs, of 20 at least"


def test_a_revoked_verdict_withdraws_what_it_taught_in_the_same_transaction(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    tune(scope)
    later = judge_questions(application, scope.collection.name, [("What is radioactive?", "polonium")])
    tune(scope)
    assert find_serving(application, scope) == 2
    revoke(application, scope, later[0])
    assert find_serving(application, scope) == 1
    assert count_open_jobs(application, scope) == 1
    undo.assert_verified(application, scope.collection.name)
    revoke(application, scope, judged[0])
    assert find_serving(application, scope) == 0
    rows = state.rows(application, scope.collection.name, "tuning_generation")
    assert [row["adapter"] for row in rows] == [None, None]
    assert all(row["withdrawn_at"] for row in rows)
    undo.assert_verified(application, scope.collection.name)
    finish_jobs(application)
    (learned, *_) = tuning_of(application).tuning.load_standing(scope).generations
    assert (learned.number, learned.question_count) == (3, len(JUDGED) - 1)
    assert find_serving(application, scope) == 3


def test_an_earlier_generation_serves_after_a_withdrawal_by_request(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    for _ in range(3):
        tune(scope)
    service = tuning_of(application).tuning
    service.change(scope, serving=2)
    service.change(scope, withdrawn=2)
    assert find_serving(application, scope) == 1
    assert count_open_jobs(application, scope) == 1
    listed = state.rows(application, scope.collection.name, "tuning_verdict")
    assert {row["generation"] for row in listed} == {1, 3}
    with pytest.raises(InvalidRequestError, match=r"Generation 2 of .* was withdrawn"):
        service.change(scope, withdrawn=2)
    with pytest.raises(InvalidRequestError, match=r"Generation 9 of .* does not exist"):
        service.change(scope, withdrawn=9)
    undo.assert_verified(application, scope.collection.name)


def test_a_change_that_cannot_be_made_in_full_changes_nothing(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    tune(scope)
    service = tuning_of(application).tuning
    with pytest.raises(InvalidRequestError, match="does not exist"):
        service.change(scope, withdrawn=1, serving=9)
    with pytest.raises(InvalidRequestError, match="is off"):
        service.change(scope, is_on=False, serving=1)
    standing = service.load_standing(scope)
    assert (standing.is_on, standing.serving) == (True, 1)
    assert standing.generations[0].usable


def test_nothing_is_withdrawn_if_the_transaction_fails(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    def fail() -> None:
        with application.database.write() as writer:
            application.learning.revocation.take_back(writer, scope.collection.id, judged[:1])
            assert tuning_generations.find_serving(writer, scope.collection.id) == 0
            raise LookupError

    tune(scope)
    with pytest.raises(LookupError):
        fail()
    assert find_serving(application, scope) == 1


def test_an_erased_person_withdraws_what_the_verdicts_taught(
    application: Application, curie: str, scope: Scope, tune: Tune
) -> None:
    judge_questions(application, curie, JUDGED[:3])
    judge_questions(application, curie, JUDGED[3:], judge="quuxina")
    tune(scope)
    assert find_serving(application, scope) == 1
    erase(application, curie, kind="judge", name="quuxina")
    assert find_serving(application, scope) == 0
    assert state.rows(application, curie, "tuning_verdict") == []
    undo.assert_verified(application, curie)


def tune_while(application: Application, scope: Scope, change: Callable[[], object]) -> list[LoggedSamples]:
    """Learn a generation while something changes, once, before it is stored; the samples of each round."""
    rounds: list[LoggedSamples] = []

    class SlowJob(TuningJob):
        def _store(self, writer: Writer, work: Work, samples: LoggedSamples, *attempt: Any) -> bool:
            rounds.append(samples)
            if len(rounds) == 1:
                change()
            return super()._store(writer, work, samples, *attempt)

    tuning_of(application).tuning.request(scope)
    handler = SlowJob(application.database, lambda: application.models.encoder, rule=PERMISSIVE)
    run_again(application, runner(application, tune=handler))
    return rounds


def test_verdicts_that_are_revoked_meanwhile_teach_nothing(
    application: Application, scope: Scope, judged: list[int]
) -> None:
    def revoke_beside() -> None:
        with application.database.write() as beside:
            application.learning.revocation.take_back(beside, scope.collection.id, judged[:1])

    rounds = tune_while(application, scope, revoke_beside)
    assert [[event.id for event in samples.events] for samples in rounds] == [judged, judged[1:]]
    (made,) = state.rows(application, scope.collection.name, "tuning_generation")
    assert made["verdict_count"] == len(judged) - 1
    undo.assert_verified(application, scope.collection.name)


def test_verdicts_that_are_anonymised_meanwhile_teach_nothing(
    application: Application, curie: str, scope: Scope
) -> None:
    judge_questions(application, curie, JUDGED[:3])
    (said,) = judge_questions(application, curie, JUDGED[3:4], judge="quuxina")

    def anonymise() -> None:
        erase(application, curie, kind="judge", name="quuxina", anonymise=True)
        application.learning.learner.apply(scope.collection.id, [said])
        assert state.event_statuses(application, curie)[said] == "applied"

    rounds = tune_while(application, scope, anonymise)
    texts = [{one.text for one in samples.questions} for samples in rounds]
    assert texts == [{text for text, _ in JUDGED[:4]}, {text for text, _ in JUDGED[:3]}]
    undo.assert_verified(application, curie)


def test_passages_that_get_readers_meanwhile_teach_nothing(
    application: Application, scope: Scope, judged: list[int]
) -> None:
    readers = application.corpus.readers
    rounds = tune_while(application, scope, lambda: readers.set_of_passage(scope, "tokyo", ["user:ana"]))
    assert [len(samples.questions) for samples in rounds] == [len(JUDGED), len(JUDGED) - 1]


def test_a_job_that_was_queued_before_tuning_was_switched_off_learns_nothing(
    application: Application, scope: Scope, judged: list[int]
) -> None:
    tuning = tuning_of(application).tuning
    job = tuning.request(scope)
    tuning.change(scope, is_on=False)
    finish_jobs(application)
    done = application.jobs.jobs.job(scope, job)
    assert done.result == {"generation": None, "accepted": False, "reason": "not learned: tuning is off"}
    assert tuning.load_standing(scope).generations == []


def test_passages_with_readers_teach_nothing(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    readers = application.corpus.readers
    readers.set_of_passage(scope, "tokyo", ["user:ana"])
    with application.database.read() as reader:
        compared = load_samples(reader, scope.collection).passages.ids.tolist()
    names = {row["id"]: row["external_id"] for row in state.rows(application, scope.collection.name, "passage")}
    assert sorted({*names.values()} - {names[one] for one in compared}) == ["tokyo"]
    tune(scope)
    (made,) = tuning_of(application).tuning.load_standing(scope).generations
    assert made.question_count == len(JUDGED) - 1
    readers.set_of_passage(scope, "warsaw", ["user:ana"])
    assert find_serving(application, scope) == 1
    tuning_of(application).tuning.withdraw_exposed(lambda: False)
    assert find_serving(application, scope) == 0
    assert count_open_jobs(application, scope) == 1


def test_one_failing_collection_keeps_no_other_from_its_withdrawal(
    application: Application, scope: Scope, judged: list[int], tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = f"0-{scope.collection.name}"
    state.stage_passages(application, first, {"id": "bees", "text": "Bees fly."})
    application.jobs.runner.run_ready()
    tune(scope)
    application.corpus.readers.set_of_passage(scope, "tokyo", ["user:ana"])
    find_exposed, failed = tuning_generations.find_exposed, state.collection_id(application, first)
    asked: list[int] = []

    def fail_once(reader: Reader, collection_id: int) -> list[int]:
        asked.append(collection_id)
        if collection_id == failed:
            raise LookupError
        return find_exposed(reader, collection_id)

    monkeypatch.setattr(tuning_generations, "find_exposed", fail_once)
    with capture_logs() as logged:
        tuning_of(application).tuning.withdraw_exposed(lambda: False)
    assert [entry["collection"] for entry in logged if entry["log_level"] == "error"] == [first]
    assert asked.index(failed) < asked.index(scope.collection.id)
    assert find_serving(application, scope) == 0


def test_verify_finds_a_serving_generation_that_should_not(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    tune(scope)
    with application.database.write() as writer:
        writer.execute(
            "DELETE FROM tuning_verdict WHERE collection_id = %(c)s AND event_id = %(e)s",
            {"c": scope.collection.id, "e": judged[0]},
        )
        writer.execute(
            "UPDATE feedback_event SET status = 'revoked' WHERE collection_id = %(c)s AND id = %(e)s",
            {"c": scope.collection.id, "e": judged[1]},
        )
        writer.execute(
            "UPDATE tuning_generation SET encoder_fingerprint = 'other' WHERE collection_id = %(c)s",
            {"c": scope.collection.id},
        )
    report = application.revocation.verification.verify(scope)
    found = [one.reason for one in report.differences if one.table == "tuning_generation"]
    assert found == [
        f"was taught by verdict {judged[1]}, which does not count",
        f"lists {len(judged) - 1} verdicts, and was taught by {len(judged)}",
        "serves, and belongs to another encoder",
    ]


def test_a_reset_removes_all_generations(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    tune(scope)
    application.revocation.learning_reset.reset(scope)
    assert state.rows(application, scope.collection.name, "tuning_generation") == []
    assert find_serving(application, scope) == 0


@pytest.fixture
def looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the process that learns before it can have learned."""
    monkeypatch.setattr(learning_process, "POLL_SECONDS", 0.0)


@pytest.mark.usefixtures("looked_at_once")
@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"seconds": 0.0}, "not learned: it took longer than 0 seconds"),
        ({"memory_bytes": 1 << 20}, "not learned: it needs more than 1 MB"),
    ],
)
def test_learning_beyond_a_limit_is_told(
    application: Application,
    scope: Scope,
    judged: list[int],
    tune: Tune,
    monkeypatch: pytest.MonkeyPatch,
    limit: dict[str, Any],
    reason: str,
) -> None:
    monkeypatch.setattr(LEARN, partial(learn_in_subprocess, **limit))
    job = tune(scope)
    assert job.result is not None
    assert job.result["reason"] == reason


@pytest.mark.usefixtures("looked_at_once")
def test_a_worker_that_stops_learns_nothing(application: Application, scope: Scope, judged: list[int]) -> None:
    job = tuning_of(application).tuning.request(scope)
    handler = TuningJob(application.database, lambda: application.models.encoder, rule=PERMISSIVE)
    run_again(application, runner(application, tune=handler), lambda: True)
    assert state.rows(application, scope.collection.name, "tuning_generation") == []
    assert count_open_jobs(application, scope) == 1
    assert application.jobs.jobs.cancel(scope, job).job.status == "cancelled"


def test_another_encoder_begins_without_a_generation(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    tune(scope)
    with application.database.write() as writer:
        staged_embeddings.enter(writer, scope.collection.id, SOME_ENCODER)
    assert find_serving(application, scope) == 0
    with pytest.raises(InvalidRequestError, match="belongs to another encoder"):
        tuning_of(application).tuning.change(scope, serving=1)
    tuning_of(application).tuning.change(scope, is_on=True)
    assert find_serving(application, scope) == 0


def test_a_copy_of_a_past_moment_begins_without_a_generation(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    tune(scope)
    name = f"{scope.collection.name}-past"
    past.rebuild_past(application, scope.collection.name, past.now(application), name)
    assert find_serving(application, application.auth.access.scope(name)) == 0
    assert state.rows(application, name, "tuning_generation") == []
    undo.assert_verified(application, name)


def test_a_wing_that_is_cleared_leaves_no_pointer(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    tune(scope)
    assert WING.forget is not None
    with application.database.write() as writer:
        WING.forget(writer)
    assert find_serving(application, scope) == 0


def test_a_deleted_collection_takes_its_generations(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    tune(scope)
    application.corpus.ingest.delete_collection(scope)
    application.maintenance.removal.run(lambda: False)
    with application.database.read() as reader:
        assert tuning_generations.list_all(reader, scope.collection.id) == []
        assert tuning_generations.count_verdicts(reader, scope.collection.id, 1) == 0

"""Generations that a collection borrows: tried on its own verdicts, and withdrawn with those of the lender."""

from collections.abc import Callable

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.services.auth.scope import Scope
from engram.storage.corpus import collections
from engram.storage.maintenance import staged_embeddings
from engram.wings.tuning.core.acceptance import DEFAULT_RULE
from engram.wings.tuning.parts import tuning_of
from engram.wings.tuning.services import derived_tuning
from engram.wings.tuning.services.lending import load_lent
from engram.wings.tuning.services.training_input import load_samples
from engram.wings.tuning.storage.tuning_generations import Loan
from tests.conftest import CURIE
from tests.services.erasure.test_erasure_service import erase
from tests.support import state, undo
from tests.support.encoder import SOME_ENCODER
from tests.support.tuned import finish_jobs, judge_questions
from tests.wings.tuning.conftest import Tune

OTHERS = [("Who was the first lady of chemistry?", "curie"), ("Where do the trams of Warsaw go?", "warsaw")]


@pytest.fixture
def lender(application: Application, curie: str, judged: list[int], tune: Tune) -> Scope:
    """A collection that its own generation 1 serves."""
    scope = application.auth.access.scope(curie)
    tune(scope)
    return scope


@pytest.fixture
def borrower(application: Application, collection: str) -> Scope:
    """A collection with two judged questions and no generation."""
    name = f"{collection}-new"
    state.stage_passages(application, name, *(dict(one) | {"text": f"{one['text']} So it is."} for one in CURIE))
    application.jobs.runner.run_ready()
    judge_questions(application, name, OTHERS)
    return application.auth.access.scope(name)


def borrow(application: Application, borrower: Scope, lender: Scope) -> str:
    """Have a job borrow; the decision in words."""
    job = tuning_of(application).tuning.request(borrower, lender)
    finish_jobs(application)
    result = application.jobs.jobs.job(borrower, job).result
    assert result is not None
    return str(result["reason"])


def find_serving(application: Application, scope: Scope) -> int:
    return tuning_of(application).tuning.load_standing(scope).serving


def test_a_borrowed_generation_serves_and_lists_the_verdicts_that_accepted_it(
    application: Application, lender: Scope, borrower: Scope
) -> None:
    assert borrow(application, borrower, lender).startswith("used: held-out questions ")
    standing = tuning_of(application).tuning.load_standing(borrower)
    (made,) = standing.generations
    assert (standing.serving, made.loan) == (1, Loan(lender.collection.id, 1))
    assert standing.lenders == {1: lender.collection.name}
    assert (made.question_count, made.verdict_count) == (2, 2)
    one, two = (
        state.rows(application, scope.collection.name, "tuning_generation")[0]["adapter"]
        for scope in (lender, borrower)
    )
    assert one == two
    undo.assert_verified(application, borrower.collection.name)


def test_verdicts_on_too_few_needs_accept_nothing(application: Application, lender: Scope, borrower: Scope) -> None:
    job = tuning_of(application).tuning.request(borrower, lender)
    finish_jobs(application, DEFAULT_RULE)
    result = application.jobs.jobs.job(borrower, job).result
    assert result is not None
    assert result["reason"] == "not used: verdicts on 2 needs, of 20 at least"
    assert find_serving(application, borrower) == 0


def revoke(application: Application, lender: Scope, borrower: Scope) -> None:
    (first, *_) = state.rows(application, lender.collection.name, "tuning_verdict")
    application.learning.revocation.revoke(lender, first["event_id"])


def withdraw(application: Application, lender: Scope, borrower: Scope) -> None:
    tuning_of(application).tuning.change(lender, withdrawn=1)


def withdraw_while_it_learns(application: Application, lender: Scope, borrower: Scope) -> None:
    with pytest.MonkeyPatch.context() as patch, application.database.write() as learning:
        patch.setattr(derived_tuning, "BORROWER_SECONDS", 0.0)
        collections.lock_learning(learning, borrower.collection.id, exclusive=False)
        withdraw(application, lender, borrower)
        assert find_serving(application, borrower) == 1
    tuning_of(application).tuning.withdraw_exposed(lambda: False)


def reset(application: Application, lender: Scope, borrower: Scope) -> None:
    application.revocation.learning_reset.reset(lender)


def erase_judge(application: Application, lender: Scope, borrower: Scope) -> None:
    erase(application, lender.collection.name, kind="judge", name="ana")


def revoke_own(application: Application, lender: Scope, borrower: Scope) -> None:
    revoke(application, borrower, lender)


def hide(application: Application, lender: Scope, borrower: Scope) -> None:
    application.corpus.readers.set_of_passage(lender, "vistula", ["user:ana"])
    tuning_of(application).tuning.withdraw_exposed(lambda: False)


def delete(application: Application, lender: Scope, borrower: Scope) -> None:
    application.corpus.ingest.delete_collection(lender)
    tuning_of(application).tuning.withdraw_exposed(lambda: False)


@pytest.mark.parametrize(
    "change", [revoke, erase_judge, withdraw, withdraw_while_it_learns, reset, revoke_own, hide, delete]
)
def test_it_goes_with_what_it_was_borrowed_from(
    application: Application,
    lender: Scope,
    borrower: Scope,
    change: Callable[[Application, Scope, Scope], None],
) -> None:
    borrow(application, borrower, lender)
    assert find_serving(application, borrower) == 1
    change(application, lender, borrower)
    assert find_serving(application, borrower) == 0
    row, *_ = state.rows(application, borrower.collection.name, "tuning_generation")
    assert row["adapter"] is None
    undo.assert_verified(application, borrower.collection.name)


def test_verify_finds_a_generation_that_is_lent_no_more(
    application: Application, lender: Scope, borrower: Scope
) -> None:
    borrow(application, borrower, lender)
    application.corpus.readers.set_of_passage(lender, "vistula", ["user:ana"])
    report = application.revocation.verification.verify(borrower)
    assert [one.reason for one in report.differences] == ["was borrowed, and is lent no more"]


def test_what_is_withdrawn_meanwhile_is_not_borrowed(
    application: Application, lender: Scope, borrower: Scope
) -> None:
    tuning_of(application).tuning.request(borrower, lender)
    withdraw(application, lender, borrower)
    tuning_of(application).tuning.change(lender, is_on=False)
    finish_jobs(application)
    assert tuning_of(application).tuning.load_standing(borrower).generations == []


def test_questions_and_evidence_of_the_lender_are_known(
    application: Application, curie: str, lender: Scope, borrower: Scope
) -> None:
    judge_questions(application, lender.collection.name, [(OTHERS[1][0], "warsaw")])
    with application.database.snapshot() as reader:
        samples = load_samples(reader, borrower.collection)
        lent = load_lent(reader, Loan(lender.collection.id, 1), samples)
        assert lent is not None
        assert lent.known == {one.id for one in samples.questions if one.text == OTHERS[1][0]}
        own = load_samples(reader, lender.collection)
        lent = load_lent(reader, Loan(lender.collection.id, 1), own)
        assert lent is not None
        assert lent.known == {one.id for one in own.questions}


def test_what_cannot_be_borrowed_is_refused(application: Application, lender: Scope, borrower: Scope) -> None:
    request = tuning_of(application).tuning.request
    with pytest.raises(InvalidRequestError, match="its own adapter"):
        request(lender, lender)
    with pytest.raises(InvalidRequestError, match="No generation serves"):
        request(lender, borrower)
    borrow(application, borrower, lender)
    with pytest.raises(InvalidRequestError, match=r"serves .* already"):
        request(borrower, lender)
    with pytest.raises(InvalidRequestError, match="is borrowed itself"):
        request(lender, borrower)
    application.corpus.readers.set_of_passage(lender, "vistula", ["user:ana"])
    with pytest.raises(InvalidRequestError, match="passages with readers"):
        request(borrower, lender)
    with application.database.write() as writer:
        staged_embeddings.enter(writer, lender.collection.id, SOME_ENCODER)
    with pytest.raises(InvalidRequestError, match="different encoders"):
        request(borrower, application.auth.access.scope(lender.collection.name))

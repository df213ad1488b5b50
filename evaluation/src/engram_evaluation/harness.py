"""The system under measurement: the use cases the API calls, driven in this process on one collection."""

import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Protocol

from engram.composition.models import Models
from engram.composition.parts.answer_services import AnswerServices
from engram.composition.parts.auth_services import AuthServices
from engram.composition.parts.corpus_services import CorpusServices
from engram.composition.parts.job_services import JobServices
from engram.composition.parts.learning_services import LearningServices
from engram.composition.parts.retrieval_services import RetrievalServices
from engram.composition.parts.revocation_services import RevocationServices
from engram.composition.wings import WingHolder
from engram.context import tenancy
from engram.context.errors import ConflictError, EngramError
from engram.core.learning.logged_verdict import Expansion
from engram.core.passage_keys.key_text import KeyBuilding
from engram.core.ranking.profiles import ProfileName
from engram.services.auth.scope import Principal, Scope
from engram.services.question.answer import Answer
from engram.services.question.query import HopStopRule, Memory, Query, Strategy
from engram.services.verdict.receipt import Receipt
from engram.services.verdict.verdict import Verdict
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.retrieval_metrics import DEPTH, QuestionResult
from engram_evaluation.verdict_givers import Judge, ShownSentence

LINES_PER_CHUNK = 500
POLL_SECONDS = 0.2

Tick = Callable[[int, int], None]
"""Told how much is done and of how much."""


class IngestFailedError(EngramError):
    """The corpus could not be ingested."""


class EvaluatedServices(WingHolder, Protocol):
    """The use cases that an evaluation drives, by their rooms."""

    @property
    def models(self) -> Models: ...
    @property
    def auth(self) -> AuthServices: ...
    @property
    def corpus(self) -> CorpusServices: ...
    @property
    def retrieval(self) -> RetrievalServices: ...
    @property
    def answers(self) -> AnswerServices: ...
    @property
    def learning(self) -> LearningServices: ...
    @property
    def revocation(self) -> RevocationServices: ...
    @property
    def jobs(self) -> JobServices: ...


@dataclass(frozen=True, slots=True)
class QueryArm:
    """Options that questions are asked with."""

    profile: ProfileName
    memory: Memory
    stop_rule: HopStopRule | None = None
    ungated: bool = False
    strategy: Strategy = "graph"


@dataclass(frozen=True, slots=True)
class Harness:
    """One data set in its own collection."""

    services: EvaluatedServices
    collection: str

    @property
    def scope(self) -> Scope:
        """The collection as it is now."""
        return self.services.auth.access.scope(self.collection)

    def ingest(self, dataset: Dataset, tick: Tick) -> None:
        """Bring the collection to the data set's passages; those it holds already cost a comparison each.

        Raises:
            IngestFailedError: a batch cannot be ingested.
        """
        self._send(dataset, tick)
        if self.scope.collection.passage_count != len(dataset.passages):
            # Passages of an earlier version of the data set are still there.
            self.services.corpus.ingest.delete_collection(self.scope)
            self._send(dataset, tick)

    def rekey(self, building: KeyBuilding, tick: Tick) -> None:
        """Have the base keys made of this part of each passage; costs nothing where they are.

        Raises:
            IngestFailedError: they cannot be made.
        """
        while (scope := self.scope).collection.key_building != building:
            try:
                job_id = self.services.corpus.rekey.request(scope, building)
            except ConflictError as error:
                if "job_id" not in error.extra:  # it has finished since
                    continue
                job_id = uuid.UUID(error.extra["job_id"])  # of a run that was stopped, perhaps to other keys
            self._run(job_id, self.collection, tick)

    def reset(self) -> None:
        """Forget every verdict."""
        self.services.revocation.learning_reset.reset(self.scope)

    def ask(
        self,
        question: Question,
        arm: QueryArm,
        *,
        read: bool = False,
        expansions: Sequence[Expansion] = (),
        depth: int = DEPTH,
    ) -> tuple[Answer, QuestionResult]:
        """Ask one question: the answer, with its passages' sentences if ``read``, and what is to be measured.

        Args:
            depth: passages of the answer.
        """
        query = Query(
            text=question.text,
            scope=self.scope,
            top_k=depth,
            memory=arm.memory,
            profile=arm.profile,
            strategy=arm.strategy,
            stop_rule=arm.stop_rule,
            include=frozenset({"trace", "sentences"} if read else {"trace"}),
            expansions=expansions,
        )
        profile = self.services.retrieval.planner.retrievers.find_profile(arm.profile)
        if arm.ungated:
            profile = replace(profile, policy=replace(profile.policy, gated=False))
        began = time.perf_counter()
        answer = self.services.answers.question.answer(query, profile, explained=False)
        ms = (time.perf_counter() - began) * 1000.0
        ranking = [passage.passage_id for passage in answer.passages]
        if arm.strategy != "graph":
            return answer, QuestionResult(question, ranking, ms=ms)
        # Between hops the model is asked whether the evidence suffices, but not after the last one allowed.
        calls = answer.hops - (answer.stop_reason == "max_hops") if answer.stop_rule == "llm" else 0
        observation = QuestionResult(
            question,
            ranking,
            [sentence.place for sentence in list_shown_sentences(answer) if sentence.selected],
            answer.hops,
            calls,
            ms,
        )
        return answer, observation

    def teach(self, question: Question, arm: QueryArm, judge: Judge) -> tuple[QuestionResult, Receipt | None]:
        """Ask, have it judged, and apply the verdict; what was answered, and what the verdict changed, if any."""
        answer, observation = self.ask(question, arm, read=True)
        verdict = judge(self.scope, answer.query_id, question, list_shown_sentences(answer))
        if verdict is None:
            return observation, None
        return observation, self.give(question, verdict)

    def flood(self, question: Question, arm: QueryArm, judge: Judge, named: Sequence[Principal]) -> None:
        """Ask, and have the same verdict given by each of these."""
        answer, _ = self.ask(question, arm, read=True)
        verdict = judge(self.scope, answer.query_id, question, list_shown_sentences(answer))
        if verdict is None:
            return
        scopes = [replace(verdict.scope, principal=principal) for principal in named]
        events = [
            self.services.learning.verdicts.accept(
                replace(verdict, scope=scope, judge=None), f"evaluate-{uuid.uuid4()}"
            ).event.id
            for scope in scopes
        ]
        applied = self.services.learning.learner.apply(verdict.scope.collection.id, events)
        if applied != len(events):
            raise IngestFailedError(f"Of {len(events)} verdicts on {question.id} {applied} were applied.")

    def give(self, question: Question, verdict: Verdict) -> Receipt:
        """Give a verdict on what a question was answered, and have it applied."""
        receipt = self.services.learning.verdicts.accept(verdict, f"evaluate-{uuid.uuid4()}", wait=True)
        if receipt.event.status != "applied":
            raise IngestFailedError(f"The verdict on {question.id} was not applied: {receipt.event.error}")
        return receipt

    def _send(self, dataset: Dataset, tick: Tick) -> None:
        reception = self.services.corpus.ingest.receive(self.services.auth.access.prepare_opening(self.collection))
        lines = list(enumerate(dataset.passages, start=1))
        for start in range(0, len(lines), LINES_PER_CHUNK):
            reception.add(lines[start : start + LINES_PER_CHUNK], [])
        self._run(reception.finish(), dataset.name, tick)

    def _run(self, job_id: uuid.UUID, name: str, tick: Tick) -> None:
        """Do the collection's jobs until this one is over."""
        scope = self.scope
        with ThreadPoolExecutor(1, thread_name_prefix="jobs") as worker:
            while True:
                running = worker.submit(
                    tenancy.carry(self.services.jobs.runner.run_ready), collection_id=scope.collection.id
                )
                while not wait([running], POLL_SECONDS).done:
                    job = self.services.jobs.jobs.job(scope, job_id)
                    tick(job.received - job.waiting, job.received)
                running.result()
                job = self.services.jobs.jobs.job(scope, job_id)
                tick(job.received - job.waiting, job.received)
                if job.status in {"failed", "cancelled"}:
                    raise IngestFailedError(f"{name}: {job.error or job.status}")
                if job.status == "succeeded":
                    return
                time.sleep(POLL_SECONDS)


def name_collection(dataset: Dataset) -> str:
    """The collection that a data set goes into."""
    return f"evaluate-{dataset.name}"


def delete_collection(services: EvaluatedServices, dataset: Dataset) -> None:
    """Delete a data set's collection with all that a run left in it."""
    services.corpus.ingest.delete_collection(services.auth.access.scope(name_collection(dataset)))


def open_harness(
    services: EvaluatedServices, dataset: Dataset, tick: Tick, building: KeyBuilding = "full"
) -> Harness:
    """The data set in its collection, ``evaluate-NAME``, ingested, its base keys made of ``building``."""
    harness = Harness(services, name_collection(dataset))
    harness.ingest(dataset, tick)
    harness.rekey(building, tick)
    # Figures must not depend on what was asked of the collection before.
    services.corpus.kinds.forget_questions(harness.scope.collection.id)
    return harness


def list_shown_sentences(answer: Answer) -> list[ShownSentence]:
    """Every sentence that a hop selected, in order of selection, then the others of the returned passages."""
    seen: dict[int, ShownSentence] = {}
    for hop in answer.trace.hops if answer.trace else []:
        for sentence in hop.sentences:
            seen.setdefault(
                sentence.sentence_id, ShownSentence(sentence.sentence_id, sentence.passage_id, sentence.text)
            )
    for passage in answer.passages:
        for other in passage.sentences:
            seen.setdefault(
                other.sentence_id, ShownSentence(other.sentence_id, passage.passage_id, other.text, selected=False)
            )
    return list(seen.values())


def texts(dataset: Dataset) -> Sequence[str]:
    """Return the searched text of each passage: title and text, as for the dense key."""
    return [f"{p['title']}. {p['text']}" if p["title"] else p["text"] for p in dataset.passages]

"""Building the graph from staged passages: a batch is planned with no SQL open, then written at once."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from engram.providers.language import Language
from engram.providers.llm import Llm
from engram.services.corpus import document_versions
from engram.services.corpus.batch_planning import BatchPlan, BatchPlanner
from engram.services.corpus.batch_writing import BatchWriter, Replay, StaleBatchError
from engram.services.corpus.document_replacement import DocumentReplacement
from engram.services.corpus.kind_measurement import KindMeasurement
from engram.services.corpus.passage_observer import PassageObserver
from engram.services.corpus.rekey import Rebase
from engram.services.encoders.encoder import Encoder
from engram.services.jobs.work import Work
from engram.storage.corpus import documents, staged_documents, staged_lines
from engram.storage.database import Database, Writer
from engram.storage.jobs.jobs import Job
from engram.telemetry.stages import stage

MAX_REPLANS = 5


class GraphBuilder:
    """Turns staged passages into graph: does ingest jobs."""

    def __init__(
        self,
        database: Database,
        encoder: Encoder,
        language: Language,
        kinds: KindMeasurement,
        *,
        batch_size: int,
        observers: Sequence[PassageObserver],
        time_llm: Llm | None = None,
        replay_sentences: Replay,
        rebase: Rebase | None = None,
    ) -> None:
        self._database = database
        self._kinds = kinds
        self._replacement = DocumentReplacement(database, observers)
        self._planner = BatchPlanner(database, encoder, language, batch_size=batch_size, time_llm=time_llm)
        self._writer = BatchWriter(rebase, replay_sentences, observers)

    def run(self, work: Work) -> None:
        """Write batch after batch, the encoder working on the next one while Postgres takes this one.

        A job that ends before its end keeps what it has ingested.

        Raises:
            EmbeddingSpaceMismatchError: the collection's vectors are of another encoder.
        """
        job = work.job
        self._replacement.prepare(job, work.must_stop)
        self._kinds.measure_waiting(job)
        with ThreadPoolExecutor(1, thread_name_prefix="plan") as ahead:
            planned = ahead.submit(copy_context().run, self._planner.plan, job, 0)
            while not work.must_stop():
                plan = planned.result()
                if plan is None:
                    self._kinds.measure(job.collection_id)
                    with self._database.write() as writer:
                        document_versions.read_written(writer, job)
                        documents.end_writing(writer, job.collection_id, job.id)
                        work.finish(writer)
                    return
                if work.should_yield():  # before the next batch is begun, which would be for nothing
                    self._write(work, plan)
                    return
                planned = ahead.submit(copy_context().run, self._planner.plan, job, plan.lines[-1])
                self._write(work, plan)

    def let_go(self, writer: Writer, job: Job) -> None:
        """Forget the documents and lines that it did not come to."""
        staged_documents.take(writer, job.collection_id, job.id)
        staged_lines.let_go(writer, job.collection_id, job.id)

    def _write(self, work: Work, plan: BatchPlan) -> None:
        """Write a batch, planned anew as often as the graph changed meanwhile."""
        current: BatchPlan | None = plan
        for _ in range(MAX_REPLANS):
            if current is None:
                return
            try:
                with stage("write"), self._database.write() as writer:
                    self._writer.write(writer, work, current)
            except StaleBatchError:
                current = self._planner.plan(work.job, plan.lines[0] - 1, limit=len(plan.lines))
            else:
                return
        raise StaleBatchError(f"the graph changed under {MAX_REPLANS} plans in a row")

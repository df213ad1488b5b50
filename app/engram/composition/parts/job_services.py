"""Jobs: long work, and the services that do it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.parts.corpus_services import CorpusServices
from engram.composition.parts.learning_services import LearningServices
from engram.composition.parts.revocation_services import RevocationServices
from engram.config.settings import Settings
from engram.services.jobs.job_kinds import ERASURE, INGEST, REEMBED, REKEY, REVOCATION
from engram.services.jobs.job_runner import Runner
from engram.services.jobs.job_service import JobsService
from engram.services.jobs.work import JobHandler, JobKind
from engram.storage.database import Database

LEASE_SECONDS = 15.0
"""How long after a worker was killed, hangs or lost its machine another one takes its job over."""


@dataclass(frozen=True, eq=False)
class JobServices:
    """Services of jobs. Each is made when first used.

    Attributes:
        list_further: lists what does the jobs of wings, by kind.
    """

    settings: Settings
    database: Database
    corpus: CorpusServices
    learning: LearningServices
    revocation: RevocationServices
    list_further: Callable[[], Mapping[JobKind, JobHandler]]

    @locked_property
    def handlers(self) -> Mapping[JobKind, JobHandler]:
        """Job handlers by kind."""
        return {
            INGEST: self.corpus.index,
            REKEY: self.corpus.rekey,
            REVOCATION: self.learning.revocation,
            ERASURE: self.revocation.erasure,
            REEMBED: self.corpus.reembed,
            **self.list_further(),
        }

    @locked_property
    def runner(self) -> Runner:
        """Job runner."""
        return Runner(
            self.database,
            self.handlers,
            lease_seconds=LEASE_SECONDS,
            afterwards=lambda should_stop, collection_id: self.corpus.names.run(
                should_stop, collection_id=collection_id
            ),
        )

    @locked_property
    def jobs(self) -> JobsService:
        """Status and cancellation of jobs."""
        return JobsService(self.database, self.handlers)

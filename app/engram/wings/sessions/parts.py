"""Sessions: questions of several rounds."""

from collections.abc import Callable
from dataclasses import dataclass, field

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.parts.answer_services import AnswerServices
from engram.composition.parts.auth_services import AuthServices
from engram.composition.parts.learning_services import LearningServices
from engram.composition.wings import WingHolder
from engram.config.settings import Settings
from engram.providers.reranker.cross_encoder import CrossEncoder
from engram.services.jobs.job_runner import Runner
from engram.storage.database import Database
from engram.wings.sessions.services.auto_planner import AutoPlanner
from engram.wings.sessions.services.planner import Finish, SessionPlanner
from engram.wings.sessions.services.pool_classifier import PoolClassifier
from engram.wings.sessions.services.pool_planner import PoolPlanner
from engram.wings.sessions.services.rfm_rag_planner import RfmRagPlanner
from engram.wings.sessions.services.round_judge import RoundJudge
from engram.wings.sessions.services.session_feedback import Teacher
from engram.wings.sessions.services.session_runner import SessionRunner
from engram.wings.sessions.services.session_service import SessionService
from engram.wings.sessions.services.session_trajectories import TrajectoryService
from engram.wings.sessions.services.socratic_planner import SocraticPlanner
from engram.wings.sessions.services.stop_weights import Relevance, StopWeights, load_stop
from engram.wings.sessions.services.tree_planner import TreePlanner


@dataclass(eq=False)
class SessionServices:
    """Services of sessions. Each is made when first used, or assigned in place of that.

    Attributes:
        job_runner: gives the runner of jobs. A session is a job, whose handler is ``session_runner``.
    """

    settings: Settings
    database: Database
    models: Models
    auth: AuthServices
    answers: AnswerServices
    learning: LearningServices
    job_runner: Callable[[], Runner]
    _further: list[SessionPlanner] = field(default_factory=list, init=False)
    _finishers: dict[str, Finish] = field(default_factory=dict, init=False)

    def add_planner(self, planner: SessionPlanner, finish: Finish) -> None:
        """Add a planner of another wing, before the first session."""
        self._further.append(planner)
        self._finishers[planner.name] = finish

    @locked_property
    def session_planners(self) -> dict[str, SessionPlanner]:
        """Session planners by name."""
        pool = PoolPlanner()
        planners: list[SessionPlanner] = [
            pool,
            SocraticPlanner(pool),
            TreePlanner(pool),
            RfmRagPlanner(),
            *self._further,
        ]
        by_name = {planner.name: planner for planner in planners}
        return by_name | {AutoPlanner.name: AutoPlanner(pool, by_name)}

    @locked_property
    def teacher(self) -> Teacher:
        """Distribution of session verdicts to rounds."""
        return Teacher(self.database, self.learning.verdicts)

    @locked_property
    def session_runner(self) -> SessionRunner:
        """Runner of session rounds."""
        return SessionRunner(
            self.database,
            self.answers.question,
            self.models.language,
            self.models.llm,
            self.session_planners,
            self.teacher,
            self.auth.quotas,
            self._finishers,
            RoundJudge(self.database, lambda: self.classifier, lambda: self.stop_weights),
            self.learning.judge_exam,
        )

    @locked_property
    def classifier(self) -> PoolClassifier:
        """Published classifier of sufficient evidence pools."""
        return PoolClassifier(self.models.language, self.models.encoder, self.relevance, self.stop_weights)

    @locked_property
    def stop_weights(self) -> StopWeights:
        """Weights of the classifier."""
        return load_stop(self.settings.sessions_stop_weights)

    @locked_property
    def relevance(self) -> Relevance | None:
        """Configured cross-encoder, or None."""
        folder = self.settings.sessions_cross_encoder
        return None if folder is None else CrossEncoder(folder)

    @locked_property
    def sessions(self) -> SessionService:
        """Start and status of sessions."""
        models = self.models
        return SessionService(self.database, models.encoder, self.job_runner(), self.session_planners, models.llm)

    @locked_property
    def trajectories(self) -> TrajectoryService:
        """Sessions as trajectories."""
        return TrajectoryService(self.database)


def sessions_of(application: WingHolder) -> SessionServices:
    """Return the services of sessions of an application.

    Raises:
        LookupError: the wing is off.
    """
    return application.wing(SessionServices)

"""Sessions: questions of several rounds."""

from collections.abc import Callable
from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.parts.answer_services import AnswerServices
from engram.composition.parts.auth_services import AuthServices
from engram.composition.parts.fact_services import FactServices
from engram.composition.parts.learning_services import LearningServices
from engram.services.jobs.job_runner import Runner
from engram.services.sessions.agent_planner import AgentPlanner
from engram.services.sessions.auto_planner import AutoPlanner
from engram.services.sessions.graph_publication import Publisher
from engram.services.sessions.planner import SessionPlanner
from engram.services.sessions.pool_classifier import PoolClassifier
from engram.services.sessions.pool_planner import PoolPlanner
from engram.services.sessions.rfm_rag_planner import RfmRagPlanner
from engram.services.sessions.round_judge import RoundJudge
from engram.services.sessions.session_feedback import Teacher
from engram.services.sessions.session_runner import SessionRunner
from engram.services.sessions.session_service import SessionService
from engram.services.sessions.session_trajectories import TrajectoryService
from engram.services.sessions.socratic_planner import SocraticPlanner
from engram.services.sessions.tree_planner import TreePlanner
from engram.storage.database import Database


@dataclass(frozen=True, eq=False)
class SessionServices:
    """Services of sessions. Each is made when first used.

    Attributes:
        job_runner: gives the runner of jobs. A session is a job, whose handler is ``session_runner``.
    """

    database: Database
    models: Models
    auth: AuthServices
    answers: AnswerServices
    facts: FactServices
    learning: LearningServices
    job_runner: Callable[[], Runner]

    @locked_property
    def session_planners(self) -> dict[str, SessionPlanner]:
        """Session planners by name."""
        pool = PoolPlanner()
        planners: list[SessionPlanner] = [
            pool,
            SocraticPlanner(pool),
            TreePlanner(pool),
            AgentPlanner(),
            RfmRagPlanner(),
        ]
        by_name = {planner.name: planner for planner in planners}
        return by_name | {AutoPlanner.name: AutoPlanner(pool, by_name)}

    @locked_property
    def teacher(self) -> Teacher:
        """Distribution of session verdicts to rounds."""
        return Teacher(self.database, self.learning.feedback)

    @locked_property
    def session_runner(self) -> SessionRunner:
        """Runner of session rounds."""
        return SessionRunner(
            self.database,
            self.answers.serving,
            self.models.language,
            self.models.llm,
            self.session_planners,
            self.teacher,
            self.auth.quotas,
            Publisher(self.database, self.facts.facts),
            RoundJudge(self.database, lambda: self.classifier, lambda: self.models.priors),
            self.learning.exam,
        )

    @locked_property
    def classifier(self) -> PoolClassifier:
        """Published classifier of sufficient evidence pools."""
        models = self.models
        return PoolClassifier(models.language, models.encoder, models.relevance, models.stop_weights)

    @locked_property
    def sessions(self) -> SessionService:
        """Start and status of sessions."""
        models = self.models
        return SessionService(self.database, models.encoder, self.job_runner(), self.session_planners, models.llm)

    @locked_property
    def trajectories(self) -> TrajectoryService:
        """Sessions as trajectories."""
        return TrajectoryService(self.database)

"""Learning: verdicts enter the feedback log and are applied."""

from contextlib import ExitStack
from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.parts.passage_key_services import PassageKeyServices
from engram.composition.parts.retrieval_services import RetrievalServices
from engram.config.settings import Settings
from engram.services.learning.feedback_service import FeedbackService
from engram.services.learning.judge_exam import ModelExam
from engram.services.learning.judge_noise import JudgeNoise
from engram.services.learning.judge_settings import JudgesService
from engram.services.learning.llm_judge import JudgeService
from engram.services.learning.verdict_intake import Intake
from engram.services.learning.verdict_learning import LearningService
from engram.services.learning.verdict_listing import VerdictListing
from engram.services.learning.verdict_pipeline import VerdictPipeline
from engram.storage.database import Database
from engram.storage.wake_stream import WakeStream

APPLY_ATTEMPTS = 5
"""Failed applications after which a verdict is parked."""
JUDGE_NAME = "llm-judge"
"""Name of the judge that verdicts of the language model have."""
JUDGE_INTERVAL_SECONDS = 10.0
"""How often `engram judge` looks for answers that nobody has judged."""
JUDGE_WINDOW_HOURS = 24.0
"""Older answers are not judged any more."""


@dataclass(frozen=True, eq=False)
class LearningServices:
    """Services that take verdicts in and learn from them. Each is made when first used.

    Attributes:
        closing: ends what services of this part have opened.
    """

    settings: Settings
    database: Database
    stream: WakeStream
    models: Models
    passage_keys: PassageKeyServices
    retrieval: RetrievalServices
    closing: ExitStack

    @locked_property
    def learn(self) -> LearningService:
        """Application of verdicts."""
        return LearningService(self.database, self.pipeline, max_attempts=APPLY_ATTEMPTS)

    @locked_property
    def pipeline(self) -> VerdictPipeline:
        """Steps of learning."""
        return VerdictPipeline(
            self.database,
            JudgeNoise(self.models.noise, self.retrieval.question_spreads),
            self.models.learning_rule,
            self.models.weight_teaching,
            self.passage_keys.attribution,
            self.passage_keys.evolve,
        )

    @locked_property
    def intake(self) -> Intake:
        """Entry of verdicts into the feedback log."""
        intake = Intake(self.database, self.stream, self.models.encoder)
        self.closing.callback(intake.close)
        return intake

    @locked_property
    def feedback(self) -> FeedbackService:
        """Intake and status of verdicts."""
        return FeedbackService(self.database, self.stream, self.intake, self.learn)

    @locked_property
    def verdict_listing(self) -> VerdictListing:
        """Lists of verdicts."""
        return VerdictListing(self.database)

    @locked_property
    def judges(self) -> JudgesService:
        """Settings of single judges."""
        return JudgesService(self.database, self.models.noise)

    @locked_property
    def exam(self) -> ModelExam:
        """Exam that the model passes before it teaches."""
        return ModelExam(self.models.llm, required=self.settings.judge_exam)

    @locked_property
    def judge(self) -> JudgeService:
        """LLM judge of episodes."""
        return JudgeService(
            self.database,
            self.feedback,
            self.models.llm,
            name=JUDGE_NAME,
            interval_seconds=JUDGE_INTERVAL_SECONDS,
            window_hours=JUDGE_WINDOW_HOURS,
            exam=self.exam,
        )

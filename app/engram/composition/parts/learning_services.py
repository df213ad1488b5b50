"""Learning: verdicts enter the log, are applied, and are taken back."""

from contextlib import ExitStack
from dataclasses import dataclass

from engram.composition.hooks import Hooks
from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.parts.retrieval_services import RetrievalServices
from engram.config.settings import Settings
from engram.services.effects.question_memory_effect import QuestionMemoryEffect
from engram.services.effects.weight_effect import WeightEffect
from engram.services.judges.judge_exam import ModelExam
from engram.services.judges.judge_noise import JudgeNoise
from engram.services.judges.judge_settings import JudgeSettingsService
from engram.services.judges.llm_judge import EpisodeJudge
from engram.services.judges.parked_verdicts import ParkedVerdicts
from engram.services.judges.verdict_listing import VerdictListing
from engram.services.revocation.revocation_service import RevocationService
from engram.services.verdict.learn import VerdictLearner
from engram.services.verdict.log import VerdictLog
from engram.services.verdict.verdict_service import VerdictService
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
    """Services that take verdicts in, learn from them and take them back. Each is made when first used.

    Attributes:
        closing: ends what services of this part have opened.
    """

    settings: Settings
    database: Database
    stream: WakeStream
    models: Models
    retrieval: RetrievalServices
    hooks: Hooks
    closing: ExitStack

    @locked_property
    def verdicts(self) -> VerdictService:
        """Verdicts from the door to their receipts."""
        return VerdictService(
            self.database,
            self.log,
            self.learner,
            self.revocation.replace_ratings,
            None if self.hooks.key_explainer is None else self.hooks.key_explainer.find_effect,
        )

    @locked_property
    def log(self) -> VerdictLog:
        """Log of verdicts."""
        log = VerdictLog(self.database, self.stream, self.models.encoder)
        self.closing.callback(log.close)
        return log

    @locked_property
    def learner(self) -> VerdictLearner:
        """Application of verdicts."""
        return VerdictLearner(
            self.database,
            self.models.encoder,
            JudgeNoise(self.models.noise, self.retrieval.question_spreads).choose,
            [
                lambda *_: QuestionMemoryEffect(self.models.learning_rule),
                *self.hooks.verdict_effects,
                lambda *_: WeightEffect(self.models.weight_priors),
            ],
            APPLY_ATTEMPTS,
        )

    @locked_property
    def revocation(self) -> RevocationService:
        """Revocation of verdicts."""
        return RevocationService(self.database, self.hooks.derived_states)

    @locked_property
    def verdict_listing(self) -> VerdictListing:
        """Lists of verdicts."""
        return VerdictListing(self.database)

    @locked_property
    def parked(self) -> ParkedVerdicts:
        """Verdicts that could not be applied."""
        return ParkedVerdicts(self.database, self.stream)

    @locked_property
    def judges(self) -> JudgeSettingsService:
        """Settings of single judges."""
        return JudgeSettingsService(self.database, self.models.noise)

    @locked_property
    def judge_exam(self) -> ModelExam:
        """Exam that the model passes before it teaches."""
        return ModelExam(self.models.llm, required=self.settings.judge_exam)

    @locked_property
    def llm_judge(self) -> EpisodeJudge:
        """LLM judge of episodes."""
        return EpisodeJudge(
            self.database,
            self.verdicts,
            self.models.llm,
            name=JUDGE_NAME,
            interval_seconds=JUDGE_INTERVAL_SECONDS,
            window_hours=JUDGE_WINDOW_HOURS,
            exam=self.judge_exam,
        )

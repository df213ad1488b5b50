"""Services of the wing."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.parts.retrieval_services import RetrievalServices
from engram.composition.wings import WingHolder
from engram.storage.database import Database
from engram.wings.why.services.gaps import GapService
from engram.wings.why.services.learning_overview import LearningOverviewService
from engram.wings.why.services.sentence_explanations import ExplanationService
from engram.wings.why.services.verdict_influence import Influences


@dataclass(frozen=True, eq=False)
class WhyServices:
    """Services that explain answers and learned state. Each is made when first used."""

    database: Database
    models: Models
    retrieval: RetrievalServices

    @locked_property
    def influences(self) -> Influences:
        """Verdicts behind answers."""
        return Influences(self.models.priors, self.retrieval.question_spreads, self.retrieval.hooks.key_explainer)

    @locked_property
    def explain(self) -> ExplanationService:
        """Explanations of sentences."""
        return ExplanationService(self.database, self.models.encoder)

    @locked_property
    def gaps(self) -> GapService:
        """Needs that were not met."""
        return GapService(self.database, self.models, self.retrieval.question_spreads)

    @locked_property
    def learned(self) -> LearningOverviewService:
        """Overview of learned state."""
        return LearningOverviewService(self.database)


def why_of(application: WingHolder) -> WhyServices:
    """Return the services of explanations of an application.

    Raises:
        LookupError: the wing is off.
    """
    return application.wing(WhyServices)

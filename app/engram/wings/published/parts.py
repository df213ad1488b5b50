"""Services of the wing."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.wings import WingHolder
from engram.services.question.caches import VisibleLanguages
from engram.storage.database import Database
from engram.wings.published.core.evolution import KeyRules
from engram.wings.published.core.memory_moves import MemoryRule, move_along_questions
from engram.wings.published.services.attribution import Attribution, KeyLearning
from engram.wings.published.services.catch_up import CatchUpService
from engram.wings.published.services.expansion_validation import GATE_TOP_K, ExpansionValidation
from engram.wings.published.services.key_evolution import KeyEvolutionService
from engram.wings.published.services.key_view import KeyViewService
from engram.wings.published.services.query_expansion import ExpansionService

KEY_RULES = KeyRules(strength=0.7, term_strength=0.25, units=4, capacity=16)
WAITING_KEY_EVENTS = 64
"""Validated events that may wait; then passage keys evolve, saturated or not."""


@dataclass(eq=False)
class PublishedServices:
    """Services that widen questions, move sentence memories and passage keys, and show these.

    Each is made when first used. Assign a constant before its first use to replace it.
    """

    database: Database
    models: Models
    languages: VisibleLanguages

    @locked_property
    def memory_rule(self) -> MemoryRule:
        """Rule by which verdicts move sentence memories."""
        return move_along_questions

    @locked_property
    def key_learning(self) -> KeyLearning:
        """Constants by which verdicts move passage keys."""
        return KeyLearning(KEY_RULES, batch_events=8, patience=3, margin=0.1, most_waiting=WAITING_KEY_EVENTS)

    @locked_property
    def expansion_validation(self) -> ExpansionValidation:
        """Validation of the expansions that verdicts bring."""
        return ExpansionValidation(GATE_TOP_K)

    @locked_property
    def attribution(self) -> Attribution:
        """Credit of expansion units by verdicts."""
        models = self.models
        return Attribution(
            self.database, models.encoder, models.limits, self.key_learning, self.expansion_validation
        )

    @locked_property
    def evolve(self) -> KeyEvolutionService:
        """Evolution of passage keys."""
        return KeyEvolutionService(self.database, self.key_learning.rules)

    @locked_property
    def catch_up(self) -> CatchUpService:
        """Learning of verdicts that came while their collection did not learn."""
        return CatchUpService(self.database, self.attribution)

    def sweep(self) -> None:
        """Learn from verdicts of collections that learn again, and evolve what is due."""
        self.catch_up.run()
        self.evolve.run_due()

    @locked_property
    def key_view(self) -> KeyViewService:
        """Views of passage keys."""
        return KeyViewService(self.database, self.key_learning.rules)

    @locked_property
    def expand(self) -> ExpansionService:
        """Expansion of questions."""
        models = self.models
        return ExpansionService(self.database, self.languages, models.encoder, models.limits, models.llm)


def published_of(application: WingHolder) -> PublishedServices:
    """Return the services of passage keys of an application.

    Raises:
        LookupError: the wing is off.
    """
    return application.wing(PublishedServices)

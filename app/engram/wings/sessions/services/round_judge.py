"""Whether a session's pool is enough after a round: by the published classifier, and by our own."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from engram.core.ranking import sufficiency
from engram.core.ranking.weight_beliefs import Floats
from engram.services.auth.scope import Scope
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database
from engram.wings.sessions.core import round_sufficiency
from engram.wings.sessions.core.feedback_stop import PoolClassification
from engram.wings.sessions.core.round_sufficiency import ROUND_FEATURES
from engram.wings.sessions.core.session import PoolSentence, StopReason
from engram.wings.sessions.services.planner import SessionStep
from engram.wings.sessions.services.pool_classifier import PoolClassifier
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.stop_weights import StopWeights
from engram.wings.sessions.storage import session_pools


class RoundJudge:
    """Tells after each round whether the pool suffices."""

    def __init__(
        self, database: Database, classifier: Callable[[], PoolClassifier], load_weights: Callable[[], StopWeights]
    ) -> None:
        """Keep what rounds are judged with.

        Args:
            classifier, load_weights: called when first needed, since the classifier's weights may not go with the
                cross-encoder.
        """
        self._database = database
        self._classifier = classifier
        self._load_weights = load_weights

    def judge_step(self, scope: Scope, state: SessionState, step: SessionStep) -> SessionStep:
        """The step with what is said of the pool after it, stopped where the session's rule goes by that.

        A cross-encoder is asked only where the rule needs it: it reads the pool anew after each round.
        """
        rule = state.request.stop
        if self._classifier().reads and rule not in ("published", "sufficiency"):
            return step
        pool = [*state.pool, *step.sentences]
        classification = self._classify(scope.collection, state.question, pool)
        step = replace(step, said={**step.said, "published": asdict(classification)})
        weights = self._load_weights().rounds
        if step.queries and weights is not None:
            details = {**step.said, "suffices": self._suffices(state, step, classification, weights)}
            step = replace(step, said=details)
        if rule == "published":
            return _stop_if_sufficient(state, step, classification.probability, "sufficient")
        # The first round is the own question's, of whose first five more is known than of the pool.
        later = rule == "sufficiency" and bool(state.rounds) and "suffices" in step.said
        return (
            _stop_if_sufficient(state, step, step.said["suffices"]["probability"], "sufficiency") if later else step
        )

    def _classify(self, collection: Collection, question: str, pool: Sequence[PoolSentence]) -> PoolClassification:
        """Classify the pool, with cosines of the sentences' stored vectors."""
        classifier = self._classifier()
        cosine = None
        if pool and not classifier.reads:
            vector = classifier.embed_question(collection, question)
            with self._database.read() as reader:
                cosine = session_pools.relevance(reader, collection, [one.sentence_id for one in pool], vector)
        return classifier.classify(collection, question, [one.text for one in pool], cosine)

    def _suffices(
        self, state: SessionState, step: SessionStep, classification: PoolClassification, weights: Floats
    ) -> dict[str, Any]:
        own = state.sufficiency if step.sufficiency is None else step.sufficiency
        covered = state.covered if step.covered is None else step.covered
        features = round_sufficiency.features(classification.entities, classification.relevance, own, covered)
        return {
            "probability": sufficiency.probability(features, weights),
            "features": {
                name: {"value": value, "weight": weight}
                for name, value, weight in zip(ROUND_FEATURES, features.tolist(), weights.tolist(), strict=True)
            },
        }


def _stop_if_sufficient(
    state: SessionState, step: SessionStep, probability: float, reason: StopReason
) -> SessionStep:
    suffices = step.stop is None and probability >= state.request.at_least
    return replace(step, stop=reason) if suffices else step

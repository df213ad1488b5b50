"""Whether a session's pool is enough after a round: by the published classifier, and by what verdicts taught."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from engram.core.filter.logged_verdict import JudgedRound
from engram.core.ranking import sufficiency
from engram.core.ranking.learned_means import compute_mean
from engram.core.ranking.weight_beliefs import PriorIdentity, WeightBelief
from engram.providers.ranking_prior import RankingPriors
from engram.services.auth.scope import Scope
from engram.services.question.pipeline import Explainer
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database
from engram.storage.learning import learned_weights
from engram.wings.sessions.core import round_sufficiency
from engram.wings.sessions.core.feedback_stop import PoolClassification
from engram.wings.sessions.core.round_sufficiency import ROUND_FEATURES
from engram.wings.sessions.core.session import PoolSentence, Round, StopReason
from engram.wings.sessions.services.planner import SessionStep
from engram.wings.sessions.services.pool_classifier import PoolClassifier
from engram.wings.sessions.services.round_model import ROUND
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.storage import session_pools

CAUSES = 5
"""Verdicts that are named behind a probability."""


class RoundJudge:
    """Tells after each round whether the pool suffices."""

    def __init__(
        self,
        database: Database,
        classifier: Callable[[], PoolClassifier],
        priors: Callable[[], RankingPriors],
        explainer: Explainer | None,
    ) -> None:
        """Keep what rounds are judged with.

        Args:
            classifier, priors: made when first needed, since the classifier's weights may not go with the
                cross-encoder.
            explainer: names the verdicts behind a probability; without it none are named.
        """
        self._database = database
        self._explainer = explainer
        self._classifier = classifier
        self._priors = priors

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
        if step.queries and self._find_prior(scope.collection) is not None:
            step = replace(
                step, said={**step.said, "suffices": self._suffices(scope, state, step, classification, pool)}
            )
        if rule == "published":
            return _stop_if_sufficient(state, step, classification.probability, "sufficient")
        # The first round is the own question's, of whose first five more is known than of the pool.
        later = rule == "sufficiency" and bool(state.rounds) and "suffices" in step.said
        return (
            _stop_if_sufficient(state, step, step.said["suffices"]["probability"], "sufficiency") if later else step
        )

    def _find_prior(self, collection: Collection) -> tuple[PriorIdentity, WeightBelief] | None:
        return self._priors().select_kind(collection.corpus_kind).find_further(ROUND)

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
        self,
        scope: Scope,
        state: SessionState,
        step: SessionStep,
        classification: PoolClassification,
        pool: Sequence[PoolSentence],
    ) -> dict[str, Any]:
        prior = self._find_prior(scope.collection)
        assert prior is not None  # noqa: S101 - the caller saw to it
        identity, began = prior
        own = state.sufficiency if step.sufficiency is None else step.sufficiency
        covered = state.covered if step.covered is None else step.covered
        features = round_sufficiency.features(classification.entities, classification.relevance, own, covered)
        weights, events, influences, cut = began.mean, 0, [], False
        if any(query.remembers for query in step.queries):
            with self._database.snapshot() as reader:
                learned = learned_weights.find(reader, scope.collection.id, identity)
                if learned is not None:
                    weights, events = compute_mean(identity.model, began, learned.evidence), learned.events
                if self._explainer is not None:
                    moved, cut = self._explainer.find_strongest_verdicts(
                        reader, scope.collection.id, prior, features, CAUSES
                    )
                    influences = [{"event_id": event, "probability": by} for event, by in moved.items()]
        return {
            "probability": sufficiency.probability(features, weights),
            "features": {
                name: {"value": value, "weight": weight}
                for name, value, weight in zip(ROUND_FEATURES, features.tolist(), weights.tolist(), strict=True)
            },
            "teaches": _teaches(state, step, pool),
            "events": events,
            "influences": influences,
            "influences_cut": cut,
        }


def _stop_if_sufficient(
    state: SessionState, step: SessionStep, probability: float, reason: StopReason
) -> SessionStep:
    suffices = step.stop is None and probability >= state.request.at_least
    return replace(step, stop=reason) if suffices else step


def _teaches(state: SessionState, step: SessionStep, pool: Sequence[PoolSentence]) -> bool:
    """Whether the pool is the work of retrieval alone.

    Where recall or chance had a say in what was found, or the caller brought some of it, the pool has evidence
    that its features know nothing of, as of a question that was judged a hundred times.
    """
    before = all(_sufficiency_details(one).get("teaches", False) for one in state.rounds if one.episodes)
    brought = any(one.query is None for one in pool)
    return before and not brought and all(query.alone for query in step.queries)


def _sufficiency_details(session_round: Round) -> Mapping[str, Any]:
    details: Mapping[str, Any] = session_round.said.get("suffices", {})
    return details


def list_judged_rounds(state: SessionState) -> list[JudgedRound]:
    """The session's rounds as a verdict on it goes by them; nothing of one without any that teaches."""
    passages_by_round: dict[int, list[int]] = {}
    pool_ids = set[int]()
    for sentence in state.pool:
        if sentence.passage_id not in pool_ids:
            pool_ids.add(sentence.passage_id)
            passages_by_round.setdefault(sentence.round, []).append(sentence.passage_id)
    judged = [JudgedRound(_features(one), tuple(passages_by_round.get(one.number, ()))) for one in state.rounds]
    return judged if any(one.features for one in judged) else []


def _features(session_round: Round) -> tuple[float, ...]:
    details = _sufficiency_details(session_round)
    features = details.get("features", {})
    if not details.get("teaches") or set(features) != set(ROUND_FEATURES):
        return ()
    return tuple(float(features[name]["value"]) for name in ROUND_FEATURES)

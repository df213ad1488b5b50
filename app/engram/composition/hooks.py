"""Hooks: what wings add to services of the core."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engram.services.answers.key_explainer import KeyExplainer
from engram.services.corpus.collection_settings import CompleteSetting
from engram.services.corpus.passage_observer import PassageObserver
from engram.services.question.pipeline import Explainer
from engram.services.question.plan import QuestionEncoder
from engram.services.question.retriever import Retrievers
from engram.services.question.shown import QuestionRule
from engram.services.revocation.derived_state import DerivedState
from engram.services.verdict.learn import PrepareEffect


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Additions to services, in the order of the wings.

    Attributes:
        question_rules: applied one after another.
        collection_settings: name -> function that completes a value of the setting; None where its wing is off.
        passage_observers: called one after another when passages are written or removed.
        derived_states: copied, verified, cleared and retired one after another.
        verdict_effects: take part in the transactions of verdicts, after the question memory and before weights.
        explainer: finds the verdicts behind answers.
        key_explainer: explains evolved passage keys.
        question_encoder: embeds questions for passages as verdicts taught.
        retrievers: retrieve by profiles of their own.
    """

    question_rules: Sequence[QuestionRule] = ()
    collection_settings: Mapping[str, CompleteSetting | None] = field(default_factory=dict)
    passage_observers: Sequence[PassageObserver] = ()
    derived_states: Sequence[DerivedState] = ()
    verdict_effects: Sequence[PrepareEffect] = ()
    explainer: Explainer | None = None
    key_explainer: KeyExplainer | None = None
    question_encoder: QuestionEncoder | None = None
    retrievers: Retrievers = field(default_factory=Retrievers)

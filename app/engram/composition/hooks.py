"""Hooks: what the wings that are on add to services of the core."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engram.services.corpus.collection_settings import CompleteSetting
from engram.services.retrieval.question_rule import QuestionRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Additions to services, in the order of the wings' names.

    Attributes:
        question_rules: applied one after another.
        collection_settings: name -> what completes a value of the setting.
    """

    question_rules: Sequence[QuestionRule] = ()
    collection_settings: Mapping[str, CompleteSetting] = field(default_factory=dict)

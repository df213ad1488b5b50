"""Composition of passage keys: credits of expansion units, and the evolved keys of the best."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from engram.core.learning.states import Vector
from engram.wings.published.core import evolution as core
from engram.wings.published.core.evolution import KeyRules
from engram.wings.published.storage.evolved_keys import Base, EvolvedKey
from engram.wings.published.storage.key_credits import Credit, CreditPair, ScoredUnit


def credits(pairs: Sequence[CreditPair], bases: Mapping[int, Vector], units: Mapping[int, Vector]) -> list[Credit]:
    """Compute the credits of these pairs, by event, passage and unit, from base keys (d,) and units (d,)."""
    credit_rows = []
    for (event, passage), group in groupby(pairs, key=lambda pair: (pair.event_id, pair.passage_id)):
        those = list(group)
        added = np.stack([units[pair.unit_id] for pair in those])
        # Of one event, so of one question and strength.
        gain = core.gains(those[0].question, bases[passage][None, :], added, those[0].strength)
        weight = core.attribution(gain)
        credit_rows += [
            Credit(event, passage, pair.unit_id, float(gain[0, at]), float(weight[0, at]))
            for at, pair in enumerate(those)
        ]
    return credit_rows


def compose_keys(
    standing: Sequence[ScoredUnit],
    bases: Mapping[int, Base],
    vectors: Mapping[int, Vector],
    terms: Mapping[int, Mapping[str, float]],
    rules: KeyRules,
) -> list[EvolvedKey]:
    """The keys of passages that units stand with, by passage.

    Args:
        standing: the passages' best units, by passage, best first.
        bases: passage -> base keys.
        vectors, terms: unit -> embedding (d,) and term frequencies.
    """
    composed = []
    for passage, group in groupby(standing, key=lambda scored: scored.passage_id):
        best = list(group)
        scores = [scored.score for scored in best]
        base = bases[passage]
        added = np.stack([vectors[scored.unit_id] for scored in best])
        composed.append(
            EvolvedKey(
                passage_id=passage,
                generation=best[0].generation,
                vector=core.compose(base.vector, added, np.array(scores), rules.strength),
                units=[scored.unit_id for scored in best],
                scores=scores,
                increments=core.compose_terms(
                    base.length, [terms[scored.unit_id] for scored in best], scores, rules.term_strength
                ),
            )
        )
    return composed

"""Coverage of a question's triples by an evidence pool, and the gap to fill next (RFM-RAG).

The paper checks whether the pool covers the entities of the question's triples (Entity, Relation, <X>), and asks
for the missing one if the coverage is below a threshold. It defines neither. Here the parts of a question are:

- each name at the end of a triple, covered once a sentence of the pool has it;
- each unknown on the way to the answer, covered once it is bound to a value;
- each triple that asks for the answer, covered once a sentence about its known end has half of its words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engram.core.text.question_triples import ANSWER, QuestionTriple, fill_unknowns, open_unknowns
from engram.core.text.words import normalise_words
from engram.wings.sessions.core.binding import BindingSentence, binds

LEAST_WORD_SHARE = 0.5
"""Share of a triple's words that one sentence has to have for the answer to count as covered."""


@dataclass(frozen=True, slots=True)
class TripleCoverage:
    """Coverage of triples by a pool.

    Attributes:
        share: of the parts that are covered, in [0, 1]; 1 for a question without triples.
        missing: triples with a part that is not covered and an end that is known, in the order of look-up.
    """

    share: float
    missing: Sequence[QuestionTriple]


def triple_coverage(
    triples: Sequence[QuestionTriple],
    values: Mapping[str, str],
    pool: Sequence[BindingSentence],
    *,
    answered: bool = False,
) -> TripleCoverage:
    """Measure how much of the triples a pool covers.

    Args:
        triples: of the question, in the order of look-up.
        values: unknown -> its value, of those that are bound.
        pool: sentences of the pool.
        answered: whether the pool is known to hold the answer, whatever its words are.
    """
    runs = [f" {normalise_words(one.text)} " for one in pool]
    parts: dict[tuple[str, ...], bool] = {}
    missing = []
    for triple in triples:
        known_end = fill_unknowns(triple.known_end, values)
        is_known = not open_unknowns(known_end)
        named = is_known and any(f" {normalise_words(known_end)} " in run for run in runs)
        if triple.unknown == ANSWER:
            is_covered = answered or (is_known and binds(triple, known_end, pool) >= LEAST_WORD_SHARE)
            parts["answer", *triple.ends] = is_covered
        else:
            is_covered = triple.unknown in values
            parts["unknown", triple.unknown] = is_covered
        if not open_unknowns(triple.known_end):
            parts["name", triple.known_end] = named
            is_covered = is_covered and named
        if is_known and not is_covered:
            missing.append(triple)
    return TripleCoverage(sum(parts.values()) / len(parts) if parts else 1.0, missing)


def gap_query(triple: QuestionTriple, values: Mapping[str, str]) -> str:
    """Return the keywords that look for what is missing of a triple: its known end and its relation."""
    return " ".join(f"{fill_unknowns(triple.known_end, values)} {fill_unknowns(triple.relation, values)}".split())

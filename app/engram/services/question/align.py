"""Step 4: align the names of a question with entities, from which the walk starts."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engram.services.question.plan import QueryPlan
from engram.services.question.query import Frontier
from engram.services.question.trace import EntityAnswer
from engram.storage.database import Reader
from engram.storage.learning.walk_opening import WalkOpening
from engram.storage.question import entity_lookup

RARE_PASSAGES = 10
RARE_SHARE = 0.01
"""A word is a name if at most so many passages name it, or this share of the passages."""


def add_possible_names(reader: Reader, plan: QueryPlan) -> QueryPlan:
    """Return the plan with those of its possible names as mentions that entities bear and few passages name."""
    if not plan.possible:
        return plan
    most = max(RARE_PASSAGES, int(RARE_SHARE * plan.collection.passage_count))
    entities = entity_lookup.find_rare_entities(reader, plan.collection, list(plan.possible), most)
    chosen = select_longest(plan.question, plan.mentions.values(), (plan.possible[name] for name in entities))
    mentions = {name: mention for name, mention in plan.possible.items() if mention in chosen}
    return replace(plan, mentions={**plan.mentions, **mentions}, possible={})


def select_longest(question: str, names: Iterable[str], possible: Iterable[str]) -> set[str]:
    """Select those of the possible names that stand in the question outside of names and longer ones.

    Args:
        names, possible: as the question writes them.
    """
    for name in names:
        question = question.replace(name, "\n")
    chosen = set()
    for name in sorted(possible, key=len, reverse=True):
        if name in question:
            chosen.add(name)
            question = question.replace(name, "\n")
    return chosen


def align_mentions(
    reader: Reader, plan: QueryPlan, opened: WalkOpening | None
) -> tuple[list[EntityAnswer], list[str], WalkOpening | None]:
    """Align each mention to its most similar entity (Eq. 3).

    An equal name is the most similar by definition, and one that is only spelt otherwise is taken for equal.

    Returns:
        The entities, the names that must be embedded first, and the opening if every name was found by its words.
    """
    called: dict[str, tuple[int, str]] = {}
    if opened is not None:
        called = opened.called
    elif plan.mentions:
        called = entity_lookup.find_called_entities(reader, plan.collection, list(plan.mentions))
    entities = [EntityAnswer(plan.mentions[name], *called[name], 1.0) for name in plan.mentions if name in called]
    unmatched = [name for name in plan.mentions if name not in called]
    unknown = [name for name in unmatched if name not in plan.unknown]
    for name in unmatched if not unknown else ():
        nearest = entity_lookup.find_nearest_entity(reader, plan.collection, plan.unknown[name], plan.focus.limits)
        # A negative cosine is no likeness, and a negative activation has no place in Eqs. 5-8.
        if nearest is not None and nearest[2] > 0:
            entities.append(EntityAnswer(plan.mentions[name], *nearest))
    return entities, unknown, None if unmatched else opened


def build_first_frontier(entities: Sequence[EntityAnswer]) -> Frontier:
    """Return the frontier of the first hop; of several mentions of one entity the best counts."""
    ordered = sorted(entities, key=lambda entity: entity.similarity)
    return Frontier(
        {entity.entity_id: entity.similarity for entity in ordered},
        {entity.entity_id: entity.name for entity in ordered},
    )

"""Names of a question that only its collection can tell: the names of entities, such as titles of passages."""

from collections.abc import Iterable
from dataclasses import replace

from engram.services.retrieval.query_plan import QueryPlan
from engram.storage.database import Reader
from engram.storage.retrieval import entity_lookup

RARE_PASSAGES = 10
RARE_SHARE = 0.01
"""A word is a name if at most so many passages name it, or this share of the passages."""


def add_possible_names(reader: Reader, plan: QueryPlan) -> QueryPlan:
    """Return the plan with those of its possible names as mentions that entities bear and few passages name."""
    if not plan.possible:
        return plan
    most = max(RARE_PASSAGES, int(RARE_SHARE * plan.collection.passage_count))
    found = entity_lookup.find_rare_entities(reader, plan.collection, list(plan.possible), most)
    chosen = select_longest(plan.query.text, plan.mentions.values(), (plan.possible[name] for name in found))
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

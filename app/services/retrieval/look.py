"""The second look at a query's candidates: the pool of the best, and what the others would add to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.second_look import Floats, Named, Pointed, Pool, Said, members, pool
from app.services.retrieval.plan import Plan
from app.services.retrieval.walk import Walk
from app.storage.corpus.lexical import Match
from app.storage.database import Reader
from app.storage.retrieval import second_look
from app.storage.retrieval.keyed import Keyed
from app.storage.retrieval.second_look import NamedEntity, Shared


@dataclass(frozen=True, slots=True)
class Candidates:
    """The passages that are ranked.

    Attributes:
        ids: in id order.
        near: passage -> its key.
        matching: passage -> how it matches the question word for word; absent where it shares no word.
        titles: passage -> the normalised names that its title stands for.
    """

    ids: Sequence[int]
    near: Mapping[int, Keyed]
    matching: Mapping[int, Match]
    titles: Mapping[int, Sequence[str]]


def look_again(reader: Reader, plan: Plan, walk: Walk, candidates: Candidates, scores: Floats) -> Pool | None:
    """The pool that the first ranking gives; None where it has no member.

    Args:
        scores: of the first look, (n,), in the order of ``candidates.ids``.
    """
    ids = candidates.ids
    best = [ids[place] for place in members(np.array(ids, dtype=np.int64), scores).tolist()]
    asked = list(walk.hops[0].start.activation) if walk.hops else []
    known = second_look.members(reader, plan.focus, best, asked, plan.limits.hub_limit)
    if not known.passages:
        return None
    shared = second_look.shared(reader, plan.focus, ids, known.sentences, list(known.entities))
    place = {passage: at for at, passage in enumerate(ids)}
    return pool(
        np.array([place[passage] for passage in known.passages], dtype=np.intp),
        _named(candidates, known.entities, asked, shared),
        _said(candidates),
        Pointed(
            keys=np.array([candidates.near[passage].similarity for passage in ids]),
            sentences=np.array(known.similarities),
            across=np.array([shared[passage].across for passage in ids]).T,
        ),
    )


def _named(
    candidates: Candidates,
    entities: Mapping[int, NamedEntity],
    asked: Sequence[int],
    shared: Mapping[int, Shared],
) -> Named:
    ids = candidates.ids
    column = {entity: at for at, entity in enumerate(entities)}
    called = {known.name: column[entity] for entity, known in entities.items()}
    named, titled = (np.zeros((len(ids), len(entities)), dtype=bool) for _ in range(2))
    for row, passage in enumerate(ids):
        named[row, [column[entity] for entity in shared[passage].entities]] = True
        titled[row, [called[name] for name in candidates.titles[passage] if name in called]] = True
    passages = np.array([max(known.passages, 1) for known in entities.values()], dtype=np.float64)
    return Named(1.0 / np.log2(1.0 + passages), np.isin(list(entities), asked), named, titled)


def _said(candidates: Candidates) -> Said:
    matching = candidates.matching
    weights = {term: weight for match in matching.values() for term, weight in match.terms.items()}
    column = {term: at for at, term in enumerate(weights)}
    said = np.zeros((len(candidates.ids), len(weights)), dtype=bool)
    for row, passage in enumerate(candidates.ids):
        if passage in matching:
            said[row, [column[term] for term in matching[passage].terms]] = True
    return Said(np.array(list(weights.values()), dtype=np.float64), said)

"""The second look at a query's candidates: the pool of the best, and what the others would add to it."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from app.core.second_look import Floats, Named, Pointed, Pool, Said, members, pool
from app.services.retrieval.plan import Plan
from app.services.retrieval.walk import Walk
from app.storage.corpus.lexical import Match
from app.storage.database import Reader
from app.storage.retrieval import second_look
from app.storage.retrieval.keyed import Keyed
from app.storage.retrieval.second_look import NamedEntity, Shared


def look_again(
    reader: Reader,
    plan: Plan,
    walk: Walk,
    passages: NDArray[np.int64],
    scores: Floats,
    near: Mapping[int, Keyed],
    titles: Mapping[int, Sequence[str]],
    matching: Mapping[int, Match],
) -> Pool | None:
    """The pool that the first ranking gives; None where it has no member.

    Args:
        passages: the candidates, (n,).
        scores: of the first look, (n,).
        near: their keys.
        titles: the normalised names that their titles stand for.
        matching: the question's words that they have.
    """
    ids = passages.tolist()
    best = [ids[place] for place in members(passages, scores).tolist()]
    asked = list(walk.hops[0].start.activation) if walk.hops else []
    known = second_look.members(reader, plan.focus, best, asked, plan.limits.hub_limit)
    if not known.passages:
        return None
    shared = second_look.shared(reader, plan.focus, ids, known.sentences, list(known.entities))
    place = {passage: at for at, passage in enumerate(ids)}
    return pool(
        np.array([place[passage] for passage in known.passages], dtype=np.intp),
        _named(ids, known.entities, asked, shared, titles),
        _said(ids, matching),
        Pointed(
            keys=np.array([near[passage].similarity for passage in ids]),
            sentences=np.array(known.similarities),
            across=np.array([shared[passage].across for passage in ids]).T,
        ),
    )


def _named(
    ids: Sequence[int],
    entities: Mapping[int, NamedEntity],
    asked: Sequence[int],
    shared: Mapping[int, Shared],
    titles: Mapping[int, Sequence[str]],
) -> Named:
    column = {entity: at for at, entity in enumerate(entities)}
    called = {known.name: column[entity] for entity, known in entities.items()}
    named, titled = (np.zeros((len(ids), len(entities)), dtype=bool) for _ in range(2))
    for row, passage in enumerate(ids):
        named[row, [column[entity] for entity in shared[passage].entities]] = True
        titled[row, [called[name] for name in titles[passage] if name in called]] = True
    passages = np.array([max(known.passages, 1) for known in entities.values()], dtype=np.float64)
    return Named(1.0 / np.log2(1.0 + passages), np.isin(list(entities), asked), named, titled)


def _said(ids: Sequence[int], matching: Mapping[int, Match]) -> Said:
    weights = {term: weight for match in matching.values() for term, weight in match.terms.items()}
    column = {term: at for at, term in enumerate(weights)}
    said = np.zeros((len(ids), len(weights)), dtype=bool)
    for row, passage in enumerate(ids):
        if passage in matching:
            said[row, [column[term] for term in matching[passage].terms]] = True
    return Said(np.array(list(weights.values()), dtype=np.float64), said)

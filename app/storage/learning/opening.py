"""What a walk begins with, in one statement: the question's names, what they recall, and where they lead.

The first hop goes on from what has the names, each with activation 1. That is the walk's own first hop nearly
always: where past questions bring sentences to it, or a name has to be compared by embedding, it is made again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.storage.aside import as_rows
from app.storage.corpus.current import CURRENT, Current
from app.storage.database import Reader
from app.storage.learning import experience
from app.storage.learning.experience import PastSupport
from app.storage.parameters import received
from app.storage.retrieval import entities, hops, keyed
from app.storage.retrieval.focus import Focus, GraphLimits
from app.storage.retrieval.hops import Reached

_GIVEN = "(SELECT DISTINCT id, 1::float8 FROM called) AS given(entity_id, score)"
_NEAR = "(SELECT id FROM nearest) AS wanted"


@dataclass(frozen=True, slots=True)
class Opening:
    """What a walk begins with.

    Attributes:
        called: normalised name -> (entity, surface), see ``entities.called_entities``.
        recalled: see ``experience.recall``; None if past questions are not heard.
        near: passages nearest to the question, best first; None if they were not asked for.
        reached: by a hop from the entities called, where each has activation 1 and nothing is recalled.
        current: which vectors the snapshot has; None: the collection is gone.
    """

    called: dict[str, tuple[int, str]]
    recalled: Sequence[PastSupport] | None
    near: Sequence[int] | None
    reached: Reached
    current: Current | None


def read(
    reader: Reader,
    focus: Focus,
    names: Sequence[str],
    limits: GraphLimits,
    read: int,
    *,
    recall: tuple[float, int] | None,
    near: int | None,
) -> Opening:
    """What a walk begins with that starts from these normalised names.

    Args:
        read: how many of the best sentences are read, see ``hops.linked_sentences``.
        recall: least cosine, and how many questions, see ``experience.recall``; None to hear none.
        near: passages near the question that hubs are read in; None where the collection is small.
    """
    before = f"called AS MATERIALIZED ({entities.CALLED}),"
    besides = f", {as_rows('SELECT * FROM called')} AS called, {CURRENT} AS current"
    if near is not None:
        # As a number: of a parameter the planner would take a tenth of the collection for what comes of it.
        before += f" nearest AS MATERIALIZED ({keyed.nearest(focus, limits, str(near))}),"
        besides += ", (SELECT array_send(array_agg(id ORDER BY similarity DESC)) FROM nearest) AS near"
    if recall is not None:
        besides += f", {as_rows(experience.recalling(focus, 'ARRAY(SELECT id FROM called)'))} AS past"
    candidates = hops.linked(focus, _GIVEN, None if near is None else _NEAR)
    gate, questions = recall or (0.0, 0)
    row = reader.row(
        hops.reaching(focus, candidates, before=before, besides=besides),
        hops.linking(
            focus,
            limits,
            read,
            (),
            **entities.called_parameters(names),
            gate=gate,
            questions=questions,
        ),
    )
    return Opening(
        called={one["name"]: (one["id"], one["surface"]) for one in row.called or ()},
        recalled=None if recall is None else [PastSupport(**past) for past in row.past or ()],
        near=None if near is None else received(row.near, np.int64).tolist(),
        reached=hops.reached(focus, row),
        current=None if row.current is None else Current(**row.current),
    )

"""Opening of a walk in one statement: the question's entities, its recalled supports, and the first links.

The first hop starts from the entities that bear the names, each with activation 1. This is nearly always the walk's
own first hop, which sentences of past questions may join. It is made again if a name has to be compared by
embedding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engram.core.ranking.denied_answers import AnswerJudgement
from engram.core.ranking.propagation import ReachedSentences
from engram.storage.carried_statements import as_rows
from engram.storage.column_parameters import decode_column
from engram.storage.corpus.current_vectors import CURRENT, Current
from engram.storage.database import Reader
from engram.storage.learning import judged_answers, question_supports
from engram.storage.learning.question_supports import PastSupport
from engram.storage.question import entity_lookup, graph_hops, passages_by_key
from engram.storage.question.query_focus import Focus

_GIVEN = "(SELECT DISTINCT id, 1::float8 FROM called) AS given(entity_id, score)"
_NEAR = "(SELECT id FROM nearest) AS wanted"


@dataclass(frozen=True, slots=True)
class WalkOpening:
    """First read of a walk.

    Attributes:
        called: normalised name -> (entity, surface), see ``entity_lookup.find_called_entities``.
        recalled: see ``question_supports.recall``; None if question memory is not read.
        judgements: of earlier answers to the same question; none if question memory is not read.
        near: passages nearest to the question, best first; None if they were not asked for.
        reached: result of a hop from these entities, each with activation 1, without recalled sentences.
        current: version of the vectors on the snapshot; None if the collection is gone.
    """

    called: dict[str, tuple[int, str]]
    recalled: Sequence[PastSupport] | None
    judgements: Sequence[AnswerJudgement]
    near: Sequence[int] | None
    reached: ReachedSentences
    current: Current | None


def read(
    reader: Reader,
    focus: Focus,
    names: Sequence[str],
    *,
    question: str,
    recall: int | None,
    near: int | None,
) -> WalkOpening:
    """Read the opening of a walk from these normalised names.

    Args:
        question: text of the question.
        recall: how many past questions are read, see ``question_supports.recall``; None to read none.
        near: passages near the question that hubs are read in; None where the collection is small.
    """
    before = f"called AS MATERIALIZED ({entity_lookup.ENTITY_STATEMENT}),"
    besides = f", {as_rows('SELECT * FROM called')} AS called, {CURRENT} AS current"
    if near is not None:
        # As a number: of a parameter the planner would take a tenth of the collection for what comes of it.
        before += f" nearest AS MATERIALIZED ({passages_by_key.build_nearest_query(focus, str(near))}),"
        besides += ", (SELECT array_send(array_agg(id ORDER BY similarity DESC)) FROM nearest) AS near"
    judged = judged_answers.build_judgement_query(question)
    if recall is not None:
        besides += f", {judged.column} AS judgements"
        besides += f", {as_rows(question_supports.build_recall_query(focus))} AS past"
    candidates = graph_hops.build_link_query(focus, _GIVEN, None if near is None else _NEAR)
    row = reader.row(
        graph_hops.build_reach_query(focus, candidates, before=before, besides=besides),
        graph_hops.build_link_parameters(
            focus,
            (),
            **entity_lookup.build_entity_parameters(names),
            questions=recall or 0,
            **judged.parameters,
        ),
    )
    return WalkOpening(
        called={one["name"]: (one["id"], one["surface"]) for one in row.called or ()},
        recalled=None if recall is None else [PastSupport(**past) for past in row.past or ()],
        judgements=() if recall is None else judged_answers.collect_judgements(row.judgements or ()),
        near=None if near is None else decode_column(row.near, np.int64).tolist(),
        reached=graph_hops.read_reach(focus, row),
        current=None if row.current is None else Current(**row.current),
    )

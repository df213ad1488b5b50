"""Sifting a round's sentences with a language model: what bears on the search, and what contradicts what (Eq.
1).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engram.context.errors import LlmError
from engram.services.question.query import Fallback
from engram.wings.sessions.core.session import CurationCounts, Gap, Note, PoolSentence
from engram.wings.sessions.llm import session_model
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.session_tools import AskedQuery, StepTools


@dataclass(frozen=True, slots=True)
class SiftedSentences:
    """Sentences that enter the pool, and the contradictions among them."""

    sentences: list[PoolSentence]
    curated: CurationCounts
    contradictions: list[Note]
    warnings: list[Fallback]


def sift(
    state: SessionState, tools: StepTools, queries: Sequence[AskedQuery], sought: str, gap: Gap | None
) -> SiftedSentences:
    """The sentences that the model keeps; by rules where there is none or it fails.

    It sees every sentence of the passages that were read, and only it says which bear on the search; which of them
    say the same is for ``wings.sessions.core.curation`` to tell, whoever chose.
    """
    if tools.llm is None:
        return SiftedSentences(*tools.curate_sentences(queries), [], [])
    pool_ids = {sentence.sentence_id for sentence in state.pool}
    candidates = {
        sentence.id: sentence.text
        for query in queries
        for passage in query.passages
        for sentence in passage.sentences
        if sentence.id not in pool_ids
    }
    notes = [note.text for note in state.notes]
    try:
        # What contradicts the pool can only be told with the pool at hand: its latest sentences come last.
        shown_sentences = [*candidates.items(), *((one.sentence_id, one.text) for one in state.pool)]
        kept_sentences = session_model.keep(tools.llm, state.question, sought, notes, shown_sentences)
    except LlmError as error:
        return SiftedSentences(*tools.curate_sentences(queries), [], [Fallback("sifted-by-rules", error.detail)])
    new_sentences, curated = tools.curate_sentences(
        queries, {sentence: gap for sentence in kept_sentences.sentences if sentence in candidates}
    )
    standing = pool_ids | {sentence.sentence_id for sentence in new_sentences}
    contradictions = [
        Note("contradiction", _describe_contradiction(one.about, one.borne_by), one.cites, state.number)
        for one in kept_sentences.contradictions
        if len(one.cites) > 1 and standing.issuperset(one.cites)
    ]
    return SiftedSentences(new_sentences, curated, contradictions, [])


def _describe_contradiction(about: str, borne_by: Sequence[int]) -> str:
    """A contradiction in words: named, and resolved by evidence or said to be open."""
    if not borne_by:
        return f"{about} (open: neither side is the better founded)"
    return f"{about} (the better founded: {', '.join(f'[{sentence}]' for sentence in borne_by)})"

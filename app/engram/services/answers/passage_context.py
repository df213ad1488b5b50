"""Context of an answer's passages in their documents: passages before and after, or the section."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from engram.core.text.passage_numbers import list_neighbour_ids
from engram.core.text.passage_source import read_source
from engram.services.question.answer import (
    Answer,
    PassageAnswer,
    PassageContext,
    SentenceAnswer,
    SurroundingPassage,
)
from engram.services.question.query import Query
from engram.services.replicas.replica_reads import Reads
from engram.storage.corpus import passages
from engram.storage.database import Database

SECTION_REACH = 20
"""Passages on each side of another one that are looked at for its section."""
BYTES_OF_CHARACTER = 4
"""In UTF-8, at most."""


@dataclass(frozen=True, slots=True)
class ContextPart:
    """Part of a query that asks for what stands around each passage.

    Attributes:
        before, after: passages at most; without meaning if ``section``.
        section: whether all passages of the section are wanted.
        characters: of the passages around one, at most.
    """

    before: int
    after: int
    section: bool
    characters: int

    @property
    def reach(self) -> tuple[int, int]:
        """Most passages before and after another one that are looked at."""
        return (SECTION_REACH, SECTION_REACH) if self.section else (self.before, self.after)


class PassageContextService:
    """Reads what stands around passages."""

    def __init__(self, database: Database, reads: Reads) -> None:
        self._database = database
        self._reads = reads

    def add(self, query: Query, answer: Answer) -> Answer:
        """Return the answer; if the query asks for it, each passage has what stands around it.

        Passages stand beside each other if their source is the same document and their ids end in consecutive
        numbers. A passage that the caller does not see, or for which no room is left, ends its side as the
        document's end does.
        """
        context = query.part(ContextPart)
        if context is None:
            return answer
        collection_id = query.scope.collection.id
        sides = [list_neighbour_ids(hit.passage_id, *context.reach) for hit in answer.passages]
        ids = {one for before, after in sides for one in (*before, *after)}
        around = self._reads.on_replica(collection_id, lambda: self._load(query, ids, context.characters))
        contexts = [_choose(hit, side, around, context) for hit, side in zip(answer.passages, sides, strict=True)]
        hits = [replace(hit, context=one) for hit, one in zip(answer.passages, contexts, strict=True)]
        return replace(answer, passages=hits)

    def _load(self, query: Query, ids: Collection[str], characters: int) -> dict[str, SurroundingPassage]:
        """Load the passages with these external ids that the caller sees and that have room."""
        collection = query.scope.collection
        with self._database.read() as reader:
            stored = passages.load_by_external_id(reader, collection.id, ids, BYTES_OF_CHARACTER * characters)
            sentences: dict[int, list[SentenceAnswer]] = {}
            if "sentences" in query.include:
                for one in passages.list_sentences(reader, collection.id, [one.id for one in stored]):
                    answered = SentenceAnswer(one.id, one.position, one.text, None, [])
                    sentences.setdefault(one.passage_id, []).append(answered)
        return {
            one.external_id: SurroundingPassage(
                one.external_id,
                one.title,
                one.text,
                read_source(one, collection.link_template),
                sentences.get(one.id, []),
            )
            for one in stored
        }


def _choose(
    hit: PassageAnswer,
    sides: tuple[Sequence[str], Sequence[str]],
    around: Mapping[str, SurroundingPassage],
    wanted: ContextPart,
) -> PassageContext:
    """Choose what stands before and after a hit: nearer passages have room first, of two the one after it.

    Args:
        sides: ids before and after the hit, each the nearest first.
    """
    chosen: tuple[list[SurroundingPassage], list[SurroundingPassage]] = ([], [])
    room = wanted.characters
    is_open = [True, True]
    for place in range(max(map(len, sides))):
        for side in (1, 0):
            one = around.get(sides[side][place]) if is_open[side] and place < len(sides[side]) else None
            if one is None or len(one.text) > room or not _belongs(one, hit, wanted):
                is_open[side] = False
            else:
                chosen[side].append(one)
                room -= len(one.text)
    return PassageContext(chosen[0][::-1], chosen[1])


def _belongs(one: SurroundingPassage, hit: PassageAnswer, wanted: ContextPart) -> bool:
    """Whether a passage is of the hit's document; if its section is wanted, also below the same headings."""
    section, path = hit.source.heading, one.source.heading
    is_inside = path[: len(section)] == section if section else not path
    return one.source.document == hit.source.document and (is_inside or not wanted.section)

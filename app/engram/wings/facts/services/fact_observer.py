"""Facts follow the passages that state them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from engram.core.filter.constants import FilterConstants
from engram.services.corpus.passage_drafts import PassageDraft
from engram.services.corpus.passage_observer import LostSentences, ObservedBatch, PlacedSentences
from engram.storage.corpus.collections import Collection
from engram.storage.database import Writer
from engram.telemetry.stages import stage
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.reading import extract_facts
from engram.wings.facts.services import fact_learning
from engram.wings.facts.services.entity_alignment import AlignmentService
from engram.wings.facts.storage import fact_events, fact_graph


class FactObserver:
    """Has facts follow their passages.

    Args:
        noise: gives the constants that the noises of facts of passages are made from.
        align: gives what joins their names.
    """

    def __init__(self, noise: Callable[[], FilterConstants], align: Callable[[], AlignmentService]) -> None:
        self._noise = noise
        self._align = align

    def prepare(self, collection: Collection, drafts: Sequence[PassageDraft]) -> "FactBatch":
        """Read the facts of passages, where the collection asks for them."""
        triples = None
        if collection.passage_facts == "on":
            triples = {draft.external_id: extract_facts(draft.title, draft.sentences) for draft in drafts}
        return FactBatch(collection, triples, fact_learning.as_source(self._noise()), self._align)

    @contextmanager
    def removal(self, writer: Writer, collection_id: int, passage: int, sentences: Sequence[int]) -> Iterator[None]:
        """Remove what only this passage says, its past words too."""
        fact_graph.lock(writer, collection_id)
        stated = fact_graph.statements_of_passage(writer, collection_id, passage)
        facts = fact_learning.find_sentence_facts(writer, collection_id, sentences)
        facts |= set(fact_graph.list_stated_facts(writer, collection_id, stated))
        if stated:
            fact_events.remove_statements(writer, collection_id, stated)
        yield
        if facts:
            fact_learning.settle_facts(writer, collection_id, facts)

    def follow(self, writer: Writer, collection_id: int, places: Mapping[int, int]) -> None:
        """Have the sentences' facts come from the passages that the sentences move to."""
        fact_graph.lock(writer, collection_id)
        fact_graph.move_sources(writer, collection_id, places)
        facts = fact_learning.find_sentence_facts(writer, collection_id, list(places))
        if facts:
            fact_learning.settle_facts(writer, collection_id, facts)


class FactBatch(ObservedBatch):
    """Facts of one batch of passages.

    Args:
        triples: external id of a passage -> what it says; None where the collection reads no facts.
        noise: by which they count.
        align: gives what joins their names.
    """

    def __init__(
        self,
        collection: Collection,
        triples: Mapping[str, Sequence[Triple]] | None,
        noise: FilterConstants,
        align: Callable[[], AlignmentService],
    ) -> None:
        self._collection = collection
        self._triples = triples
        self._noise = noise
        self._align = align
        self._losing: set[int] = set()
        self._new: dict[int, str] = {}

    def before(self, writer: Writer, lost: LostSentences) -> None:
        """Lock the facts, and have sentences that go say nothing from now on."""
        if self._triples is not None or lost.removed:
            fact_graph.lock(writer, self._collection.id)
        if lost.removed:
            self._losing = fact_learning.leave(writer, self._collection.id, lost.texts, lost.removed)

    def after(self, writer: Writer, lost: LostSentences, placed: PlacedSentences) -> None:
        """Have the passages' sentences say what they say now.

        Where the collection reads no facts, only those go whose sentence went.
        """
        if self._triples is None:
            if self._losing:
                fact_learning.settle_facts(writer, self._collection.id, self._losing)
            return
        stated: dict[int, tuple[int, list[Triple]]] = {
            sentence: (placed.passages[external_id], []) for (external_id, _), sentence in placed.sentences.items()
        }
        for external_id, triples in self._triples.items():
            for triple in triples:
                stated[placed.sentences[external_id, triple.sentence]][1].append(triple)
        self._new = fact_learning.replace_sentence_facts(
            writer, self._collection.id, stated, self._losing, self._noise
        )

    def committed(self) -> None:
        """Join new entities to what their names mean."""
        if self._new:
            with stage("align"):
                self._align().join_new(self._collection, self._new)

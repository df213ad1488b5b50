"""Facts follow the passages that are their sources."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from engram.services.corpus.passage_observer import TextChange
from engram.storage.database import Writer
from engram.wings.facts.services import fact_learning
from engram.wings.facts.storage import fact_events, fact_graph


class FactObserver:
    """Has facts follow the passages that they were stated from."""

    @contextmanager
    def change(self, writer: Writer, collection_id: int, changes: Mapping[int, TextChange]) -> Iterator[None]:
        """Withdraw what passages say no more."""
        fact_graph.lock(writer, collection_id)
        facts = fact_learning.withdraw_unsaid(writer, collection_id, changes)
        if facts:
            fact_learning.settle_facts(writer, collection_id, facts)
        yield

    @contextmanager
    def removal(self, writer: Writer, collection_id: int, passage: int) -> Iterator[None]:
        """Remove what only this passage says, its past words too."""
        fact_graph.lock(writer, collection_id)
        stated = fact_graph.statements_of_passage(writer, collection_id, passage)
        if stated:
            facts = fact_graph.list_stated_facts(writer, collection_id, stated)
            fact_events.remove_statements(writer, collection_id, stated)
            fact_learning.settle_facts(writer, collection_id, facts)
        yield

"""Serving: questions answered as the settings of their collection have it, live or in shadow.

Whoever has to see what memory does, whatever the collection is set to, asks ``QueryService`` directly.
"""

from collections.abc import Sequence
from dataclasses import replace

from engram.services.queries.query_service import QueryService
from engram.services.retrieval.answer import Answer
from engram.services.retrieval.query import Query
from engram.services.retrieval.question_rule import QuestionRule


class ServingService:
    """Serves queries by their collection's settings."""

    def __init__(self, ask: QueryService, rules: Sequence[QuestionRule] = ()) -> None:
        """``rules``: prepare each query, in this order."""
        self._ask = ask
        self._rules = rules

    def query(self, query: Query) -> Answer:
        """Answer a question as the collection's settings have it. In shadow there is no memory, whatever it says.

        Raises:
            NotFoundError, InvalidRequestError, LlmNotConfiguredError, LlmError: as ``QueryService.query``.
        """
        if query.scope.collection.serving == "shadow":
            query = replace(query, memory="off", shadow=True)
        for rule in self._rules:
            query = rule.prepare(query)
        return self._ask.query(query)

"""An instruction in words: a language model says what it changes, and that is applied as any revision is."""

from dataclasses import replace

from engram.context.errors import LlmNotConfiguredError
from engram.providers.llm import Llm
from engram.services.auth.scope import Scope
from engram.wings.facts.llm import convert_relation, maintain_facts
from engram.wings.facts.services.fact_search import FactPattern, FactSearch
from engram.wings.facts.services.fact_service import AppliedEvent, FactCorrection, FactsService, StatedFact

MOST_PATHS = 40
"""Paths of facts that the model is shown, those nearest to what the instruction names."""
SEEN_TOKENS = 4_000


class InstructionService:
    """Carries out instructions on facts."""

    def __init__(self, facts: FactsService, search: FactSearch, llm: Llm | None) -> None:
        self._facts = facts
        self._search = search
        self._llm = llm

    def carry_out(
        self, scope: Scope, instruction: str, *, judge: str, key: str, graph: str | None = None
    ) -> list[AppliedEvent]:
        """Apply what an instruction changes, once under its key: what the model said first.

        What the instruction contradicts is contradicted, and nothing is removed; what it states, the judge states.
        No transaction is open while the model is asked.

        Raises:
            LlmNotConfiguredError: there is no endpoint.
            LlmError: the endpoint failed, or its reply was of no use.
            NotFoundError: there is no such graph, or the collection was deleted meanwhile.
            IdempotencyConflictError: the key was used before with another request.
        """
        if self._llm is None:
            raise LlmNotConfiguredError("An instruction in words needs an LLM; say what to confirm or contradict.")
        done = self._facts.find_earlier_correction(
            scope, judge=judge, key=key, instruction=instruction, graph_name=graph
        )
        if done:
            return done
        pattern = FactPattern(
            question=instruction, graph=graph, edges=2, paths=MOST_PATHS, budget=SEEN_TOKENS, include_closed=True
        )
        facts_seen = self._search.search(scope, pattern).facts
        known = list(facts_seen.values())
        reply = maintain_facts(self._llm, [(row.subject, row.predicate, row.object) for row in known], instruction)
        added = [
            StatedFact(replace(convert_relation(one, instruction, 0), confidence=1.0), instruction)
            for one in reply.add
        ]
        correction = FactCorrection(instruction, graph, added, [known[place].id for place in reply.remove])
        return self._facts.correct(scope, correction, judge=judge, key=key)

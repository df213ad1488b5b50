"""Planner "agent" (GRAM): documents go by one at a time, and a model keeps what it needs in a graph of facts.

A round is a turn: one action, thought first. The documents are passages, of one retrieval or as the caller gives
them; the graph is the session's own and empty at first. It is kept with the session (``plan_state``), so a turn and
what it did to the graph are one transaction, a session that lost its worker goes on with both, and both go when a
passage that was read does. Each fact has the sentence that says it, which enters the pool.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from engram.context.errors import LlmError
from engram.providers.language import SentenceAnalysis
from engram.providers.llm import Llm
from engram.services.question.query import Fallback
from engram.wings.agent.core.agent_turns import NOTHING_TO_INSERT, AgentTurn, format_turn
from engram.wings.agent.llm import agent_prompts
from engram.wings.agent.llm.agent_model import ask_turn
from engram.wings.agent.services.agent_memory import AgentMemory
from engram.wings.agent.services.agent_play import Change, Play, TurnOutcome, begin, carry_out, observe
from engram.wings.agent.services.grounding import GroundedFacts, StreamDocument, bears, ground_text
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.llm import convert_relation, maintain_facts
from engram.wings.facts.services.text_facts import read_by_model
from engram.wings.sessions.core.session import Conclusion, CurationCounts, Note, PoolSentence, StopReason
from engram.wings.sessions.services.planner import SessionStep
from engram.wings.sessions.services.session_rules import OrderedPassages, move_evidence_first, rank_by_rules
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.session_tools import AskedQuery, StepTools
from engram.wings.sessions.services.tree_options import PlannerOptions, parse_planner_options

CALLS_TO_ANSWER = 2
"""Calls of the budget that are kept for the answer and its repetition."""
NO_CALL_LEFT = "The budget has no call of the language model."
SHOWN_FACTS = 40
"""Facts that a model which carries out an update is shown."""


@dataclass(frozen=True, slots=True)
class AgentPlanner:
    """An agent with a graph of facts for its memory."""

    name = "agent"
    needs_llm = True

    def step(self, state: SessionState, tools: StepTools) -> SessionStep:
        """The next turn."""
        options = parse_planner_options(state.request.options)
        queries, documents = _documents(state, tools, options)
        if not documents:
            return SessionStep(action=None, queries=queries, stop="nothing_new")
        play = begin(state.question, len(documents), turns=_turns(state), insert_only=options.insert_only)
        if "remarks" in state.plan_state:
            play = play.resume(state.plan_state)
        play, document = _find_current_document(play, documents, tools)
        observation = observe(play, document)
        reading = _FactExtractor(tools)
        turn, warnings = _turn(tools, play, document, options)
        if turn is None:
            return SessionStep(action=None, queries=queries, stop="no_gap", warnings=warnings)
        outcome = carry_out(play, turn, document, reading.insert, reading.update)
        evidence = _pool_sentences(state, play, outcome, tools)
        ordered = rank_by_rules(state, queries, evidence)
        return SessionStep(
            action="skip" if turn.skips else turn.act,
            sub_question=turn.content if turn.act == "search" else None,
            queries=queries,
            sentences=evidence,
            curated=CurationCounts(kept=len(evidence)),
            notes=[*state.notes, *_notes(state, play, outcome)],
            ranked=_rank_passages(state, documents, ordered, evidence),
            sufficiency=ordered.sufficiency,
            covered=ordered.covered,
            plan_state={"documents": documents, **outcome.play.to_json()},
            said={
                "prompts": agent_prompts.VERSION,
                "thought": turn.thought,
                "content": turn.content,
                "passage": None if document is None else int(document.key),
                "note": outcome.play.note,
                "facts": [outcome.play.memory.line(place) for place in outcome.facts],
                "answer": outcome.answer
                or (outcome.search_result.text.text if outcome.search_result is not None else None),
                "observation": agent_prompts.format_observation(observation),
                "reply": None if warnings else format_turn(turn),
            },
            conclusion=_conclusion(outcome),
            stop=_stop(outcome),
            warnings=[*warnings, *reading.warnings],
        )


@dataclass(slots=True)
class _FactExtractor:
    """Extracts facts from the agent's words by the language model."""

    tools: StepTools
    warnings: list[Fallback] = field(default_factory=list)

    def insert(self, text: str, document: StreamDocument) -> GroundedFacts:
        """Read the facts of an inserted text."""
        return ground_text(text, document, self.tools.language, self._read)

    def update(self, text: str, document: StreamDocument, memory: AgentMemory) -> Change:
        """Read a correction: removals and additions by the model (GRAM, Fig. 6), else by what is stated anew."""
        own, llm = self.insert(text, document), self.tools.llm
        if llm is None or not memory.facts:
            return Change(own)
        near = memory.search(text, paths=SHOWN_FACTS, budget=agent_prompts.MAX_DOCUMENT_CHARACTERS).facts
        known = [*near, *(place for place in range(len(memory.facts)) if place not in near)][:SHOWN_FACTS]
        known_facts = [memory.facts[place] for place in known]
        try:
            reply = maintain_facts(llm, [(one.subject, one.predicate, one.object) for one in known_facts], text)
        except LlmError as error:
            self.warnings.append(Fallback("updated-by-rules", error.detail))
            return Change(own)
        added = []
        for one in reply.add:
            for ordinal, (_, sentence) in enumerate(document.sentences):
                triple = convert_relation(one, sentence, ordinal)
                if bears(sentence, document.title, triple):
                    added.append((triple, document.source(ordinal)))
                    break
        return Change(
            GroundedFacts([*own.facts, *added], own.unsupported), [known[place] for place in reply.remove]
        )

    def _read(self, title: str | None, sentences: Sequence[SentenceAnalysis]) -> list[Triple]:
        if self.tools.llm is None:
            self.warnings.append(Fallback("not-read", NO_CALL_LEFT))
            return []
        triples, failed = read_by_model(self.tools.llm, title, sentences)
        reasons = dict.fromkeys(error.detail for error in failed)
        self.warnings += [Fallback("not-read", reason) for reason in reasons]
        return triples


def _documents(
    state: SessionState, tools: StepTools, options: PlannerOptions
) -> tuple[list[AskedQuery], list[int]]:
    """Return the queries of the first round, and the documents in the order of the play."""
    if "documents" in state.plan_state:
        return [], list(state.plan_state["documents"])
    if options.documents:
        return [], tools.find_readable_ids(options.documents)
    asked_query = tools.ask(state.question)
    return [asked_query], [passage.id for passage in asked_query.passages]


def _turns(state: SessionState) -> int:
    """Count the turns of the play: the budget's rounds, or fewer if the calls left are needed for an answer."""
    calls_left = state.budget.llm_calls - state.cost.llm_calls
    return min(state.budget.rounds, state.number if calls_left <= CALLS_TO_ANSWER else state.budget.rounds)


def _find_current_document(
    play: Play, documents: Sequence[int], tools: StepTools
) -> tuple[Play, StreamDocument | None]:
    """The document of the moment; those that are gone went by."""
    while play.at < len(documents):
        read = tools.read_passage(documents[play.at])
        if read is not None:
            return play, StreamDocument(str(read.id), read.title, [(one.id, one.text) for one in read.sentences])
        play = replace(play, at=play.at + 1)
    return play, None


def _turn(
    tools: StepTools, play: Play, document: StreamDocument | None, options: PlannerOptions
) -> tuple[AgentTurn | None, list[Fallback]]:
    """Return the model's turn; where it fails, the document goes by; None where only an answer is left."""
    llm: Llm | None = tools.llm
    detail = NO_CALL_LEFT
    if llm is not None:
        try:
            return ask_turn(llm, observe(play, document), insert_only=options.insert_only), []
        except LlmError as error:
            detail = error.detail
    if document is None or "insert" not in play.offered:
        return None, [Fallback("not-answered", detail)]
    return AgentTurn("insert", NOTHING_TO_INSERT, "The model failed."), [Fallback("not-read", detail)]


def _pool_sentences(state: SessionState, play: Play, outcome: TurnOutcome, tools: StepTools) -> list[PoolSentence]:
    """The sentences that say the turn's facts and are not in the pool yet."""
    memory, before = outcome.play.memory, len(play.memory.sources)
    fresh = [int(source.key) for source in memory.sources[before:]]
    return [PoolSentence(one.id, one.passage_id, one.text, state.number, None) for one in tools.sentences(fresh)]


def _notes(state: SessionState, play: Play, outcome: TurnOutcome) -> list[Note]:
    """A line for each fact that is new, and one for each that is doubted or over since."""
    memory = outcome.play.memory
    fresh = [place for place in outcome.facts if place >= len(play.memory.facts)]
    notes = [Note("fact", memory.line(place), _cites(memory, [place]), state.number) for place in fresh]
    for word, places in (("doubted", outcome.contradicted), ("over", outcome.superseded)):
        for place in places:
            text = f"{memory.line(place)} ({word} since {'; '.join(map(memory.line, outcome.facts))})"
            notes.append(Note("contradiction", text, _cites(memory, [place, *outcome.facts]), state.number))
    return notes


def _cites(memory: AgentMemory, places: Sequence[int]) -> tuple[int, ...]:
    numbers = dict.fromkeys(number for place in places for number in memory.facts[place].sources)
    return tuple(int(memory.sources[number - 1].key) for number in numbers)


def _conclusion(outcome: TurnOutcome) -> Conclusion | None:
    if outcome.answer is None:
        return None
    cites = [int(outcome.play.memory.sources[number - 1].key) for number in dict.fromkeys(outcome.cites)]
    return Conclusion(outcome.answer, bool(cites), cites)


def _stop(outcome: TurnOutcome) -> StopReason | None:
    return None if outcome.answer is None else "answered"


def _rank_passages(
    state: SessionState, documents: Sequence[int], ordered: OrderedPassages, evidence: Sequence[PoolSentence]
) -> list[int]:
    """Passages that a fact is from first, then the others as they came."""
    return move_evidence_first(list(dict.fromkeys([*ordered.ranked, *documents])), [*state.pool, *evidence])

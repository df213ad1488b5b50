"""Planner "pool" (RFM-RAG): an evidence pool, what of the question's triples it covers, and a query for what is
missing.

Without a language model, rules do all of it. Patterns give the question's triples
(``core.text.question_triples``), and sentences that were read bind their unknowns
(``wings.sessions.core.binding``). The gap is the first open triple whose other end is known; its query is that part
of the question with the values put in. A query is asked only if it is well formed
(``wings.sessions.core.sub_questions``). Where nothing is left to ask, the session says whether what it read may
hold the answer (``wings.sessions.core.answerable``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from engram.context.errors import LlmError
from engram.core.text.question_triples import ANSWER, QuestionTriple, fill_unknowns, open_unknowns, triples
from engram.core.text.words import normalise_words
from engram.providers.llm import Llm
from engram.services.question.query import Fallback
from engram.wings.sessions.core.answerable import has_answer
from engram.wings.sessions.core.binding import Binding, BindingSentence, binds
from engram.wings.sessions.core.chain_binding import bind_chain
from engram.wings.sessions.core.session import Gap, Note, PoolSentence, StopReason
from engram.wings.sessions.core.sub_questions import (
    find_carried_nouns,
    is_well_formed,
    select_whole_names,
    tidy_text,
)
from engram.wings.sessions.llm import session_model
from engram.wings.sessions.llm.session_prompts import VERSION
from engram.wings.sessions.services.planner import SessionStep
from engram.wings.sessions.services.query_drift import list_invented_names, sources
from engram.wings.sessions.services.sentence_sifting import SiftedSentences, sift
from engram.wings.sessions.services.session_rules import move_evidence_first, rank_by_rules, stops
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.session_tools import AskedQuery, FoundPassage, StepTools


@dataclass(frozen=True, slots=True)
class _PoolKnowledge:
    """The planner's state: what the question asks, and what is bound so far."""

    triples: Sequence[QuestionTriple]
    bindings: Mapping[str, Binding]
    names: Sequence[str] = ()

    @property
    def values(self) -> dict[str, str]:
        return {unknown: binding.value for unknown, binding in self.bindings.items()}

    @property
    def missing(self) -> list[QuestionTriple]:
        """Triples whose unknown is still to be found, but for the answer's."""
        return [triple for triple in self.triples if triple.unknown not in (ANSWER, *self.bindings)]

    def find_known_end(self, triple: QuestionTriple) -> str | None:
        """The known end of a triple in words; None while it is not known."""
        filled_triples = fill_unknowns(triple.known_end, self.values)
        return None if open_unknowns(filled_triples) else filled_triples

    def to_json(self) -> dict[str, Any]:
        """Return the knowledge as JSON."""
        return {
            "triples": [asdict(triple) for triple in self.triples],
            "bindings": [asdict(binding) for binding in self.bindings.values()],
        }


@dataclass(frozen=True, slots=True)
class _RoundAssessment:
    """Assessment of a round's evidence.

    Attributes:
        query: what to ask next; empty where nothing is.
        doubtful: whether the rules see no answer in what was read, however high ``sufficiency`` is.
    """

    knowledge: _PoolKnowledge
    bound: Sequence[Binding]
    query: str
    stop: StopReason | None
    warnings: Sequence[Fallback]
    doubtful: bool = False


class PoolPlanner:
    """Rounds by the gaps of the evidence pool."""

    name = "pool"
    needs_llm = False

    def step(self, state: SessionState, tools: StepTools) -> SessionStep:
        """The question itself first; then a query for what is missing, until nothing is."""
        return self.run_by_rules(state, tools) if tools.llm is None else self._run_by_llm(state, tools, tools.llm)

    def run_by_rules(self, state: SessionState, tools: StepTools) -> SessionStep:
        """Do a round without a language model."""
        knowledge = self._load_knowledge(state, tools)
        asked_before = {normalise_words(text) for text in state.queries}
        gap = _gap(state, knowledge, asked_before) if state.rounds else None
        if state.rounds and gap is None:
            return SessionStep(action=None, stop="no_gap")
        text = state.question if gap is None else gap.text
        queries = [_ask_gap(state, tools, text, gap, knowledge)]
        sifted = SiftedSentences(*tools.curate_sentences(queries), [], [])
        knowledge, bound = _bind_unknowns(state, tools, knowledge, queries)
        end = _end(state, tools, knowledge, queries)
        stop = end if _gap(state, knowledge, {*asked_before, normalise_words(text)}) is None else None
        return _step(
            state, gap, queries, sifted, _RoundAssessment(knowledge, bound, "", stop, (), end == "not_found")
        )

    def _run_by_llm(self, state: SessionState, tools: StepTools, llm: Llm) -> SessionStep:
        """Do a round in which the model reads the question, curates, and tells what is settled and missing."""
        knowledge, warnings = self._split(state, tools, llm)
        next_query = str(state.plan_state.get("query", "")) if state.rounds else ""
        gap = Gap(next_query) if next_query else None
        if state.rounds and gap is None:
            gap = _gap(state, knowledge, {normalise_words(text) for text in state.queries})
            if gap is None:
                return SessionStep(action=None, stop="no_gap" if knowledge.missing else "found")
        text = state.question if gap is None else gap.text
        queries = [_ask_gap(state, tools, text, gap, knowledge)]
        sifted = sift(state, tools, queries, text, gap)
        judged = self._assess_pool(state, tools, llm, knowledge, queries, sifted.sentences)
        step = _step(state, gap, queries, sifted, judged)
        ranked = step.ranked or ()
        return replace(
            step,
            ranked=ranked if sifted.warnings else move_evidence_first(ranked, [*state.pool, *step.sentences]),
            plan_state={**(step.plan_state or {}), "query": judged.query},
            said={"prompts": VERSION},
            warnings=[*warnings, *step.warnings],
        )

    def _split(self, state: SessionState, tools: StepTools, llm: Llm) -> tuple[_PoolKnowledge, list[Fallback]]:
        if "triples" in state.plan_state:
            return self._load_knowledge(state, tools), []
        try:
            names = tools.language.analyse_question(state.question).entities
            return _PoolKnowledge(session_model.split(llm, state.question), {}, names), []
        except LlmError as error:
            return self._load_knowledge(state, tools), [Fallback("planned-by-rules", error.detail)]

    def _assess_pool(
        self,
        state: SessionState,
        tools: StepTools,
        llm: Llm,
        knowledge: _PoolKnowledge,
        queries: Sequence[AskedQuery],
        evidence: Sequence[PoolSentence],
    ) -> _RoundAssessment:
        """Assess the pool and choose the next question by the model (R-Feedback and the gap), else by rules."""
        pool = [(one.sentence_id, one.text) for one in (*evidence, *reversed(state.pool))]
        before = {normalise_words(text) for text in (*state.queries, *(query.text for query in queries))}
        facts = [f"{triple.subject} | {triple.relation} | {triple.object}" for triple in knowledge.triples]
        warnings: list[Fallback] = []
        try:
            reply = session_model.gaps(llm, state.question, facts, pool)
            marks = {triple.unknown for triple in knowledge.triples} - {ANSWER, *knowledge.bindings}
            bound = [
                Binding(one.mark, one.value, one.cites[0], 1.0)
                for one in reply.settled
                if one.mark in marks and _states(one.value, one.cites, pool)
            ]
            knowledge = replace(knowledge, bindings={**knowledge.bindings, **{one.unknown: one for one in bound}})
            if reply.sufficient:
                return _RoundAssessment(knowledge, bound, "", "answered", warnings)
            names = list_invented_names(tools, reply.query, sources(state, *(text for _, text in pool)))
            if not names and normalise_words(reply.query) not in before:
                return _RoundAssessment(knowledge, bound, reply.query, None, warnings)
            why = f"names {names[0]!r}, which nothing read names" if names else "was asked before"
            warnings.append(Fallback("planned-by-rules", f"The next query {why}."))
        except LlmError as error:
            warnings.append(Fallback("planned-by-rules", error.detail))
            knowledge, bound = _bind_unknowns(state, tools, knowledge, queries)
        gap = _gap(state, knowledge, before)
        stop: StopReason | None = None if gap else "no_gap" if knowledge.missing else "found"
        return _RoundAssessment(knowledge, bound, "" if gap is None else gap.text, stop, warnings)

    def _load_knowledge(self, state: SessionState, tools: StepTools) -> _PoolKnowledge:
        plan_state = state.plan_state
        names = tools.language.analyse_question(state.question).entities
        if "triples" in plan_state:
            stored = [Binding(**binding) for binding in plan_state["bindings"]]
            split = [QuestionTriple(**triple) for triple in plan_state["triples"]]
            return _PoolKnowledge(split, {one.unknown: one for one in stored}, names)
        return _PoolKnowledge(triples(state.question, names), {}, names)


def _step(
    state: SessionState,
    gap: Gap | None,
    queries: Sequence[AskedQuery],
    sifted: SiftedSentences,
    judged: _RoundAssessment,
) -> SessionStep:
    """The round that this was: what enters the pool, what is noted, the passages in order, and whether it stops."""
    evidence = _add_gaps(sifted.sentences, judged.bound, queries, state)
    notes = _notes(state, judged.knowledge, judged.bound)
    ordered = rank_by_rules(state, queries, evidence, notes)
    return SessionStep(
        action="ask" if gap is None else "fill",
        sub_question=None if gap is None else gap.text,
        gap=gap,
        queries=queries,
        sentences=evidence,
        curated=sifted.curated,
        notes=[*state.notes, *notes, *sifted.contradictions],
        ranked=ordered.ranked,
        sufficiency=ordered.sufficiency,
        covered=_compute_coverage(judged.knowledge, ordered.covered),
        plan_state=judged.knowledge.to_json(),
        stop=stops(state, ordered, judged.stop, doubtful=judged.doubtful),
        warnings=[*sifted.warnings, *judged.warnings],
    )


def _gap(state: SessionState, knowledge: _PoolKnowledge, asked_texts: set[str]) -> Gap | None:
    """The first triple that is still open and makes a well-formed sub-question that was not asked yet."""
    for triple in knowledge.triples:
        is_bound = triple.unknown in knowledge.bindings
        text = None if is_bound else _sub_question(state, knowledge.names, knowledge.values, triple)
        if (
            text is not None
            and normalise_words(text) not in asked_texts
            and normalise_words(text) != normalise_words(state.question)
        ):
            return Gap(text, triple.ends)
    return None


def _sub_question(
    state: SessionState, question_names: Sequence[str], values: Mapping[str, str], triple: QuestionTriple
) -> str | None:
    """Return the question for a triple's unknown; None while its other end is open or it is not well formed."""
    if open_unknowns(fill_unknowns(triple.known_end, values)):
        return None
    phrase = triple.phrase if triple.unknown == ANSWER else triple.phrase.replace(triple.unknown, "")
    names, known_values = select_whole_names(state.question, question_names), list(values.values())
    text = tidy_text(fill_unknowns(phrase, values).strip(), find_carried_nouns(state.question, names), known_values)
    return text if is_well_formed(text, [*names, *known_values]) else None


def _end(
    state: SessionState, tools: StepTools, knowledge: _PoolKnowledge, queries: Sequence[AskedQuery]
) -> StopReason | None:
    """Return the end of a session with nothing left to ask: with the answer among its evidence, or without.

    Where a language model may go on (planner "auto"), only bound unknowns end it.
    """
    if tools.llm is not None:
        return "found" if knowledge.bindings and not knowledge.missing else None
    enough = next((query.sufficiency for query in queries if query.text == state.question), state.sufficiency)
    if knowledge.bindings and not knowledge.missing:
        enough = None  # it is of the first query alone, and what binds was found beside it
    read = tools.read_sentences([*state.read, *(passage.id for query in queries for passage in query.passages)])
    weights = tools.term_weights(state.question)
    answered = has_answer(state.question, knowledge.triples, knowledge.names, read, weights, enough)
    return "found" if answered else "not_found"


def _ask_gap(
    state: SessionState, tools: StepTools, text: str, gap: Gap | None, knowledge: _PoolKnowledge
) -> AskedQuery:
    """A query of a round: from the pool, for what binds its unknown."""
    pool = [sentence.sentence_id for sentence in state.pool]
    return tools.ask(text, pool=pool, binds=_binds(state, tools, gap, knowledge))


def _binds(
    state: SessionState, tools: StepTools, gap: Gap | None, knowledge: _PoolKnowledge
) -> Callable[[FoundPassage], float] | None:
    """Return how well a passage answers the gap's triple; None where no triple describes the gap."""
    triple = next((one for one in knowledge.triples if gap is not None and one.ends == gap.triple), None)
    subject = None if triple is None else knowledge.find_known_end(triple)
    if triple is None or subject is None or "binding" in state.without:
        return None

    def strength(passage: FoundPassage) -> float:
        texts = [sentence.text for sentence in passage.sentences]
        named = zip(passage.sentences, tools.names(texts), strict=True)
        binding_sentences = [
            BindingSentence(sentence.id, sentence.text, names, passage.title) for sentence, names in named
        ]
        return binds(triple, subject, binding_sentences, list(knowledge.values.values()))

    return strength


def _bind_unknowns(
    state: SessionState, tools: StepTools, knowledge: _PoolKnowledge, queries: Sequence[AskedQuery]
) -> tuple[_PoolKnowledge, list[Binding]]:
    """Return the bindings of the sentences read so far; one triple leads to the next."""

    def may_bind(triple: QuestionTriple, values: Mapping[str, str]) -> bool:
        """Whether the rules took the triple's words apart well; a model is trusted with that."""
        return tools.llm is not None or _sub_question(state, knowledge.names, values, triple) is not None

    fresh = bind_chain(
        knowledge.triples,
        knowledge.values,
        _list_binding_sentences(tools, state, queries),
        tools.language.analyse_question(state.question).entities,
        may_bind,
    )
    return replace(knowledge, bindings={**knowledge.bindings, **{one.unknown: one for one in fresh}}), fresh


def _list_binding_sentences(
    tools: StepTools, state: SessionState, queries: Sequence[AskedQuery]
) -> list[BindingSentence]:
    """All sentences of the passages that the round read, and those of the pool."""
    read = {
        sentence.id: (sentence.text, passage.title)
        for query in queries
        for passage in query.passages
        for sentence in passage.sentences
    }
    texts = {one.sentence_id: (one.text, None) for one in state.pool} | read
    named = tools.names([text for text, _ in texts.values()])
    return [
        BindingSentence(key, text, names, title)
        for (key, (text, title)), names in zip(texts.items(), named, strict=True)
    ]


def _add_gaps(
    evidence: Sequence[PoolSentence], bound: Sequence[Binding], queries: Sequence[AskedQuery], state: SessionState
) -> list[PoolSentence]:
    """Return the evidence with the gap that each binding sentence fills; such a sentence always enters."""
    fills = {binding.sentence_id: f"{binding.unknown} = {binding.value}" for binding in bound}
    filled = [replace(one, gap=fills.get(one.sentence_id)) for one in evidence]
    known_ids = {one.sentence_id for one in (*state.pool, *filled)}
    for at, query in enumerate(queries):
        for passage in query.passages:
            for one in passage.sentences:
                if one.id in fills and one.id not in known_ids:
                    known_ids.add(one.id)
                    score = passage.scores.get(one.id)
                    filled.append(
                        PoolSentence(one.id, passage.id, one.text, state.number, at, fills[one.id], score)
                    )
    return filled


def _notes(state: SessionState, knowledge: _PoolKnowledge, bound: Sequence[Binding]) -> list[Note]:
    by_unknown = {triple.unknown: triple for triple in knowledge.triples}
    return [
        Note(
            "binding",
            f"{fill_unknowns(by_unknown[one.unknown].phrase, knowledge.values)}: {one.value}",
            (one.sentence_id,),
            state.number,
        )
        for one in bound
    ]


def _compute_coverage(knowledge: _PoolKnowledge, coverage_of_words: float) -> float:
    """Return the share of the question's words and unknowns that the pool has, in [0, 1]."""
    unknown = {triple.unknown for triple in knowledge.triples} - {ANSWER}
    share = 1.0 if not unknown else len(unknown & set(knowledge.bindings)) / len(unknown)
    return min(coverage_of_words, share)


def _states(value: str, cites: Sequence[int], pool: Sequence[tuple[int, str]]) -> bool:
    """Whether one of the cited sentences has the value in its words."""
    texts = dict(pool)
    return any(f" {normalise_words(value)} " in f" {normalise_words(texts[one])} " for one in cites if one in texts)

"""Planner "rfm-rag": RFM-RAG as published, to be compared with planner "pool", which is ours.

A round: BM25 finds passages for the current query, the model filters them, they enter the evidence pool, and
R-Feedback says whether the pool suffices (the rule "published", see ``round_judge``). If it does not, the next step
begins with the gap: the pool's coverage of the question's triples. Below the threshold the missing part makes the
next query; from the threshold on the session ends.

Retrieval reads no memory, walks no graph and starts from the query alone. Without a language model, rules split the
question and bind its unknowns, and nothing is filtered. docs/paper.md lists what else differs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from engram.context.errors import InvalidRequestError, LlmError
from engram.core.ranking.coverage import coverage
from engram.core.text.question_triples import ANSWER, QuestionTriple, triples
from engram.core.text.words import normalise_words
from engram.providers.llm import Llm
from engram.services.question.query import Fallback
from engram.wings.sessions.core.binding import Binding, BindingSentence
from engram.wings.sessions.core.chain_binding import bind_chain
from engram.wings.sessions.core.session import Gap, Note, PoolSentence, StopRule
from engram.wings.sessions.core.triple_coverage import gap_query, triple_coverage
from engram.wings.sessions.llm import session_model
from engram.wings.sessions.llm.session_prompts import VERSION
from engram.wings.sessions.services.planner import SessionStep
from engram.wings.sessions.services.sentence_sifting import SiftedSentences, sift
from engram.wings.sessions.services.session_rules import move_evidence_first
from engram.wings.sessions.services.session_state import SessionRequest, SessionState
from engram.wings.sessions.services.session_tools import AskedQuery, StepTools
from engram.wings.sessions.services.tree_options import parse_planner_options

RFM_RAG = "rfm-rag"
PUBLISHED_STOP: StopRule = "published"
"""The stop rule that R-Feedback is; no other planner has it."""
BM25: Mapping[str, Any] = {"memory": "off", "profile": "paper", "strategy": "lexical"}
"""Arm of its queries."""


def adapt_request(planner: str, request: SessionRequest) -> SessionRequest:
    """Return the request as the planner runs it: of "rfm-rag" by BM25 and R-Feedback, of others as it is.

    Raises:
        InvalidRequestError: "rfm-rag" is to search otherwise, or another planner is to stop by R-Feedback.
    """
    if planner != RFM_RAG:
        if request.stop == PUBLISHED_STOP:
            raise InvalidRequestError(
                f"stop.rule {PUBLISHED_STOP!r} is R-Feedback, which only planner {RFM_RAG!r} stops by: "
                "'sufficiency' is the rule that verdicts teach."
            )
        return request
    if request.arm is not None and dict(request.arm) != BM25:
        raise InvalidRequestError(f"Planner {RFM_RAG!r} searches by BM25 without memory: it takes no arm.")
    return replace(request, arm=dict(BM25), stop=PUBLISHED_STOP if request.stop == "planner" else request.stop)


@dataclass(frozen=True, slots=True)
class _GapReading:
    """Gap of a pool: its coverage, the next query (None if there is none), and new values of unknowns."""

    share: float
    gap: Gap | None
    bindings: Sequence[Binding]
    warnings: Sequence[Fallback] = ()


class RfmRagPlanner:
    """Rounds of BM25, a pool, a threshold on its coverage, and R-Feedback."""

    name = RFM_RAG
    needs_llm = False

    def step(self, state: SessionState, tools: StepTools) -> SessionStep:
        """The question first; then a query for what the pool does not cover, until it covers enough."""
        split, warnings = _split_question(state, tools)
        bindings = [Binding(**one) for one in state.plan_state.get("bindings", ())]
        gap, notes = None, list(state.notes)
        details: dict[str, Any] = {} if tools.llm is None else {"prompts": VERSION}
        if state.rounds:
            read = _read_gap(state, tools, split, bindings)
            bindings, warnings = [*bindings, *read.bindings], [*warnings, *read.warnings]
            notes += _notes(state, split, bindings, read.bindings)
            ends = read.share >= parse_planner_options(state.request.options).coverage
            if ends or read.gap is None:
                return SessionStep(
                    action=None,
                    notes=notes,
                    covered=read.share,
                    plan_state=_format_state(split, bindings),
                    stop="covered" if ends else "no_gap",
                    warnings=warnings,
                )
            gap, details = read.gap, {**details, "coverage": read.share}
        text = state.question if gap is None else gap.text
        queries = [tools.ask(text)]
        filtered = _filter_sentences(state, tools, queries, text, gap)
        pool = [*state.pool, *filtered.sentences]
        passage_ids = [passage.id for query in queries for passage in query.passages]
        return SessionStep(
            action="ask" if gap is None else "fill",
            sub_question=None if gap is None else gap.text,
            gap=gap,
            queries=queries,
            sentences=filtered.sentences,
            curated=filtered.curated,
            notes=[*notes, *filtered.contradictions],
            ranked=move_evidence_first(list(dict.fromkeys([*state.ranked, *passage_ids])), pool),
            covered=coverage(state.question, [one.text for one in pool]),
            plan_state=_format_state(split, bindings),
            said=details,
            warnings=[*warnings, *filtered.warnings],
        )


def _split_question(state: SessionState, tools: StepTools) -> tuple[list[QuestionTriple], list[Fallback]]:
    """Return the triples of the question, by the model in the first round, else by rules."""
    if "triples" in state.plan_state:
        return [QuestionTriple(**one) for one in state.plan_state["triples"]], []
    warnings = []
    if tools.llm is not None:
        try:
            return session_model.split(tools.llm, state.question), []
        except LlmError as error:
            warnings.append(Fallback("planned-by-rules", error.detail))
    return triples(state.question, tools.language.analyse_question(state.question).entities), warnings


def _filter_sentences(
    state: SessionState, tools: StepTools, queries: Sequence[AskedQuery], text: str, gap: Gap | None
) -> SiftedSentences:
    """Return the sentences that the model keeps; without one, or where it fails, all that is no repetition."""
    if tools.llm is not None:
        sifted = sift(state, tools, queries, text, gap)
        if not sifted.warnings:
            return sifted
        warnings = sifted.warnings
    else:
        warnings = []
    every = {one.id: gap for query in queries for passage in query.passages for one in passage.sentences}
    return SiftedSentences(*tools.curate_sentences(queries, every), [], warnings)


def _read_gap(
    state: SessionState, tools: StepTools, split: Sequence[QuestionTriple], bindings: Sequence[Binding]
) -> _GapReading:
    """Read what the pool lacks, and the query for it."""
    pool = _pool_sentences(state, tools)
    warnings: list[Fallback] = []
    fresh: list[Binding] = []
    query, answered = "", False
    if tools.llm is not None:
        try:
            query, answered, fresh = _find_gap_by_model(state, tools.llm, split, bindings)
        except LlmError as error:
            warnings.append(Fallback("planned-by-rules", error.detail))
            fresh = _bind_by_rules(state, tools, split, bindings, pool)
    else:
        fresh = _bind_by_rules(state, tools, split, bindings, pool)
    values = {one.unknown: one.value for one in (*bindings, *fresh)}
    covered = triple_coverage(split, values, pool, answered=answered)
    asked_before = {normalise_words(text) for text in state.queries}
    gaps = [Gap(query)] if query else []
    gaps += [Gap(gap_query(triple, values), triple.ends) for triple in covered.missing]
    gap = next((one for one in gaps if normalise_words(one.text) not in asked_before), None)
    return _GapReading(covered.share, gap, fresh, warnings)


def _find_gap_by_model(
    state: SessionState, llm: Llm, split: Sequence[QuestionTriple], bindings: Sequence[Binding]
) -> tuple[str, bool, list[Binding]]:
    """Return the model's next query, whether the pool answers the question, and the unknowns that it settles."""
    facts = [" | ".join(triple.ends) for triple in split]
    reply = session_model.gaps(
        llm, state.question, facts, [(one.sentence_id, one.text) for one in reversed(state.pool)]
    )
    marks = {triple.unknown for triple in split} - {ANSWER, *(one.unknown for one in bindings)}
    settled = [
        Binding(one.mark, one.value, one.cites[0], 1.0) for one in reply.settled if one.mark in marks and one.cites
    ]
    return reply.query, reply.sufficient, settled


def _bind_by_rules(
    state: SessionState,
    tools: StepTools,
    split: Sequence[QuestionTriple],
    bindings: Sequence[Binding],
    pool: Sequence[BindingSentence],
) -> list[Binding]:
    """Return the unknowns that sentences of the pool bind; one triple leads to the next."""
    values = {one.unknown: one.value for one in bindings}
    return bind_chain(split, values, pool, tools.language.analyse_question(state.question).entities)


def _pool_sentences(state: SessionState, tools: StepTools) -> list[BindingSentence]:
    """The sentences of the pool with the titles of their passages and the names in them."""
    by_id = {one.sentence.sentence_id: one.sentence for one in tools.read_sentences(_passages(state.pool))}
    standing = [by_id[one.sentence_id] for one in state.pool if one.sentence_id in by_id]
    names = tools.names([one.text for one in standing])
    return [replace(one, names=named) for one, named in zip(standing, names, strict=True)]


def _passages(pool: Sequence[PoolSentence]) -> set[int]:
    return {one.passage_id for one in pool}


def _notes(
    state: SessionState, split: Sequence[QuestionTriple], bindings: Sequence[Binding], fresh: Sequence[Binding]
) -> list[Note]:
    values = {one.unknown: one.value for one in bindings}
    by_unknown = {triple.unknown: triple for triple in split}
    return [
        Note(
            "binding",
            f"{gap_query(by_unknown[one.unknown], values)}: {one.value}",
            (one.sentence_id,),
            len(state.rounds),
        )
        for one in fresh
    ]


def _format_state(split: Sequence[QuestionTriple], bindings: Sequence[Binding]) -> dict[str, Any]:
    return {"triples": [asdict(one) for one in split], "bindings": [asdict(one) for one in bindings]}

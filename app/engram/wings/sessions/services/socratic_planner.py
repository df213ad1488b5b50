"""Planner "socratic" (State-Aware RAG, one chain of A1 and A5): a sub-question, what it finds, what is known then.

A round: the model says from the working memory whether the question can be answered, and if not the next
sub-question; queries for it; retrieval; consolidation (Eq. 1); an answer to the sub-question; the memory anew
(Eq. 2). The first round asks the session's own question as well, so that its passages are ranked by more than
parts and a verdict reaches it. What the model fails is done by rules and said; where it cannot even say what to
ask, the round is the pool planner's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engram.context.errors import LlmError
from engram.providers.llm import DraftAnswer, Llm
from engram.services.question.query import Fallback
from engram.wings.sessions.core.session import Note, PoolSentence
from engram.wings.sessions.llm import session_model
from engram.wings.sessions.llm.session_prompts import VERSION
from engram.wings.sessions.services.planner import SessionStep
from engram.wings.sessions.services.pool_planner import PoolPlanner
from engram.wings.sessions.services.query_drift import list_invented_names, sources
from engram.wings.sessions.services.sentence_sifting import SiftedSentences, sift
from engram.wings.sessions.services.session_rules import move_evidence_first, rank_by_rules
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.session_tools import StepTools


@dataclass(frozen=True, slots=True)
class SocraticPlanner:
    """One chain of sub-questions.

    Attributes:
        rules: whose rounds it does where the model cannot say what to ask.
    """

    rules: PoolPlanner
    name = "socratic"
    needs_llm = True

    def step(self, state: SessionState, tools: StepTools) -> SessionStep:
        """The next sub-question and what came of it, or the end."""
        if tools.llm is None:
            return self.rules.step(state, tools)
        notes = [note.text for note in state.notes]
        try:
            next_step = session_model.ask_next_step(tools.llm, state.question, notes, state.sub_questions)
        except LlmError as error:
            step = self.rules.run_by_rules(state, tools)
            return replace(step, warnings=(*step.warnings, Fallback("planned-by-rules", error.detail)))
        if next_step.answerable and state.rounds:
            return SessionStep(action=None, stop="answered")
        return self._round(state, tools, tools.llm, next_step.sub_question or state.question)

    def _round(self, state: SessionState, tools: StepTools, llm: Llm, sub_question: str) -> SessionStep:
        without = frozenset((state.request.options or {}).get("without", ()))
        texts, warnings = self._queries(state, tools, llm, sub_question)
        pool = [sentence.sentence_id for sentence in state.pool]
        queries = [tools.ask(text, pool=pool) for text in texts]
        if "consolidation" in without:
            sifted = SiftedSentences(*tools.curate_sentences(queries), [], [])
        else:
            sifted = sift(state, tools, queries, sub_question, None)
        warnings += sifted.warnings
        evidence = [replace(one, gap=sub_question) for one in sifted.sentences]
        answer, failed = self._answer(llm, sub_question, [*state.pool, *evidence])
        warnings += failed
        if "update" in without:
            notes, failed = _add_notes(state, evidence, answer), []
        else:
            notes, failed = self._update_notes(state, llm, evidence, sub_question, answer)
        ordered = rank_by_rules(state, queries, evidence)
        ranked = (
            ordered.ranked if sifted.warnings else move_evidence_first(ordered.ranked, [*state.pool, *evidence])
        )
        return SessionStep(
            action="decompose",
            sub_question=sub_question,
            queries=queries,
            sentences=evidence,
            curated=sifted.curated,
            notes=[*notes, *sifted.contradictions],
            ranked=ranked,
            sufficiency=ordered.sufficiency,
            covered=ordered.covered,
            said={"answer": answer.text, "answer_cites": list(answer.cited), "prompts": VERSION},
            warnings=[*warnings, *failed],
        )

    def _queries(
        self, state: SessionState, tools: StepTools, llm: Llm, sub_question: str
    ) -> tuple[list[str], list[Fallback]]:
        """Return the queries to ask, without names that neither question nor evidence has."""
        own = [state.question] if not state.rounds else []
        warnings: list[Fallback] = []
        try:
            texts = session_model.queries(llm, sub_question, [note.text for note in state.notes])
        except LlmError as error:
            texts, warnings = [sub_question], [Fallback("planned-by-rules", error.detail)]
        known_sources = sources(state)
        for text in list(texts):
            names = list_invented_names(tools, text, known_sources)
            if names:
                texts.remove(text)
                warnings.append(
                    Fallback("planned-by-rules", f"A query named {names[0]!r}, which nothing read names.")
                )
        if not texts and not list_invented_names(tools, sub_question, known_sources):
            texts = [sub_question]
        return list(dict.fromkeys([*own, *texts])) or [state.question], warnings

    def _answer(
        self, llm: Llm, sub_question: str, pool: Sequence[PoolSentence]
    ) -> tuple[DraftAnswer, list[Fallback]]:
        try:
            # What came last answers the sub-question most likely, and what is too long is cut from the end.
            return llm.answer(sub_question, [(one.sentence_id, one.text) for one in reversed(pool)]), []
        except LlmError as error:
            return DraftAnswer("", (), False), [Fallback("not-answered", error.detail)]

    def _update_notes(
        self,
        state: SessionState,
        llm: Llm,
        evidence: Sequence[PoolSentence],
        sub_question: str,
        answer: DraftAnswer,
    ) -> tuple[list[Note], list[Fallback]]:
        """The working memory anew; contradictions that were named stay, whatever the model leaves out."""
        named = [note for note in state.notes if note.kind == "contradiction"]
        facts = [note.text for note in state.notes if note.kind != "contradiction"]
        pool = [(one.sentence_id, one.text) for one in (*evidence, *reversed(state.pool))]
        try:
            noted = session_model.note(llm, state.question, facts, pool, sub_question, answer.text)
        except LlmError as error:
            return _add_notes(state, (), answer), [Fallback("noted-by-rules", error.detail)]
        fresh = [
            Note("contradiction" if one.contradicts else "fact", one.text, one.cites, state.number) for one in noted
        ]
        return [*named, *fresh], []


def _add_notes(state: SessionState, evidence: Sequence[PoolSentence], answer: DraftAnswer) -> list[Note]:
    """The notes as they were, what was found word for word, and the step's answer if it rests on sentences."""
    notes = [*state.notes, *(Note("fact", one.text, (one.sentence_id,), state.number) for one in evidence)]
    if answer.text and answer.cited:
        notes.append(Note("answer", answer.text, answer.cited, state.number))
    return notes

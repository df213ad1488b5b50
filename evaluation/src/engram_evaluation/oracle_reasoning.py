"""Replies of the oracle to planners and to judges of reasoning, by the fields that a prompt asks for."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from engram.wings.sessions.core.rewards import HIGHEST_RATING
from engram_evaluation import answer_marking
from engram_evaluation.decomposition import fill_references
from engram_evaluation.oracle_knowledge import Case, Knowledge, says
from engram_evaluation.reasoning_rewards import GRADES, OUTCOME, PATH

Fields = dict[str, Any]
Parts = Mapping[str, str]
"""Tag -> what a prompt quotes under it."""
LOW_RATING = 2
"""Rating of an answer that the evidence does not bear out."""
_LINE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


def lines(parts: Parts) -> dict[int, str]:
    """Number -> quoted sentence of the evidence."""
    return {int(number): text for number, text in _LINE.findall(parts.get("evidence", ""))}


def _check_stated_hops(case: Case, parts: Parts, known: bool = True) -> list[bool]:
    """Tell for each hop whether the evidence, or a note if ``known``, states its answer and the earlier ones."""
    evidence = list(lines(parts).values())
    notes = _read_list(parts, "notes") if known else []
    is_stated: list[bool] = []
    for hop, asked, gold in zip(case.hops, case.hop_questions, case.gold, strict=True):
        stated = any(says(line, one) for one in gold for line in evidence)
        noted = any(asked in note and hop.answer in note for note in notes)
        is_stated.append((stated or noted) and all(is_stated[before] for before in hop.after))
    return is_stated


def _read_list(parts: Parts, tag: str) -> list[str]:
    return [line.removeprefix("- ") for line in parts.get(tag, "").split("\n") if line not in {"", "-"}]


def _case(knowledge: Knowledge, parts: Parts) -> Case:
    case = knowledge.case(parts["question"])
    if case is None:
        raise LookupError("The oracle does not know the question.")
    return case


def _open(case: Case, is_known: Sequence[bool], tried: Collection[str]) -> str | None:
    """The first hop to ask that was not asked, or one that was, in other words; None if all is told."""
    unknown = [
        at for at, hop in enumerate(case.hops) if not is_known[at] and all(is_known[before] for before in hop.after)
    ]
    if not unknown:
        return None
    fresh = [at for at in unknown if case.hop_questions[at] not in tried]
    return case.hop_questions[fresh[0]] if fresh else case.reworded[unknown[0]]


def _split(knowledge: Knowledge, parts: Parts) -> Fields:
    """The hops as triples; where none of them is the answer's, one more that compares what they come to."""
    case = _case(knowledge, parts)
    last = len(case.hops) - 1
    ends = bool(answer_marking.score_exact_match(case.hops[last].answer, case.question.answers))
    marks = {at: f"?{at + 1}" for at in range(len(case.hops))} | ({last: "?"} if ends else {})
    triples = [
        {
            "subject": fill_references(hop.subject, marks),
            "relation": fill_references(hop.relation, marks),
            "object": marks[at],
            "question": fill_references(hop.question, marks),
        }
        for at, hop in enumerate(case.hops)
    ]
    if not ends:
        compared = {"subject": marks[0], "relation": "compared with", "object": "?"}
        triples.append({**compared, "question": case.question.text})
    return {"triples": triples}


def _gaps(knowledge: Knowledge, parts: Parts) -> Fields:
    case, shown = _case(knowledge, parts), lines(parts)
    is_known = _check_stated_hops(case, parts, known=False)
    settled = [
        {
            "mark": f"?{at + 1}",
            "value": hop.answer,
            "cited": knowledge.list_supporting(case.hop_questions[at], shown),
        }
        for at, hop in enumerate(case.hops)
        if is_known[at]
    ]
    query = _open(case, is_known, ())
    return {"settled": settled, "sufficient": query is None, "query": query or ""}


def _keep(knowledge: Knowledge, parts: Parts) -> Fields:
    return {"kept": knowledge.list_supporting(parts["question"], lines(parts)), "contradictions": []}


def _note(knowledge: Knowledge, parts: Parts) -> Fields:
    """One note for each hop that a sentence shown states."""
    case, shown = _case(knowledge, parts), lines(parts)
    cited = [knowledge.list_supporting(asked, shown) for asked in case.hop_questions]
    return {
        "notes": [
            {"text": f"{asked} {hop.answer}", "cited": numbers, "contradicts": False}
            for hop, asked, numbers in zip(case.hops, case.hop_questions, cited, strict=True)
            if numbers
        ]
    }


def _step(knowledge: Knowledge, parts: Parts) -> Fields:
    case = _case(knowledge, parts)
    following = _open(case, _check_stated_hops(case, parts), _read_list(parts, "asked_already"))
    return {"answerable": following is None, "sub_question": following or ""}


def _queries(knowledge: Knowledge, parts: Parts) -> Fields:
    return {"queries": [parts["question"]]}


def _consolidate(knowledge: Knowledge, parts: Parts) -> Fields:
    """The last hop that the evidence tells, if no note has it."""
    case, shown = _case(knowledge, parts), lines(parts)
    is_known = _check_stated_hops(case, parts, known=False)
    for at in reversed(range(len(is_known))):
        finding = f"{case.hop_questions[at]} {case.hops[at].answer}"
        if is_known[at] and finding not in parts["notes"]:
            return {"conclusion": finding, "cited": knowledge.list_supporting(case.hop_questions[at], shown)}
    return {"conclusion": "", "cited": []}


def _refine(knowledge: Knowledge, parts: Parts) -> Fields:
    known_answer = knowledge.find_stated_answer(parts["question"], lines(parts))
    if known_answer is None:
        return {"verdict": "unsupported", "answer": "", "cited": []}
    is_equal = answer_marking.score_exact_match(parts["proposed_answer"], [known_answer])
    cited = knowledge.list_supporting(parts["question"], lines(parts))
    return {"verdict": "correct" if is_equal else "incorrect", "answer": known_answer, "cited": cited}


def _redirect(knowledge: Knowledge, parts: Parts) -> Fields:
    hop = knowledge.hop(parts["question"])
    return {"reworded": parts["question"] if hop is None else hop[0].reworded[hop[1]]}


def _rate(knowledge: Knowledge, parts: Parts) -> Fields:
    known_answer = knowledge.find_stated_answer(parts["question"], lines(parts))
    right = known_answer is not None and answer_marking.score_exact_match(parts["proposed_answer"], [known_answer])
    return {"rating": HIGHEST_RATING if right else LOW_RATING}


def _grade_step(knowledge: Knowledge, parts: Parts) -> Fields:
    shown, step = lines(parts), parts["step_question"]
    known_answer = knowledge.find_stated_answer(step, shown)
    right = known_answer is not None and bool(
        answer_marking.score_exact_match(parts["step_answer"], [known_answer])
    )
    grades = (bool(knowledge.list_supporting(step, shown)), known_answer is not None, right, right)
    return {name: GRADES[-1] if good else GRADES[0] for name, good in zip(PATH, grades, strict=True)}


def _grade_outcome(knowledge: Knowledge, parts: Parts) -> Fields:
    case = _case(knowledge, parts)
    complete = all(hop.answer in parts["steps"] for hop in case.hops)
    accepted = _read_list(parts, "accepted")
    right = bool(answer_marking.score_exact_match(parts["proposed_answer"], accepted or [case.answer]))
    grades = (complete, complete, True, right)
    graded = {name: GRADES[-1] if good else GRADES[0] for name, good in zip(OUTCOME, grades, strict=True)}
    return graded if accepted else {name: graded[name] for name in OUTCOME[:-1]}


REASONING: Mapping[str, Callable[[Knowledge, Parts], Fields]] = {
    '"triples"': _split,
    '"settled"': _gaps,
    '"kept"': _keep,
    '"notes"': _note,
    '"sub_question"': _step,
    '"queries"': _queries,
    '"conclusion"': _consolidate,
    '"verdict"': _refine,
    '"reworded"': _redirect,
    '"rating"': _rate,
    f'"{PATH[0]}"': _grade_step,
    f'"{OUTCOME[1]}"': _grade_outcome,
}
"""Field that a reply to a prompt is to have -> what replies to it."""

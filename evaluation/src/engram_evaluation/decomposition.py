"""Decompositions of multi-hop questions by their authors: hops, answers, and the evidence of each.

MuSiQue writes them out (``metadata.steps``); 2WikiMultihopQA gives triples (``metadata.evidences``), of which each
is read as the question for its object. A hop that starts from another one's answer names it as ``#1``, ``#2``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engram_evaluation.dataset_files import DatasetError

REFERENCE = re.compile(r"#(\d+)")
_WORD = re.compile(r"[^\W_]+")
_SMALL = frozenset("a an and at by de for from in is of on or the to was were with".split())
_PATH = re.compile(r"^(?P<of>.+?)\s*>>\s*(?P<what>.+)$")


@dataclass(frozen=True, slots=True)
class ReasoningHop:
    """One step of the way to an answer.

    Attributes:
        question: as a person would ask it; ``#n`` stands for the answer of hop n, counted from 1.
        answer: what it comes to.
        subject, relation: the question as a triple whose object is the answer; the subject may be a ``#n``.
        after: places, from 0, of the hops whose answers it starts from.
        passage_id: the passage that says so; None where the data set does not name it.
    """

    question: str
    answer: str
    subject: str
    relation: str
    after: tuple[int, ...] = ()
    passage_id: str | None = None


def hops(where: str, metadata: Mapping[str, Any]) -> tuple[ReasoningHop, ...]:
    """The hops that a query's metadata give, in an order in which they can be answered; none of most data sets.

    Raises:
        DatasetError: they are of another form.
    """
    steps, triples = metadata.get("steps") or [], metadata.get("evidences") or []
    if not (isinstance(steps, list) and isinstance(triples, list)):
        raise DatasetError(f"{where}: metadata.steps and metadata.evidences must be lists.")
    steps_given = tuple(_step(where, at, step) for at, step in enumerate(steps))
    return steps_given or _chain_triples(_triple(where, one) for one in triples)


def fill_references(text: str, answers: Mapping[int, str]) -> str:
    """The text with ``#n`` replaced by the answer of the hop at place n - 1; one that has none stays."""
    return REFERENCE.sub(lambda found: answers.get(int(found[1]) - 1, found[0]), text)


def words(text: str) -> frozenset[str]:
    """The words of a text that say something, case-folded."""
    return frozenset(word.casefold() for word in _WORD.findall(text)) - _SMALL


def _step(where: str, at: int, step: Any) -> ReasoningHop:
    if not (isinstance(step, dict) and all(isinstance(step.get(name), str) for name in ("question", "answer"))):
        raise DatasetError(f"{where}: a step has a question and an answer, unlike {step!r}.")
    question, passage = " ".join(step["question"].split()), step.get("passage_id")
    if short := _PATH.match(question):  # "Albert, King of #1 >> place of birth"
        subject, relation = short["of"], short["what"]
        question = f"What is the {relation} of {subject}?"
    else:
        subject, relation = next((f"#{number}" for number in REFERENCE.findall(question)), question), question
    named = dict.fromkeys(int(number) - 1 for number in REFERENCE.findall(question))
    # "#1 hit" in a first step is no reference.
    after = tuple(before for before in named if 0 <= before < at)
    return ReasoningHop(
        question, step["answer"], subject, relation, after, passage if isinstance(passage, str) else None
    )


def _triple(where: str, triple: Any) -> tuple[str, str, str]:
    if not (isinstance(triple, list) and len(triple) == 3 and all(isinstance(part, str) for part in triple)):
        raise DatasetError(f"{where}: an evidence is [subject, relation, object], not {triple!r}.")
    return triple[0], triple[1], triple[2]


def _chain_triples(triples: Iterable[tuple[str, str, str]]) -> tuple[ReasoningHop, ...]:
    """One hop for each triple; a subject that an earlier object names is that hop's answer."""
    made: list[ReasoningHop] = []
    for subject, relation, answer in _order_triples(list(triples)):
        before = next((at for at, hop in enumerate(made) if _names(hop.answer, subject)), None)
        start = subject if before is None else f"#{before + 1}"
        after = () if before is None else (before,)
        made.append(ReasoningHop(f"What is the {relation} of {start}?", answer, start, relation, after))
    return tuple(made)


def _order_triples(triples: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return the triples with subjects that no other's object names first, otherwise in the given order."""
    starts = [one for one in triples if not any(_names(o[2], one[0]) for o in triples if o is not one)]
    return [*starts, *(one for one in triples if one not in starts)]


def _names(answer: str, subject: str) -> bool:
    """Whether one is the other, or a part of it: "King John of England" and "John"."""
    one, other = words(answer), words(subject)
    return bool(one and other) and (one <= other or other <= one)

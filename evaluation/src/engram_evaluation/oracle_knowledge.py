"""Knowledge of an oracle: the hops of each question, and the sentences that state their answers."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.decomposition import ReasoningHop, fill_references, words

MOST_MARKED = 6
"""Marked sentences up to which every way to share them out is looked at: 720 of them."""
_BRACKETS = str.maketrans({"<": "‹", ">": "›", "\x00": None})


@dataclass(frozen=True, slots=True)
class Case:
    """A question with the way to its answer.

    Attributes:
        gold: of each hop the sentences that state its answer, any of which is enough; as prompts quote them.
        support: all supporting sentences, as prompts quote them.
        hop_questions: each hop's question with the answers before it filled in.
        reworded: the hop questions in other words.
    """

    question: Question
    gold: tuple[frozenset[str], ...]
    support: frozenset[str]
    hop_questions: tuple[str, ...]
    reworded: tuple[str, ...]

    @property
    def answer(self) -> str:
        """The main accepted answer."""
        return self.question.answers[0]

    @property
    def hops(self) -> tuple[ReasoningHop, ...]:
        """The question's hops."""
        return self.question.hops

    def check_hops(self, lines: Iterable[str]) -> list[bool]:
        """Tell for each hop whether these sentences state its answer and those of the hops it starts from."""
        texts = list(lines)
        is_stated: list[bool] = []
        for hop, gold in zip(self.hops, self.gold, strict=True):
            stated = any(says(line, one) for one in gold for line in texts)
            is_stated.append(stated and all(is_stated[before] for before in hop.after))
        return is_stated

    def answers(self, is_known: Sequence[bool]) -> dict[int, str]:
        """Number of a hop -> its answer, of the hops that are known."""
        return {
            number: hop.answer for number, (hop, known) in enumerate(zip(self.hops, is_known, strict=True)) if known
        }


class Knowledge:
    """All questions of a data set that it takes apart itself, by their words."""

    def __init__(self, dataset: Dataset) -> None:
        passages = {passage["id"]: passage for passage in dataset.passages}
        decomposed = [one for one in (*dataset.questions, *dataset.unlabelled) if one.hops and one.answers]
        self._cases = {quote_text(question.text).casefold(): _case(question, passages) for question in decomposed}
        self._size = len(self._cases)
        for question in decomposed:
            for paraphrase in dataset.paraphrases.get(question.id, ()):
                text = quote_text(paraphrase.text).casefold()
                self._cases[text] = self._cases[quote_text(question.text).casefold()]
        self._hops = {
            text.casefold(): (case, number)
            for case in self._cases.values()
            for texts in (case.reworded, case.hop_questions)
            for number, text in enumerate(texts)
        }
        self._every = list(self._hops.values())
        self._triples: dict[str, dict[tuple[str, str, str], None]] = {}
        for case in self._cases.values():
            for hop, gold in zip(case.hops, case.gold, strict=True):
                subject = fill_references(hop.subject, dict(enumerate(one.answer for one in case.hops)))
                for sentence in gold:
                    self._triples.setdefault(sentence, {})[subject, hop.relation, hop.answer] = None

    def __len__(self) -> int:
        return self._size

    def case(self, question: str) -> Case | None:
        """Return the case of a question; None if there is none."""
        return self._cases.get(quote_text(question).casefold())

    def hop(self, sub_question: str) -> tuple[Case, int] | None:
        """Return the case and number of the hop that a sub-question asks; None if it asks none."""
        return self._hops.get(quote_text(sub_question).casefold())

    def find_stated_answer(self, question: str, lines: Mapping[int, str]) -> str | None:
        """Return the answer that the sentences state to a question or one of its hops; None without."""
        if (case := self.case(question)) is not None:
            return case.answer if all(case.check_hops(lines.values())) else None
        if (case_and_hop := self.hop(question)) is not None:
            case, number = case_and_hop
            is_stated = any(says(line, gold) for gold in case.gold[number] for line in lines.values())
            return case.hops[number].answer if is_stated else None
        return None

    def list_supporting(self, question: str, lines: Mapping[int, str]) -> list[int]:
        """Numbers of the sentences that are gold for a whole question, or for one hop of one."""
        gold: frozenset[str] = frozenset()
        if (case := self.case(question)) is not None:
            gold = case.support.union(*case.gold)
        elif (case_and_hop := self.hop(question)) is not None:
            case, number = case_and_hop
            gold = case.gold[number]
        return [line_number for line_number, line in lines.items() if any(says(line, one) for one in gold)]

    def list_stated_triples(self, lines: Mapping[int, str]) -> list[tuple[int, str, str, str]]:
        """Return what the sentences state of hops: the sentence's number, subject, relation and answer."""
        return [
            (number, *triple)
            for number, line in lines.items()
            for gold, triples in self._triples.items()
            if says(line, gold)
            for triple in triples
        ]

    def draw_hop(self, draw: random.Random) -> tuple[Case, int]:
        """Draw a hop of any question: its case, and its number."""
        return draw.choice(self._every)


def quote_text(text: str) -> str:
    """The text as prompts quote it: one line, without angle brackets."""
    return " ".join(text.translate(_BRACKETS).split())


def says(line: str, sentence: str) -> bool:
    """Whether a line holds the sentence, or, cut shorter by another splitter, most of it."""
    return sentence in line or (2 * len(line) >= len(sentence) and line in sentence)


def _case(question: Question, passages: Mapping[str, Mapping[str, Any]]) -> Case:
    """Make the case of a question: find the sentences that state its hops' answers, and fill in hop questions."""
    answers = {number: hop.answer for number, hop in enumerate(question.hops)}
    if any(hop.passage_id is not None for hop in question.hops):
        stating = [_find_answer_sentences(question, hop, passages) for hop in question.hops]
    else:
        stating = _assign_sentences(question, answers, passages)
    return Case(
        question,
        tuple(frozenset(quote_text(text) for text in texts) for texts in stating),
        frozenset(quote_text(gold.text) for gold in question.gold),
        tuple(quote_text(fill_references(hop.question, answers)) for hop in question.hops),
        tuple(quote_text(fill_references(_reword_hop(hop), answers)) for hop in question.hops),
    )


def _reword_hop(hop: ReasoningHop) -> str:
    """Return a hop's question in other words."""
    if hop.relation == hop.question:
        return f"{hop.question} That is to be found out."
    return f"{hop.subject}: {hop.relation}"


def _find_answer_sentences(
    question: Question, hop: ReasoningHop, passages: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """The sentences of a hop's passage that state its answer: those marked, else those that have it, else all."""
    passage = passages.get(hop.passage_id or "")
    if passage is None:
        return []
    answer = words(hop.answer)
    marked = [gold.text for gold in question.gold if gold.passage_id == hop.passage_id]
    texts = marked or passage["sentences"] or [passage["text"]]
    return [text for text in texts if answer and answer <= words(text)] or list(texts)


def _assign_sentences(
    question: Question, answers: Mapping[int, str], passages: Mapping[str, Mapping[str, Any]]
) -> list[list[str]]:
    """Each hop's own marked sentence, so that all of them together are most like their hops; none where none is."""
    titles = [str(passages[gold.passage_id]["title"] or "") for gold in question.gold]
    likeness = [
        [
            _share(words(hop.answer), words(gold.text))
            + _share(subject, words(title))
            + _share(subject, words(gold.text)) / 2
            for gold, title in zip(question.gold, titles, strict=True)
        ]
        for hop in question.hops
        for subject in [words(fill_references(hop.subject, answers))]
    ]
    if not question.gold:
        return [[] for _ in question.hops]
    if len(question.gold) < len(question.hops) or len(question.gold) > MOST_MARKED:
        chosen = [max(range(len(row)), key=row.__getitem__) for row in likeness]
    else:
        every = permutations(range(len(question.gold)), len(question.hops))
        chosen = list(
            max(every, key=lambda order: sum(row[place] for row, place in zip(likeness, order, strict=True)))
        )
    return [[question.gold[place].text] for place in chosen]


def _share(needed: frozenset[str], present: frozenset[str]) -> float:
    """Return the share of the needed words that are present, in [0, 1]; 0 if none is needed."""
    return len(needed & present) / len(needed) if needed else 0.0

"""Check the facts that the rules read in 502 sentences of news, minutes, handbooks and e-mails.

The facts that each sentence states are known (``workplace/README.md``). An extracted fact is right if subject,
predicate, object and both days are those of a known fact. It is left out of the count if it is one of the true
statements in other words that the sentence lists. Every other extracted fact is wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from engram.core.knowledge.triples import Triple
from engram.core.text.temporal import TimeExpression, time_constraint
from engram.providers.language import Language, PassageText, extract_facts, normalise_entity
from engram_evaluation.dataset_files import DatasetError, json_lines, read_text
from engram_evaluation.extraction_protocol import is_same_object

FOLDER = Path(__file__).parent / "workplace"
Half = Literal["develop", "kept back"]
HALVES: tuple[Half, ...] = get_args(Half)
_ARTICLES = frozenset({"the", "a", "an"})
_MONTHS = "January February March April May June July August September October November December".split()


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact that a sentence states.

    Attributes:
        start, end: the year, the month or the day on which it begins and ends, as in the file; None: not stated.
    """

    subject: str
    predicate: str
    object: str
    start: str | None
    end: str | None


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence with the facts that it states.

    Attributes:
        kind: of text: news, minutes, handbook or email.
        before: the sentences in front of it in its passage.
        also: true statements in other words: subject, a word of the predicate, object.
    """

    id: str
    half: Half
    kind: str
    title: str | None
    before: tuple[str, ...]
    text: str
    facts: tuple[KnownFact, ...]
    also: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class ReadingCounts:
    """Facts that the rules read in one sentence: counts of right, missing and wrong ones."""

    sentence: CheckedSentence
    right: int
    missing: tuple[KnownFact, ...]
    wrong: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over some sentences; precision and recall are None where nothing was read or stated."""

    name: str
    sentences: int
    stated: int
    right: int
    wrong: int

    @property
    def precision(self) -> float | None:
        """Share of the extracted facts that are right, in [0, 1]."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None

    @property
    def recall(self) -> float | None:
        """Share of the stated facts that were extracted, in [0, 1]."""
        return self.right / self.stated if self.stated else None


def load_sentences(folder: Path = FOLDER) -> list[CheckedSentence]:
    """Read the sentences of both halves.

    Raises:
        DatasetError: a line lacks a field.
    """
    sentences = []
    for half in HALVES:
        for where, row in json_lines(folder / f"{half.replace(' ', '_')}.jsonl"):
            try:
                facts = tuple(
                    KnownFact(one["subject"], one["predicate"], one["object"], one["from"], one["until"])
                    for one in row["facts"]
                )
                also = tuple((subject, word, thing) for subject, word, thing in row["also"])
                before, title = tuple(row["before"]), row["title"]
            except (KeyError, TypeError, ValueError) as error:
                raise DatasetError(f"{where}: a line needs title, before, facts and also: {error!r}.") from None
            name, kind, text = (read_text(where, row, field) for field in ("id", "kind", "sentence"))
            sentences.append(CheckedSentence(name, half, kind, title, before, text, facts, also))
    return sentences


def check(sentences: Sequence[CheckedSentence], language: Language) -> list[ReadingCounts]:
    """Read each sentence in its passage, and compare the facts with those that it states."""
    passages = [
        PassageText(one.title, " ".join((*one.before, one.text)), (*one.before, one.text)) for one in sentences
    ]
    return [
        compare(one, [fact for fact in extract_facts(one.title, analysed) if fact.sentence == len(one.before)])
        for one, analysed in zip(sentences, language.analyse_passages(passages), strict=True)
    ]


def compare(sentence: CheckedSentence, read: Iterable[Triple]) -> ReadingCounts:
    """Count the extracted facts of one sentence against those that it states."""
    missing = list(sentence.facts)
    right, wrong = 0, []
    for fact in read:
        matching_fact = next((one for one in missing if _is_same(fact, one)), None)
        if matching_fact is not None:
            missing.remove(matching_fact)
            right += 1
        elif not any(_is_same(fact, one) for one in sentence.facts) and not _is_also(fact, sentence.also):
            wrong.append(fact)
    return ReadingCounts(sentence, right, tuple(missing), tuple(wrong))


def summaries(readings: Sequence[ReadingCounts]) -> list[Summary]:
    """Count each half by kind of text, each half, and all."""
    groups: dict[str, list[ReadingCounts]] = {}
    for half in HALVES:
        of_half = [one for one in readings if one.sentence.half == half]
        for kind in dict.fromkeys(one.sentence.kind for one in of_half):
            groups[f"{half}: {kind}"] = [one for one in of_half if one.sentence.kind == kind]
        groups[half] = of_half
    groups["all"] = list(readings)
    return [_summary(name, members) for name, members in groups.items() if members]


def as_json(readings: Sequence[ReadingCounts]) -> dict[str, Any]:
    """Give the summaries and each sentence as JSON takes them."""
    return {
        "summaries": [
            asdict(one) | {"precision": one.precision, "recall": one.recall} for one in summaries(readings)
        ],
        "sentences": [
            {
                "id": one.sentence.id,
                "half": one.sentence.half,
                "kind": one.sentence.kind,
                "right": one.right,
                "missing": [asdict(fact) for fact in one.missing],
                "wrong": [asdict(fact) for fact in one.wrong],
            }
            for one in readings
        ],
    }


def _is_same(fact: Triple, known: KnownFact) -> bool:
    start, end = _period(known.start), _period(known.end)
    return (
        fact.predicate == known.predicate
        and _key(fact.subject) == _key(known.subject)
        and (_key(fact.object) == _key(known.object) or is_same_object(fact.object, known.object, strictly=True))
        and fact.valid_from == (start and start.start and start.start.toordinal())
        and fact.valid_to == (end and end.end and end.end.toordinal())
    )


def _is_also(fact: Triple, also: Iterable[tuple[str, str, str]]) -> bool:
    return any(
        _key(fact.subject) == _key(subject)
        and word.casefold() in fact.predicate
        and (_key(fact.object) == _key(thing) or is_same_object(fact.object, thing, strictly=True))
        for subject, word, thing in also
    )


def _period(written: str | None) -> TimeExpression | None:
    """The days of a year, of a month ("2021-10") or of a day ("2021-10-05")."""
    if written is None:
        return None
    year, _, month = written.partition("-")
    constraint = time_constraint(written if "-" in month or not month else f"{_MONTHS[int(month) - 1]} {year}")
    if constraint is None:
        raise DatasetError(f"{written!r} is no year, month or day.")
    return constraint


def _key(name: str) -> str:
    """A name without articles, as people write it with and without."""
    return " ".join(word for word in normalise_entity(name).split() if word not in _ARTICLES)


def _summary(name: str, readings: Sequence[ReadingCounts]) -> Summary:
    return Summary(
        name,
        len(readings),
        stated=sum(len(one.sentence.facts) for one in readings),
        right=sum(one.right for one in readings),
        wrong=sum(len(one.wrong) for one in readings),
    )

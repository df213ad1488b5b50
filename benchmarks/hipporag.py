"""Gold passages for the 1,000 questions of 2WikiMultihopQA that HippoRAG reports on.

    python benchmarks/hipporag.py QUESTIONS CORPUS OUT

QUESTIONS is `dataset/2wikimultihop/questions.json` of weiyifan1023/SeRAG, which has each question's triples.
CORPUS is `reproduce/dataset/2wikimultihopqa_corpus.json` of OSU-NLP-Group/HippoRAG. OUT becomes a folder in the
BEIR layout, for `engram evaluate`. Neither file is part of this repository.

The gold passage of a triple is the passage about its subject. The first rule that names one passage finds it:

- title: the title is the subject, letter by letter.
- spelling: it is after case, accents, punctuation and articles are taken away.
- qualifier: it is without what stands in brackets or after a comma, as "(1950 film)".
- alias: the title differs in a few letters, or the text begins with the subject, and the text has the object.
- part: the title has all words of the subject, or the text names the subject, and the text has all of the object.

Where a rule finds several passages, the one whose text has most of the triple's object counts, if it is alone. A
question has one gold passage for each subject of its triples: four for a bridge comparison, else two. The rule of
each is in the query's `metadata.gold`, and a subject without a passage in `metadata.unresolved`.
"""

import argparse
import difflib
import hashlib
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common

BRIDGE_GOLD, OTHER_GOLD = 4, 2
LEAST_SIMILARITY = 0.85
"""Least similarity of an alias, by the share of letters in common."""
LEAST_OBJECT = 0.6
"""Share of the object's words that the text of an alias has to have."""
_MONTHS = {
    name: name[:3]
    for name in "january february march april june july august september october november december".split()
}


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of the corpus."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """The passage that was found for a subject, and by which rule."""

    passage: str
    rule: str


class Corpus:
    """Passages, found by what they are about."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._by: list[tuple[str, Callable[[str], str], dict[str, list[Passage]]]] = []
        for rule, form in (("title", str), ("spelling", normalise_name), ("qualifier", strip_qualifier)):
            table: dict[str, list[Passage]] = defaultdict(list)
            for passage in passages:
                table[form(passage.title)].append(passage)
            self._by.append((rule, form, table))
        self._words = {passage.id: words(passage.text) for passage in passages}
        self._plain = {passage.id: normalise_name(passage.text) for passage in passages}

    def find(self, subject: str, objects: Sequence[str], question: str) -> GoldPassage | None:
        """The passage about the subject.

        Args:
            objects: of all triples with this subject.
            question: chooses between passages that have equally much of the objects.
        """
        for rule, form, table in self._by:
            wanted = form(subject)
            candidates = table.get(wanted, []) if wanted else []
            if candidates and (best := self._best(candidates, objects, question)) is not None:
                return GoldPassage(best.id, rule)
        return self._alias(subject, objects, question)

    def _alias(self, subject: str, objects: Sequence[str], question: str) -> GoldPassage | None:
        wanted = strip_qualifier(subject)
        if not wanted:
            return None
        candidates = [
            passage
            for passage in self._passages
            if (self._plain[passage.id].startswith(wanted + " ") or _alike(wanted, strip_qualifier(passage.title)))
            and self._share(passage, objects) >= LEAST_OBJECT
        ]
        best = self._best(candidates, objects, question)
        if best is not None:
            return GoldPassage(best.id, "alias")
        wanted = strip_qualifier(re.split(r"\bwas\b", subject)[0])
        candidates = [
            passage
            for passage in self._passages
            if self._share(passage, objects) == 1.0
            and (words(wanted) <= words(passage.title) or f" {wanted} " in f" {self._plain[passage.id]} ")
        ]
        best = self._best(candidates, objects, wanted)
        return None if best is None else GoldPassage(best.id, "part")

    def _best(self, candidates: Sequence[Passage], objects: Sequence[str], question: str) -> Passage | None:
        """The candidate with most of the objects, then of the question in its title; None where several have."""
        if len(candidates) <= 1:
            return candidates[0] if candidates else None
        asked = words(question)

        def score(passage: Passage) -> tuple[float, float]:
            title = words(passage.title)
            return self._share(passage, objects), len(title & asked) / max(len(title), 1)

        ranked = sorted(candidates, key=score, reverse=True)
        return ranked[0] if score(ranked[0]) > score(ranked[1]) else None

    def _share(self, passage: Passage, objects: Sequence[str]) -> float:
        """Of the objects' words those that the text has, the mean over the objects."""
        shares = [len(wanted & self._words[passage.id]) / len(wanted) for one in objects if (wanted := words(one))]
        return sum(shares) / len(shares) if shares else 0.0


def normalise_name(name: str) -> str:
    """The name without case, accents, punctuation and articles."""
    letters = "".join(
        one for one in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(one)
    )
    return " ".join(word for word in re.findall(r"\w+", letters) if word not in ("the", "a", "an"))


def strip_qualifier(name: str) -> str:
    """The same without what stands in brackets or after a comma."""
    return normalise_name(re.sub(r"\(.*?\)", " ", name).split(",")[0])


def words(text: str) -> set[str]:
    """The words of a text, months by their first letters."""
    return {_MONTHS.get(word, word) for word in normalise_name(text).split()}


def _alike(one: str, other: str) -> bool:
    if not other or abs(len(one) - len(other)) > 6 or one[:1] != other[:1]:
        return False
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return matcher.quick_ratio() >= LEAST_SIMILARITY and matcher.ratio() >= LEAST_SIMILARITY


def resolve(
    corpus: Corpus, question: str, triples: Sequence[Sequence[str]]
) -> tuple[dict[str, GoldPassage], list[str]]:
    """Subject -> its gold passage, and the subjects without one."""
    objects: dict[str, list[str]] = defaultdict(list)
    for subject, _, value in triples:
        objects[subject].append(value)
    found = {subject: corpus.find(subject, values, question) for subject, values in objects.items()}
    return {name: gold for name, gold in found.items() if gold}, [name for name, gold in found.items() if not gold]


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def convert(questions: Sequence[Mapping[str, Any]], passages: Sequence[Passage], out: Path) -> dict[str, set[str]]:
    """Write the data set and say what became of its questions; question -> gold passages."""
    corpus = Corpus(passages)
    out.mkdir(parents=True, exist_ok=True)
    queries: list[dict[str, Any]] = []
    found: dict[str, set[str]] = {}
    rules: Counter[str] = Counter()
    numbers: Counter[tuple[str, int]] = Counter()
    lacking: list[str] = []
    for question in questions:
        kind = question["question_type"]
        gold, unresolved = resolve(corpus, question["question"], question["evidence"])
        found[question["id"]] = {one.passage for one in gold.values()}
        rules.update(one.rule for one in gold.values())
        numbers[kind, len(found[question["id"]])] += 1
        lacking += [f"{question['id']} ({kind}): {name!r}" for name in unresolved]
        queries.append(
            {
                "_id": question["id"],
                "text": question["question"],
                "metadata": {
                    "answers": [question["answer"]],
                    "type": kind,
                    "evidences": question["evidence"],
                    "gold": {name: [one.passage, one.rule] for name, one in gold.items()},
                    "unresolved": unresolved,
                },
            }
        )
    write(out / "corpus.jsonl", ({"_id": one.id, "title": one.title, "text": one.text} for one in passages))
    write(out / "queries.jsonl", queries)
    rows = [f"{question}\t{passage}\t1\n" for question, gold in found.items() for passage in sorted(gold)]
    (out / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows), encoding="utf-8")
    print(f"{out}: {len(passages):,} passages, {len(queries):,} questions, {len(rows):,} gold passages")
    print("subjects by rule:", dict(rules.most_common()), "unresolved:", len(lacking))
    common.table(
        ["type", "gold passages", "questions"],
        [
            (kind, f"{number} of {BRIDGE_GOLD if kind == 'bridge_comparison' else OTHER_GOLD}", count)
            for (kind, number), count in sorted(numbers.items())
        ],
    )
    for line in lacking:
        print("unresolved", line)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("questions", type=Path)
    arguments.add_argument("corpus", type=Path)
    arguments.add_argument("out", type=Path)
    given = arguments.parse_args()
    questions = json.loads(given.questions.read_text(encoding="utf-8"))
    rows = json.loads(given.corpus.read_text(encoding="utf-8"))
    passages = [Passage(_id(row["title"], row["text"]), row["title"], row["text"]) for row in rows]
    if len({passage.id for passage in passages}) != len(passages):
        raise SystemExit("The corpus has a passage twice.")
    convert(questions, passages, given.out)


def _id(title: str, text: str) -> str:
    """An id that is the same however the passage's white space is."""
    content = "\n".join(" ".join(part.split()) for part in (title, text))
    return "2wh-" + hashlib.sha256(content.encode()).hexdigest()[:12]


if __name__ == "__main__":
    main()

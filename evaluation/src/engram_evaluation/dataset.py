"""Data sets in the BEIR layout: a corpus, queries, relevance labels and, at best, gold sentences."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from engram.core.learning.logged_verdict import Expansion
from engram_evaluation.dataset_files import (
    DatasetError,
    Line,
    find,
    grade_lines,
    json_lines,
    labels,
    read_text,
    require_file,
)
from engram_evaluation.decomposition import ReasoningHop, hops
from engram_evaluation.rating_scale import PassageRatings, read_ratings


@dataclass(frozen=True, slots=True)
class GoldSentence:
    """A sentence that supports a query's answer."""

    passage_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A query with what is known to answer it.

    Attributes:
        relevant: ids of its relevant passages.
        gold: its supporting sentences; empty where the data set has labels of passages only.
        type: the data set's own kind of question, or "".
        answers: accepted answers, the main one first.
        hops: how the data set itself takes it apart; empty where it does not.
        context: ids of the passages that the data set gives with it, in its order.
        grades: id of a graded passage -> how well it answers, from 1 (wrong) on; empty without grades.
    """

    id: str
    text: str
    relevant: frozenset[str]
    gold: tuple[GoldSentence, ...]
    type: str
    answers: tuple[str, ...] = ()
    hops: tuple[ReasoningHop, ...] = ()
    context: tuple[str, ...] = ()
    grades: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Dataset:
    """One corpus with its questions.

    Attributes:
        passages: as the ingest use case takes them: id, title, text, metadata, sentences.
        questions: those with at least one relevant passage, in file order.
        paraphrases: question id -> the same question in other words, each at least once.
        fingerprint: changes with anything else here.
        expansions: question id -> the units that widen it.
        unlabelled: the queries of which no passage is labelled relevant, in file order.
        ratings: id of a question, labelled or not -> what people said of passages that it was answered with.
    """

    name: str
    passages: tuple[dict[str, Any], ...]
    questions: tuple[Question, ...]
    paraphrases: Mapping[str, tuple[Question, ...]]
    fingerprint: str
    expansions: Mapping[str, tuple[Expansion, ...]] = field(default_factory=dict)
    unlabelled: tuple[Question, ...] = ()
    ratings: Mapping[str, tuple[PassageRatings, ...]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of questions; unlabelled ones count where there are no others."""
        return len(self.questions) or len(self.unlabelled)

    def list_paraphrases(self, questions: Iterable[Question]) -> list[Question]:
        """Every paraphrase of these questions, in their order."""
        return [reworded for question in questions for reworded in self.paraphrases.get(question.id, ())]


def load(folder: Path) -> Dataset:
    """Read ``corpus.jsonl``, ``queries.jsonl`` (or ``questions.jsonl``) and ``qrels.tsv``, and what there is of
    ``paraphrases.jsonl``, ``expansions.jsonl``, ``ratings.jsonl`` and ``graded.tsv``.

    JSONL files may be compressed (``.gz``). Without a file of paraphrases, a query's own ``metadata.paraphrase``
    counts, if it has one.

    Raises:
        DatasetError: a file is missing or a line cannot be used.
    """
    if not folder.is_dir():
        raise DatasetError(
            f"{folder} is no folder. A data set is a folder with corpus.jsonl, queries.jsonl, qrels.tsv."
        )
    queries = json_lines(find(folder, "questions.jsonl") or require_file(folder, "queries.jsonl"))
    separate = find(folder, "paraphrases.jsonl")
    widening, rated = find(folder, "expansions.jsonl"), find(folder, "ratings.jsonl")
    graded = find(folder, "graded.tsv")
    return build(
        folder.resolve().name,
        json_lines(require_file(folder, "corpus.jsonl")),
        queries,
        labels(require_file(folder, "qrels.tsv")),
        json_lines(separate) if separate else _read_own_paraphrases(queries),
        json_lines(widening) if widening else (),
        json_lines(rated) if rated else (),
        grade_lines(graded) if graded else (),
    )


def build(
    name: str,
    corpus: Iterable[Line],
    queries: Iterable[Line],
    relevance: Iterable[tuple[str, str, str]],
    paraphrases: Iterable[Line] = (),
    expansions: Iterable[Line] = (),
    ratings: Iterable[Line] = (),
    grades: Iterable[tuple[str, str, str, float]] = (),
) -> Dataset:
    """Put a data set together from rows.

    Args:
        relevance: (where, query id, passage id).
        grades: the same with the grade.

    Raises:
        DatasetError: a row lacks something, repeats an id or names what is not there.
    """
    passages = [_passage(where, row) for where, row in corpus]
    if not passages:
        raise DatasetError(f"{name}: the corpus is empty.")
    known = _require_unique(name, "passage", (passage["id"] for passage in passages))
    rows = list(queries)
    query_ids = _require_unique(name, "query", (read_text(where, row, "_id") for where, row in rows))
    relevant: dict[str, set[str]] = {}
    for where, query, passage in relevance:
        _check_label(where, query, passage, query_ids, known)
        relevant.setdefault(query, set()).add(passage)
    graded: dict[str, dict[str, float]] = {}
    for where, query, passage, grade in grades:
        _check_label(where, query, passage, query_ids, known)
        graded.setdefault(query, {})[passage] = grade
    every = [
        replace(_question(where, row, relevant.get(row["_id"], set()), known), grades=graded.get(row["_id"], {}))
        for where, row in rows
    ]
    questions = [question for question in every if question.relevant]
    by_id = {question.id: question for question in questions}
    reworded = _paraphrases(paraphrases, query_ids, by_id)
    widened = _expansions(name, expansions, query_ids)
    rated = read_ratings(name, ratings, query_ids, known)
    if not relevant and not rated:
        raise DatasetError(f"{name}: qrels.tsv labels no passage, and none is rated: nothing can be measured.")
    digest = hashlib.sha256(json.dumps([passages, [row for _, row in rows]], sort_keys=True).encode())
    digest.update(json.dumps([[q, sorted(relevant[q])] for q in sorted(relevant)]).encode())
    digest.update(
        json.dumps(
            [[original_id, one.text] for original_id in sorted(reworded) for one in reworded[original_id]]
        ).encode()
    )
    digest.update(
        json.dumps(
            [[original_id, [[e.method, e.text] for e in widened[original_id]]] for original_id in sorted(widened)]
        ).encode()
    )
    if graded:
        digest.update(json.dumps(graded, sort_keys=True).encode())
    if rated:
        digest.update(
            json.dumps(
                [[original_id, [asdict(pair) for pair in rated[original_id]]] for original_id in sorted(rated)]
            ).encode()
        )
    return Dataset(
        name,
        tuple(passages),
        tuple(questions),
        reworded,
        digest.hexdigest()[:16],
        {original_id: units for original_id, units in widened.items() if original_id in by_id},
        tuple(question for question in every if not question.relevant),
        rated,
    )


def add_translations(dataset: Dataset, translations: Iterable[Dataset], *, pooled: bool) -> Dataset:
    """Take the questions that bear the same ids in other languages for paraphrases, in place of the data set's own.

    A question in another language asks for the passages that the original asks for.

    Args:
        translations: the data set in other languages.
        pooled: whether their passages join its own.

    Raises:
        DatasetError: one of them has the name of another, or shares no question with the data set.
    """
    passages = list(dataset.passages)
    paraphrases: dict[str, list[Question]] = {}
    by_id = {question.id: question for question in dataset.questions}
    names = [dataset.name]
    for other in translations:
        if other.name in names:
            raise DatasetError(f"{other.name} comes twice.")
        names.append(other.name)
        shared = [question for question in other.questions if question.id in by_id]
        if not shared:
            raise DatasetError(f"{other.name} shares no question with {dataset.name}.")
        for question in shared:
            translated = replace(by_id[question.id], id=f"{other.name} {question.id}", text=question.text)
            paraphrases.setdefault(question.id, []).append(translated)
        if pooled:
            passages += [passage | {"id": f"{other.name} {passage['id']}"} for passage in other.passages]
    digest = hashlib.sha256(json.dumps([names, pooled]).encode()).hexdigest()[:8]
    return replace(
        dataset,
        name="-".join(names) if pooled else dataset.name,
        passages=tuple(passages),
        paraphrases={original: tuple(translated) for original, translated in paraphrases.items()},
        fingerprint=f"{dataset.fingerprint}-{digest}",
    )


def cut_dataset(dataset: Dataset, limit: int | None) -> Dataset:
    """The first ``limit`` questions over the passages that come with them: what it gives with each, or labels."""
    if limit is None or limit >= len(dataset.questions):
        return dataset
    questions = dataset.questions[:limit]
    passage_ids = {passage for one in questions for passage in (*one.context, *one.relevant)}
    return replace(
        dataset,
        name=f"{dataset.name}-{limit}",
        passages=tuple(passage for passage in dataset.passages if passage["id"] in passage_ids),
        questions=questions,
        paraphrases={one.id: dataset.paraphrases[one.id] for one in questions if one.id in dataset.paraphrases},
        fingerprint=f"{dataset.fingerprint}-{limit}",
        expansions={one.id: dataset.expansions[one.id] for one in questions if one.id in dataset.expansions},
        unlabelled=(),
        ratings={},
    )


def _check_label(where: str, query: str, passage: str, query_ids: set[str], known: set[str]) -> None:
    if query not in query_ids:
        raise DatasetError(f"{where}: there is no query {query!r}.")
    if passage not in known:
        raise DatasetError(f"{where}: there is no passage {passage!r}.")


def _paraphrases(
    lines: Iterable[Line], query_ids: set[str], by_id: Mapping[str, Question]
) -> dict[str, tuple[Question, ...]]:
    """Return the paraphrases of each labelled question, in the order of their lines."""
    reworded: dict[str, list[Question]] = {}
    for where, row in lines:
        original_id = _metadata(where, row).get("paraphrase_of")
        if original_id not in query_ids:
            raise DatasetError(f"{where}: metadata.paraphrase_of names no query: {original_id!r}.")
        if original_id in by_id:
            original = by_id[original_id]
            paraphrase = Question(
                read_text(where, row, "_id"),
                read_text(where, row, "text"),
                original.relevant,
                original.gold,
                original.type,
                original.answers,
                grades=original.grades,
            )
            reworded.setdefault(original_id, []).append(paraphrase)
    _require_unique("paraphrases", "query", (one.id for group in reworded.values() for one in group))
    return {original_id: tuple(group) for original_id, group in reworded.items()}


def _passage(where: str, row: dict[str, Any]) -> dict[str, Any]:
    metadata = dict(_metadata(where, row))
    sentences = _list_strings(where, metadata, "sentences")
    metadata.pop("sentences", None)
    title = row.get("title")
    if title is not None and not isinstance(title, str):
        raise DatasetError(f"{where}: title must be a string.")
    return {
        "id": read_text(where, row, "_id"),
        "title": title if title and title.strip() else None,
        "text": read_text(where, row, "text"),
        "metadata": metadata,
        "sentences": sentences or None,
    }


def _question(where: str, row: dict[str, Any], relevant: set[str], known: set[str]) -> Question:
    metadata = _metadata(where, row)
    gold = []
    for support in metadata.get("supporting_sentences") or []:
        if not (isinstance(support, list) and len(support) == 3 and isinstance(support[2], str)):
            raise DatasetError(f"{where}: a supporting sentence is [passage id, index, sentence], not {support!r}.")
        if support[0] not in known:
            raise DatasetError(
                f"{where}: a supporting sentence names passage {support[0]!r}, which does not exist."
            )
        gold.append(GoldSentence(support[0], support[2]))
    return Question(
        read_text(where, row, "_id"),
        read_text(where, row, "text"),
        frozenset(relevant),
        tuple(dict.fromkeys(gold)),
        str(metadata.get("type") or ""),
        _answers(where, metadata),
        hops(where, metadata),
        _context(where, metadata, known),
    )


def _context(where: str, metadata: Mapping[str, Any], known: set[str]) -> tuple[str, ...]:
    context_ids = _list_strings(where, metadata, "context_ids")
    missing = [one for one in context_ids if one not in known]
    if missing:
        raise DatasetError(f"{where}: metadata.context_ids names passage {missing[0]!r}, which does not exist.")
    return tuple(dict.fromkeys(context_ids))


def _answers(where: str, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(answer for answer in _list_strings(where, metadata, "answers") if answer.strip()))


def _list_strings(where: str, metadata: Mapping[str, Any], name: str) -> list[str]:
    strings = metadata.get(name) or []
    if not (isinstance(strings, list) and all(isinstance(one, str) for one in strings)):
        raise DatasetError(f"{where}: metadata.{name} must be a list of strings.")
    return strings


def _expansions(name: str, lines: Iterable[Line], query_ids: set[str]) -> dict[str, tuple[Expansion, ...]]:
    """Query id -> its units."""
    widened: dict[str, tuple[Expansion, ...]] = {}
    for where, row in lines:
        of, units = read_text(where, row, "query_id"), row.get("units")
        if of not in query_ids:
            raise DatasetError(f"{where}: query_id names no query: {of!r}.")
        if of in widened:
            raise DatasetError(f"{name}: query {of!r} is expanded twice.")
        if not (isinstance(units, list) and units and all(isinstance(unit, dict) for unit in units)):
            raise DatasetError(f"{where}: units must be a list of objects that is not empty.")
        widened[of] = tuple(
            Expansion(read_text(where, unit, "method"), read_text(where, unit, "text")) for unit in units
        )
    return widened


def _read_own_paraphrases(queries: Iterable[Line]) -> list[Line]:
    return [
        (where, {"_id": f"{row['_id']}-para", "text": reworded, "metadata": {"paraphrase_of": row["_id"]}})
        for where, row in queries
        if (reworded := _metadata(where, row).get("paraphrase")) is not None and "_id" in row
    ]


def _metadata(where: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = row.get("metadata")
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise DatasetError(f"{where}: metadata must be an object.")
    return metadata


def _require_unique(name: str, kind: str, ids: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    for identity in ids:
        if identity in seen:
            raise DatasetError(f"{name}: {kind} {identity!r} comes twice.")
        seen.add(identity)
    return seen

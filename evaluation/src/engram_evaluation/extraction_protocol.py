"""Recall of the fact rules against the facts that a data set's annotators wrote down.

A gold fact is found if a passage that is relevant to its question says, by one of the facts extracted from it, that
its subject has to do with its object. It is found with the right relation if the predicate of such a fact is nearer
to the gold relation's name, as vectors, than to any other relation's name of the data set.
"""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engram.core.text.temporal import time_constraint
from engram.providers.embedder import Embedder
from engram.providers.language import Language, PassageText, SentenceAnalysis, normalise_entity
from engram.wings.facts.core.alignment import agree
from engram.wings.facts.core.linearise import ReadableFact, count_tokens, linearise
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.reading import extract_facts, find_country
from engram_evaluation.alignment_measure import Facts, list_renamed_topics, measure_alignment
from engram_evaluation.dataset import Dataset
from engram_evaluation.dataset_files import DatasetError, find, json_lines, require_file
from engram_evaluation.functional_learning import ObjectPeriod, learn

FEWEST_SUBJECTS = 20
"""Weight of its subjects from which on a predicate is shown."""
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class GoldFact:
    """A fact that an annotator wrote down for a question.

    Attributes:
        passages: ids of the passages that are relevant to the question; one of them says so.
    """

    subject: str
    relation: str
    object: str
    passages: frozenset[str]


@dataclass(frozen=True, slots=True)
class ExtractedCorpus:
    """A corpus with what its passages say, and what reading it took.

    Attributes:
        sentences: passage id -> its sentences.
        analysis_seconds: processor time of sentences and names, which ingest spends anyway.
        extraction_seconds: processor time of the facts.
    """

    facts: Facts
    sentences: Mapping[str, Sequence[SentenceAnalysis]]
    analysis_seconds: float
    extraction_seconds: float


def read_gold_facts(folder: Path, dataset: Dataset, limit: int | None = None) -> list[GoldFact]:
    """Return the facts in ``metadata.evidences`` of the questions, or of the first ``limit`` of them.

    Raises:
        DatasetError: no question has any, or an entry is no triple.
    """
    relevant = {question.id: question.relevant for question in dataset.questions}
    facts = []
    for where, row in json_lines(find(folder, "questions.jsonl") or require_file(folder, "queries.jsonl"))[:limit]:
        metadata = row.get("metadata")
        for evidence in (metadata.get("evidences") if isinstance(metadata, dict) else None) or []:
            if not (
                isinstance(evidence, list) and len(evidence) == 3 and all(isinstance(p, str) for p in evidence)
            ):
                raise DatasetError(f"{where}: an entry of metadata.evidences is [subject, relation, object].")
            subject, relation, thing = evidence
            facts.append(GoldFact(subject, relation, thing, relevant.get(str(row.get("_id")), frozenset())))
    if not facts:
        raise DatasetError(f"{dataset.name}: no question has metadata.evidences, so there is nothing to find.")
    return facts


def read_corpus(dataset: Dataset, language: Language, passage_ids: Iterable[str] | None = None) -> ExtractedCorpus:
    """Analyse the passages, and say what they say; all of them, or those whose ids are wanted."""
    chosen = None if passage_ids is None else set(passage_ids)
    bodies = [body for body in dataset.passages if chosen is None or body["id"] in chosen]
    texts = [
        PassageText(body["title"], body["text"], tuple(body["sentences"]) if body["sentences"] else None)
        for body in bodies
    ]
    began = time.process_time()
    analysed = language.analyse_passages(texts)
    between = time.process_time()
    facts = {
        body["id"]: extract_facts(body["title"], sentences)
        for body, sentences in zip(bodies, analysed, strict=True)
    }
    ended = time.process_time()
    sentences = {body["id"]: found for body, found in zip(bodies, analysed, strict=True)}
    return ExtractedCorpus(facts, sentences, between - began, ended - between)


def find_matching_facts(gold: GoldFact, facts: Facts, *, strictly: bool = False) -> list[Triple]:
    """The extracted facts that say what the gold one says, whatever they call the relation."""
    return [
        fact
        for passage in sorted(gold.passages)
        for fact in facts.get(passage, ())
        if is_same_name(fact.subject, gold.subject, strictly=strictly)
        and is_same_object(fact.object, gold.object, strictly=strictly)
    ]


def is_same_name(one: str, other: str, *, strictly: bool = False) -> bool:
    """Whether two names are one thing's: equal but for what is in brackets; else the words of one are the other's.

    The second only tells within the passages of one question, where few things are named alike.
    """
    first, second = (normalise_entity(_QUALIFIER.sub("", name) or name) for name in (one, other))
    if first == second:
        return True
    words, others = set(_WORD.findall(first)), set(_WORD.findall(second))
    return not strictly and bool(words and others) and (words <= others or others <= words)


def is_same_object(one: str, other: str, *, strictly: bool = False) -> bool:
    """Whether two objects are the same: as names, days or countries; else if one's words are within the other's."""
    first, second = (" ".join(_WORD.findall(normalise_entity(name))) for name in (one, other))
    if first == second:
        return bool(first)
    country = find_country(one)
    if country is not None and country == find_country(other):
        return True
    days, others = time_constraint(one), time_constraint(other)
    if days is not None and others is not None and (days.start, days.end) == (others.start, others.end):
        return True
    within = f" {first} " in f" {second} " or f" {second} " in f" {first} "
    return not strictly and bool(first and second) and within


def match_relations(predicates: Iterable[str], relations: Sequence[str], embedder: Embedder) -> dict[str, str]:
    """Predicate -> the relation whose name is nearest to it: the same words, else the highest cosine."""
    distinct = sorted(set(predicates))
    if not distinct:
        return {}
    similarity = np.asarray(embedder.embed(distinct)) @ np.asarray(embedder.embed(list(relations))).T
    nearest = similarity.argmax(axis=1)
    return {
        predicate: predicate if predicate in relations else relations[place]
        for predicate, place in zip(distinct, nearest.tolist(), strict=True)
    }


def recall(gold: Sequence[GoldFact], facts: Facts, embedder: Embedder) -> dict[str, Any]:
    """Shares of the gold facts that were found: subject and object, strictly, and with the right relation."""
    relations = sorted({fact.relation for fact in gold})
    matches = [find_matching_facts(fact, facts) for fact in gold]
    nearest = match_relations((f.predicate for found in matches for f in found), relations, embedder)
    right = [
        any(nearest[f.predicate] == fact.relation for f in found) for fact, found in zip(gold, matches, strict=True)
    ]
    strict = [bool(find_matching_facts(fact, facts, strictly=True)) for fact in gold]
    gold_counts = Counter(fact.relation for fact in gold)
    pairs = Counter(fact.relation for fact, found in zip(gold, matches, strict=True) if found)
    named = Counter(fact.relation for fact, is_right in zip(gold, right, strict=True) if is_right)
    return {
        "gold": len(gold),
        "pair": sum(map(bool, matches)) / len(gold),
        "pair_strict": sum(strict) / len(gold),
        "relation": sum(right) / len(gold),
        "by_relation": {
            relation: {"gold": count, "pair": pairs[relation], "relation": named[relation]}
            for relation, count in gold_counts.most_common()
        },
    }


def compression(dataset: Dataset, gold: Sequence[GoldFact], facts: Facts) -> dict[str, Any]:
    """Tokens of facts as text against those of the passages that say so, over the questions' gold facts.

    ``gold`` has the facts found of each gold one; ``subgraph`` all that these passages say.
    """
    texts = {body["id"]: f"{body['title']}. {body['text']}" for body in dataset.passages}
    by_question: dict[frozenset[str], list[GoldFact]] = defaultdict(list)
    for fact in gold:
        by_question[fact.passages].append(fact)
    passages = chosen = whole = 0
    for ids, wanted in by_question.items():
        evidence = [
            ReadableFact(found.subject, found.predicate, found.object, passage)
            for passage in sorted(ids)
            for fact in wanted
            for found in find_matching_facts(
                GoldFact(fact.subject, fact.relation, fact.object, frozenset({passage})), facts
            )
        ]
        holding = {str(statement.source) for statement in evidence}
        passages += sum(count_tokens(texts[passage]) for passage in holding)
        chosen += linearise(evidence).tokens
        whole += linearise(
            [
                ReadableFact(fact.subject, fact.predicate, fact.object, passage)
                for passage in sorted(holding)
                for fact in facts[passage]
            ]
        ).tokens
    return {
        "passages": passages,
        "gold": chosen,
        "subgraph": whole,
        "gold_share": chosen / passages if passages else None,
        "subgraph_share": whole / passages if passages else None,
    }


def measure_functional(facts: Facts) -> dict[str, dict[str, Any]]:
    """Measure which predicates are functional.

    Returns:
        Predicate -> belief, for predicates whose subjects weigh ``FEWEST_SUBJECTS`` together; highest lower bound
        first.
    """
    periods_by_pair: dict[tuple[str, str], list[ObjectPeriod]] = defaultdict(list)
    for passage, passage_facts in facts.items():
        for fact in passage_facts:
            periods = periods_by_pair[normalise_entity(fact.subject), fact.predicate]
            object_key = _object_key(fact, (holding.object for holding in periods))
            periods.append(ObjectPeriod(object_key, fact.valid_from, fact.valid_to, (passage, fact.sentence)))
    beliefs = learn((predicate, periods) for (_, predicate), periods in periods_by_pair.items())
    rows_shown = [
        (name, belief) for name, belief in beliefs.items() if belief.single + belief.several >= FEWEST_SUBJECTS
    ]
    return {
        name: {
            "single": belief.single,
            "several": belief.several,
            "lower": belief.lower,
            "functional": belief.is_functional,
        }
        for name, belief in sorted(rows_shown, key=lambda item: -item[1].lower)
    }


def measure(
    folder: Path, dataset: Dataset, language: Language, embedder: Embedder, limit: int | None = None
) -> dict[str, Any]:
    """All figures: what is found of the gold facts, what reading costs, how short facts are, what predicates are
    like.

    Args:
        folder: of the data set.
        dataset: as loaded from it.
        language: whose sentences and names are read.
        embedder: tells which relation a predicate is nearest to.
        limit: look for the facts of so many of its first questions, in their passages; None for all, in the corpus.

    Raises:
        DatasetError: no question has metadata.evidences.
    """
    gold = read_gold_facts(folder, dataset, limit)
    corpus = read_corpus(
        dataset, language, None if limit is None else {passage for fact in gold for passage in fact.passages}
    )
    passages = len(corpus.facts)
    return {
        "passages": passages,
        "facts": sum(map(len, corpus.facts.values())),
        "analysis_ms": 1000.0 * corpus.analysis_seconds / passages,
        "extraction_ms": 1000.0 * corpus.extraction_seconds / passages,
        "recall": recall(gold, corpus.facts, embedder),
        "tokens": compression(dataset, gold, corpus.facts),
        "functional": measure_functional(corpus.facts),
        "alignment": measure_alignment(list_renamed_topics(folder, dataset, corpus.facts), dataset, embedder),
    }


def _object_key(fact: Triple, other_objects: Iterable[Hashable]) -> Hashable:
    """Normalise an object: a country, a year, or an earlier object whose name agrees with it."""
    country = find_country(fact.object)
    if country is not None:
        return country
    if fact.kind == "date":
        days = time_constraint(fact.object)
        return fact.object if days is None or days.start is None else days.start.year
    key = normalise_entity(fact.object)
    if fact.kind != "entity":
        return key
    return next((other for other in other_objects if isinstance(other, str) and agree(key, other)), key)

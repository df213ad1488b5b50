"""Gain that facts would bring to passage ranking. Retrieval does not use it.

Facts by rules of each candidate passage become features beside the ranking's own: whether one links two things
that the question names, whether one about such a thing says what is asked, and whether a fact of a likely passage
leads from a thing that the question names to one that this passage tells of, as a path of two edges does. Each data
set is then ranked by weights fitted to the others, with these features and without.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import InvalidRequestError
from engram.core.ranking import complementarity
from engram.core.ranking.passage_scores import BASE_FEATURES
from engram.providers.language import Language, PassageText, normalise_entity
from engram.services.question.query import Query
from engram.wings.facts.reading import extract_facts
from engram.wings.facts.reading.question_relations import find_asked_terms, relation_terms
from engram_evaluation.dataset import Dataset
from engram_evaluation.harness import Harness
from engram_evaluation.ranking_fit import JudgedQuestion, fit
from engram_evaluation.weight_fit import RIDGE, VERDICTS, Steps

FEATURES = ("linked", "asked_here", "asked_any", "onward", "onward_asked", "chain")
"""Of a candidate, in [0, 1]:

- linked: 1 if a fact of it links two things that the question names.
- asked_here, asked_any: the share of what is asked that one fact speaks of; of a fact about a named thing, of any.
- onward: a pool passage's fact leads from a named thing to one that a fact of this passage is about, as likely as
  the pool passage is.
- onward_asked, chain: the same by what is asked that the second fact speaks of; that both do.
"""
RECALL_CUTS = (2, 5)


@dataclass(frozen=True, slots=True)
class ComparableFact:
    """A fact of a passage: names as they are compared, the object's empty if it is none; the relation's terms."""

    subject: str
    object: str
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class FactLinkComparison:
    """``shares`` with facts and without, by weights fitted to the other data sets, and facts' weights."""

    dataset: str
    questions: int
    without: Sequence[float]
    with_facts: Sequence[float]
    weights: Mapping[str, float]


def read_facts(language: Language, passages: Sequence[Mapping[str, Any]]) -> dict[str, list[ComparableFact]]:
    """Passage -> its facts."""
    read = language.analyse_passages([PassageText(body["title"], body["text"]) for body in passages])
    return {
        body["id"]: [
            ComparableFact(
                normalise_entity(fact.subject),
                normalise_entity(fact.object) if fact.kind == "entity" else "",
                relation_terms(fact.predicate, fact.kind),
            )
            for fact in extract_facts(body["title"], sentences)
        ]
        for body, sentences in zip(passages, read, strict=True)
    }


def features(
    named: frozenset[str],
    asked_terms: Sequence[frozenset[str]],
    candidates: Sequence[Sequence[ComparableFact]],
    pool: Mapping[int, float],
) -> NDArray[np.float64]:
    """The features of candidates, (n, len(FEATURES)).

    Args:
        named: what the question names.
        asked_terms: of each thing that it asks for, the terms that relations say it by.
        candidates: the facts of each, (n,).
        pool: place of a likely candidate -> how likely, in [0, 1].
    """
    many = max(len(asked_terms), 1)
    speaks = [
        [sum(not one.isdisjoint(fact.terms) for one in asked_terms) / many for fact in candidate_facts]
        for candidate_facts in candidates
    ]
    values = np.zeros((len(candidates), len(FEATURES)))
    for place, (candidate_facts, shares) in enumerate(zip(candidates, speaks, strict=True)):
        for fact, share in zip(candidate_facts, shares, strict=True):
            here = {fact.subject, fact.object} & named
            values[place, 0] = max(values[place, 0], float(len(here) == 2))
            values[place, 1] = max(values[place, 1], share if here else 0.0)
            values[place, 2] = max(values[place, 2], share)
    for member, likely in pool.items():
        leads: dict[str, float] = {}
        for fact, share in zip(candidates[member], speaks[member], strict=True):
            for begin, end in ((fact.subject, fact.object), (fact.object, fact.subject)):
                if begin in named and end and end not in named:
                    leads[end] = max(leads.get(end, 0.0), share)
        for place, (candidate_facts, shares) in enumerate(zip(candidates, speaks, strict=True)):
            if place != member:
                for fact, share in zip(candidate_facts, shares, strict=True):
                    for end in {fact.subject, fact.object} & leads.keys():
                        step = likely * np.array([1.0, share, min(1.0, many * share * leads[end])])
                        values[place, 3:] = np.maximum(values[place, 3:], step)
    return values


def judge_questions(
    harness: Harness, dataset: Dataset, language: Language, first: NDArray[np.float64], step: Callable[[], None]
) -> list[JudgedQuestion]:
    """Every question's candidates with the ranking's features and, behind them, those of facts.

    Args:
        first: base weights, which says what is likely, (len(BASE_FEATURES),).
    """
    facts_by_passage = read_facts(language, dataset.passages)
    rows = []
    for question in dataset.questions:
        names, ranked = harness.services.retrieval.retrieve.features(
            Query(text=question.text, scope=harness.scope, memory="off")
        )
        ids = np.arange(len(names))
        scores = ranked[:, : len(BASE_FEATURES)] @ first
        members: list[int] = complementarity.select_pool(ids, scores).tolist() if len(names) else []
        likely = complementarity.compute_evidence_probabilities(scores)
        (sentences,) = language.analyse_passages([PassageText(None, question.text)])
        named = frozenset(normalise_entity(name) for sentence in sentences for name in sentence.entities)
        words = [word for word in question.text.split() if normalise_entity(word) not in " ".join(named).split()]
        question_terms = find_asked_terms(word.strip("?,.'\"") for word in words)
        facts = features(
            named,
            question_terms,
            [facts_by_passage[name] for name in names],
            {member: float(likely[member]) for member in members},
        )
        supported = np.array([name in question.relevant for name in names], dtype=bool)
        rows.append(JudgedQuestion(np.hstack([ranked, facts]), supported))
        step()
    return rows


def compare(
    corpora: Sequence[tuple[Harness, Dataset]], language: Language, first: NDArray[np.float64], steps: Steps
) -> list[FactLinkComparison]:
    """Each data set by weights that were fitted to the others.

    Raises:
        InvalidRequestError: there is one alone.
    """
    if len(corpora) < 2:
        raise InvalidRequestError("What facts add is measured on each data set by weights fitted to the others.")
    read = [
        judge_questions(harness, dataset, language, first, steps(f"{dataset.name}: facts", len(dataset.questions)))
        for harness, dataset in corpora
    ]
    size = read[0][0].features.shape[1] - len(FEATURES)
    bare = [[JudgedQuestion(one.features[:, :size], one.supported) for one in rows] for rows in read]
    comparisons = []
    for place, (_, dataset) in enumerate(corpora):
        without, with_facts = (
            fit([*rows[:place], *rows[place + 1 :]], RIDGE, VERDICTS).mean for rows in (bare, read)
        )
        relevant_counts = [len(question.relevant) for question in dataset.questions]
        comparisons.append(
            FactLinkComparison(
                dataset.name,
                len(relevant_counts),
                shares(bare[place], relevant_counts, without),
                shares(read[place], relevant_counts, with_facts),
                dict(zip(FEATURES, with_facts[size:].tolist(), strict=True)),
            )
        )
    return comparisons


def shares(
    rows: Sequence[JudgedQuestion], relevant_counts: Sequence[int], weights: NDArray[np.float64]
) -> list[float]:
    """Mean recall at each of ``RECALL_CUTS``, and the share of questions that have all at the last.

    Candidates rank by a weighted sum. Of equals the earlier candidate comes first.
    """
    sums = np.zeros(len(RECALL_CUTS) + 1)
    for one, count in zip(rows, relevant_counts, strict=True):
        order = np.argsort(-(one.features @ weights), kind="stable")
        hit_counts = [int(one.supported[order[:cut]].sum()) for cut in RECALL_CUTS]
        sums += [*(many / count for many in hit_counts), float(hit_counts[-1] == count)]
    return [float(total) / max(len(rows), 1) for total in sums]

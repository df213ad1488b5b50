"""Step 10: make the answer and its trace of what was retrieved. Here rows of passages get their external ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from engram.core.ranking import sufficiency
from engram.core.ranking.profiles import ProfileName
from engram.services.question.passage_source import PassageSource, read_source
from engram.services.question.query import Fallback, HopStopRule, Memory, Strategy
from engram.services.question.search import RetrievalResult
from engram.services.question.shown import ShownPassages
from engram.services.question.sufficiency import SufficiencyEstimate, WithholdingLevel
from engram.services.question.trace import (
    EntityAnswer,
    FeatureTrace,
    HopTrace,
    RecallTrace,
    SentenceTrace,
    SufficiencyTrace,
    Trace,
)
from engram.services.question.walk import StopReason, Walk, WalkHop
from engram.storage.corpus.passages import StoredPassage, StoredSentence
from engram.storage.retrieval.graph_hops import SelectedSentence


@dataclass(frozen=True, slots=True)
class SentenceAnswer:
    """A sentence of an answered passage.

    ``score`` is None for one that no hop selected. ``recall``: probability, by what verdicts said of past
    questions, that it is evidence; 0 without such verdicts.
    """

    sentence_id: int
    position: int
    text: str
    score: float | None
    hops: list[int]
    recall: float = 0.0


@dataclass(frozen=True, slots=True)
class DuplicateAnswer:
    """A passage that is left out, since it has nearly the text of a better one; ids as of ``PassageAnswer``."""

    id: int
    passage_id: str
    title: str | None
    metadata: dict[str, Any]
    source: PassageSource


@dataclass(frozen=True, slots=True)
class SurroundingPassage:
    """A passage that stands beside an answered one; ``sentences`` are empty unless the query includes them."""

    passage_id: str
    title: str | None
    text: str
    source: PassageSource
    sentences: list[SentenceAnswer]


@dataclass(frozen=True, slots=True)
class PassageContext:
    """Passages before and after another one in its document, in reading order."""

    before: list[SurroundingPassage]
    after: list[SurroundingPassage]


@dataclass(frozen=True, slots=True)
class PassageAnswer:
    """A ranked passage with the sentences that speak for it.

    ``id`` is its own inside the collection, ``passage_id`` the caller's. ``explored``: it is there by chance.
    ``duplicates``: passages with nearly its text, which it stands for. ``probability``: of being evidence, in
    (0, 1); None where features do not rank. ``context``: None unless ``PassageContextService`` read it.
    """

    id: int
    passage_id: str
    title: str | None
    text: str
    language: str
    metadata: dict[str, Any]
    score: float
    source: PassageSource
    sentences: list[SentenceAnswer]
    explored: bool = False
    duplicates: list[DuplicateAnswer] = field(default_factory=list)
    probability: float | None = None
    context: PassageContext | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Durations by stage, in milliseconds."""

    analyse_ms: float
    embed_ms: float
    search_ms: float
    total_ms: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a query.

    ``sufficiency`` is the probability that the first five passages hold all the evidence; None where features do
    not rank. ``insufficient`` ones show nothing, because the query wanted a higher one. ``sufficiency_level``
    is what it had to reach if the query left that to Engram.
    ``collapse_duplicates``: whether duplicates of better passages are left out.
    ``trace_id``: the trace that its query belongs to, as the caller named it.
    """

    query_id: UUID
    collection: str
    query: str
    memory: Memory
    profile: ProfileName
    strategy: Strategy
    expanded: bool
    stop_rule: HopStopRule
    hops: int
    stop_reason: StopReason
    passages: list[PassageAnswer]
    timings: Timings
    arm: str | None = None
    shadow: bool = False
    sufficiency: float | None = None
    insufficient: bool = False
    sufficiency_level: WithholdingLevel | None = None
    entities: list[EntityAnswer] | None = None
    trace: Trace | None = None
    warnings: Sequence[Fallback] = ()
    collapse_duplicates: bool = False
    trace_id: str | None = None


def build_answer(retrieved: RetrievalResult) -> Answer:
    """Make the answer from a retrieval result, without parts that the query does not include."""
    plan, walk, ranking = retrieved.plan, retrieved.walk, retrieved.ranking
    selected = _collect_selected(walk)
    duplicates = _duplicates(retrieved)
    return Answer(
        query_id=plan.query_id,
        collection=plan.collection.name,
        query=plan.query.text,
        memory=plan.query.memory,
        profile=plan.profile.name,
        strategy=plan.query.strategy,
        expanded=bool(plan.query.expansions),
        stop_rule=plan.stop_rule,
        hops=len(walk.hops),
        stop_reason=walk.stop_reason or "max_hops",
        passages=[
            _mark_exploration(
                retrieved.shown,
                _passage(
                    retrieved.passages[passage],
                    score,
                    read_source(retrieved.passages[passage], plan.collection),
                    selected,
                    retrieved.sentences.get(passage),
                    duplicates.get(passage, []),
                    ranking.estimate_probability(score),
                ),
            )
            for passage, score in retrieved.shown.best
            if passage in retrieved.passages
        ],
        arm=plan.query.arm,
        shadow=plan.query.shadow,
        sufficiency=None if ranking.sufficiency is None else ranking.sufficiency.probability,
        insufficient=retrieved.shown.withheld,
        sufficiency_level=ranking.level,
        timings=build_timings(retrieved),
        warnings=plan.warnings,
        collapse_duplicates=plan.collapses,
        trace_id=plan.query.trace_id,
    )


def _duplicates(retrieved: RetrievalResult) -> dict[int, list[DuplicateAnswer]]:
    """Shown passage -> the near-duplicates that were left out for it, in id order."""
    duplicates: dict[int, list[DuplicateAnswer]] = {}
    for duplicate, passage in sorted(retrieved.ranking.stand_in_by_passage.items()):
        if duplicate in retrieved.passages:
            stored = retrieved.passages[duplicate]
            duplicates.setdefault(passage, []).append(
                DuplicateAnswer(
                    duplicate,
                    stored.external_id,
                    stored.title,
                    stored.metadata,
                    read_source(stored, retrieved.plan.collection),
                )
            )
    return duplicates


def build_timings(retrieved: RetrievalResult) -> Timings:
    """Return how long each stage of the query took."""
    plan = retrieved.plan
    total = plan.analyse_ms + plan.embed_ms + retrieved.search_ms
    return Timings(plan.analyse_ms, plan.embed_ms, retrieved.search_ms, round(total, 3))


def build_trace(retrieved: RetrievalResult) -> Trace:
    """Make the trace of an answer from its retrieval result."""
    walk, ranking = retrieved.walk, retrieved.ranking
    return Trace(
        retrieved.plan.constraint,
        list(retrieved.entities),
        _recall_trace(walk),
        _hop_traces(walk),
        sufficiency=None if ranking.sufficiency is None else _sufficiency_trace(ranking.sufficiency),
        collapsed=len(ranking.stand_in_by_passage) if retrieved.plan.collapses else None,
        language=retrieved.plan.language,
        lexical_terms=len(retrieved.plan.terms),
        versions=retrieved.versions,
        corrections=list(retrieved.plan.corrections),
    )


def _sufficiency_trace(estimate: SufficiencyEstimate) -> SufficiencyTrace:
    weighted = zip(sufficiency.ANSWER_FEATURES, estimate.features.tolist(), estimate.weights.tolist(), strict=False)
    return SufficiencyTrace(
        estimate.probability,
        estimate.model,
        estimate.vouched,
        {name: FeatureTrace(value, weight) for name, value, weight in weighted},
        estimate.events,
        remembered=estimate.remembered,
        undenied=estimate.undenied,
    )


@dataclass(frozen=True, slots=True)
class _SelectedSentences:
    """Selected sentences of an answer.

    Attributes:
        of_passage: passage -> its selected sentences.
        hops: sentence -> numbers of the hops that selected it, from 1.
        best: sentence -> its best score in these hops, or its recall probability if that is higher.
        recall: sentence -> its recall probability, in [0, 1].
    """

    of_passage: Mapping[int, Sequence[SelectedSentence]]
    hops: Mapping[int, list[int]]
    best: Mapping[int, float]
    recall: Mapping[int, float]


def _collect_selected(walk: Walk) -> _SelectedSentences:
    """Collect the sentences that the hops selected."""
    of_passage: dict[int, list[SelectedSentence]] = {}
    for evidence in walk.evidence.values():
        of_passage.setdefault(evidence.passage_id, []).append(evidence)
    hops: dict[int, list[int]] = {}
    best: dict[int, float] = {}
    for number, hop in enumerate(walk.hops, start=1):
        for sentence in hop.selected:
            hops.setdefault(sentence, []).append(number)
            best[sentence] = max(
                best.get(sentence, 0.0), hop.score(sentence), walk.recall_probabilities.get(sentence, 0.0)
            )
    return _SelectedSentences(of_passage, hops, best, walk.recall_probabilities)


def _passage(
    stored: StoredPassage,
    score: float,
    source: PassageSource,
    selected: _SelectedSentences,
    sentences: Sequence[StoredSentence] | None,
    duplicates: list[DuplicateAnswer],
    probability: float | None,
) -> PassageAnswer:
    """The passage with its selected sentences, or with all of them if ``sentences`` are given."""
    if sentences is None:
        passage_sentences = [(e.sentence_id, e.position, e.text) for e in selected.of_passage.get(stored.id, ())]
    else:
        passage_sentences = [(sentence.id, sentence.position, sentence.text) for sentence in sentences]
    return PassageAnswer(
        stored.id,
        stored.external_id,
        stored.title,
        stored.text,
        stored.language,
        stored.metadata,
        score,
        source,
        [
            SentenceAnswer(
                identity,
                position,
                text,
                selected.best.get(identity),
                list(selected.hops.get(identity, ())),
                selected.recall.get(identity, 0.0),
            )
            for identity, position, text in sorted(passage_sentences, key=lambda row: row[1])
        ],
        duplicates=duplicates,
        probability=probability,
    )


def _mark_exploration(chosen: ShownPassages, hit: PassageAnswer) -> PassageAnswer:
    """The hit as it is answered: an explored one is marked, and shows at least its nearest sentence."""
    nearest = chosen.explored.get(hit.id)
    if nearest is None:
        return hit
    sentences = list(hit.sentences)
    if all(sentence.sentence_id != nearest.id for sentence in sentences):
        sentences.append(SentenceAnswer(nearest.id, nearest.position, nearest.text, None, []))
    return replace(hit, sentences=sorted(sentences, key=lambda row: row.position), explored=True)


def _recall_trace(walk: Walk) -> list[RecallTrace]:
    return [
        RecallTrace(
            past.sentence_id,
            past.question,
            past.similarity,
            past.same_need.probability,
            past.same_need.nearness,
            past.same_need.words,
            past.same_need.contrasts,
            past.same_need.supporters,
            past.same_need.others,
            past.same_need.learned_from,
            past.support,
            past.perplexity,
            walk.recall_probabilities.get(past.sentence_id, 0.0),
        )
        for past in walk.recalled
        if past.same_need is not None
    ]


def _hop_traces(walk: Walk) -> list[HopTrace]:
    """Make one trace per hop; recall probabilities are shown for the first hop."""
    return [
        HopTrace(
            hop=number,
            entities={hop.start.names[entity]: score for entity, score in hop.start.activation.items()},
            candidates=len(hop.candidates),
            sentences=_sentence_traces(hop, walk.recall_probabilities if number == 1 else {}),
            coverage=hop.coverage,
        )
        for number, hop in enumerate(walk.hops, start=1)
    ]


def _sentence_traces(hop: WalkHop, probabilities: Mapping[int, float]) -> list[SentenceTrace]:
    """Make one trace per selected sentence of a hop; ``probabilities``: sentence -> its recall probability."""
    rows = hop.candidates
    task, time = (rows.get_memories(channel) for channel in ("task", "time"))
    task_factors, time_factors = task.factor, time.factor * (1.0 + rows.agreement)
    traces = []
    for sentence in hop.selected:
        row = hop.position(sentence)
        evidence = hop.evidence[sentence]
        traces.append(
            SentenceTrace(
                sentence_id=sentence,
                passage_id=evidence.external_id,
                text=evidence.text,
                score=float(hop.scores[row]),
                activation=float(rows.activation[row]),
                activated_by=[
                    hop.start.names[entity] for entity in evidence.entities if entity in hop.start.activation
                ],
                semantic=float(rows.semantic[row]),
                task_factor=float(task_factors[row]),
                task_perplexity=float(task.perplexity[row]),
                time_factor=float(time_factors[row]),
                time_perplexity=float(time.perplexity[row]),
                recall_probability=probabilities.get(sentence, 0.0),
            )
        )
    return traces

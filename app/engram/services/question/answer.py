"""Step 10: make the answer of what was retrieved. Here rows of passages get their external ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from engram.core.ranking.profiles import ProfileName
from engram.core.text.passage_source import PassageSource, read_source
from engram.services.question.query import Fallback, HopStopRule, Memory, Strategy
from engram.services.question.search import RetrievalResult
from engram.services.question.sufficiency import WithholdingLevel
from engram.services.question.trace import EntityAnswer, Trace
from engram.services.question.walk import StopReason, Walk
from engram.storage.corpus.passages import StoredPassage
from engram.storage.question.graph_hops import SelectedSentence


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

    ``sufficiency`` is the probability that the first five passages hold all the evidence, ``steering`` the same
    before calibration; None where features do not rank. ``insufficient`` ones show nothing, because the query
    wanted a higher one. ``sufficiency_level`` is what it had to reach if the query left that to Engram.
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
    steering: float | None = None
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
            _passage(retrieved, retrieved.passages[passage], score, selected, duplicates.get(passage, []))
            for passage, score in retrieved.shown.best
            if passage in retrieved.passages
        ],
        arm=plan.query.arm,
        shadow=plan.query.shadow,
        sufficiency=None if ranking.sufficiency is None else ranking.sufficiency.probability,
        steering=None if ranking.sufficiency is None else ranking.sufficiency.steering,
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
                    read_source(stored, retrieved.plan.collection.link_template),
                )
            )
    return duplicates


def build_timings(retrieved: RetrievalResult) -> Timings:
    """Return how long each stage of the query took."""
    plan = retrieved.plan
    total = plan.analyse_ms + plan.embed_ms + retrieved.search_ms
    return Timings(plan.analyse_ms, plan.embed_ms, retrieved.search_ms, round(total, 3))


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
                best.get(sentence, 0.0), hop.score(sentence), walk.recall.probabilities.get(sentence, 0.0)
            )
    return _SelectedSentences(of_passage, hops, best, walk.recall.probabilities)


def _passage(
    retrieved: RetrievalResult,
    stored: StoredPassage,
    score: float,
    selected: _SelectedSentences,
    duplicates: list[DuplicateAnswer],
) -> PassageAnswer:
    """The passage with its selected sentences, or with all if the query asked for them.

    An explored one is marked, and shows at least its nearest sentence.
    """
    if stored.id in retrieved.sentences:
        included = [(one.id, one.position, one.text) for one in retrieved.sentences[stored.id]]
    else:
        evidence = selected.of_passage.get(stored.id, ())
        included = [(one.sentence_id, one.position, one.text) for one in evidence]
    sentences = [
        SentenceAnswer(
            identity,
            position,
            text,
            selected.best.get(identity),
            list(selected.hops.get(identity, ())),
            selected.recall.get(identity, 0.0),
        )
        for identity, position, text in included
    ]
    nearest = retrieved.shown.explored.get(stored.id)
    if nearest is not None and all(one.sentence_id != nearest.id for one in sentences):
        sentences.append(SentenceAnswer(nearest.id, nearest.position, nearest.text, None, []))
    return PassageAnswer(
        stored.id,
        stored.external_id,
        stored.title,
        stored.text,
        stored.language,
        stored.metadata,
        score,
        read_source(stored, retrieved.plan.collection.link_template),
        sorted(sentences, key=lambda one: one.position),
        explored=nearest is not None,
        duplicates=duplicates,
        probability=retrieved.ranking.estimate_probability(score),
    )

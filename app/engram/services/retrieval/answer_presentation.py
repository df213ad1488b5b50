"""Presentation of a retrieval result as an answer and a trace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engram.core.ranking import propagation, sufficiency
from engram.services.retrieval import hop_loop
from engram.services.retrieval.answer import Answer, DuplicateAnswer, PassageAnswer, SentenceAnswer, Timings
from engram.services.retrieval.answer_sufficiency import SufficiencyEstimate
from engram.services.retrieval.answer_trace import (
    FeatureTrace,
    HopTrace,
    RecallTrace,
    SentenceTrace,
    SufficiencyTrace,
    Trace,
)
from engram.services.retrieval.graph_walk import Walk, WalkHop
from engram.services.retrieval.passage_source import PassageSource, read_source
from engram.services.retrieval.retrieval_service import RetrievalResult
from engram.storage.corpus.passages import StoredPassage, StoredSentence
from engram.storage.retrieval.graph_hops import SelectedSentence


def answer(retrieved: RetrievalResult) -> Answer:
    """Make the answer from a retrieval result, without parts that the query does not include."""
    plan, walk, ranking = retrieved.plan, retrieved.walk, retrieved.ranking
    selected = _collect_selected(walk)
    duplicates = _duplicates(retrieved)
    similarities = dict(ranking.ordered) if plan.query.strategy == "dense" else ranking.similarities
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
            retrieved.shown.mark_exploration(
                passage,
                _passage(
                    retrieved.passages[passage],
                    score,
                    read_source(retrieved.passages[passage], plan.collection),
                    selected,
                    retrieved.sentences.get(passage),
                    duplicates.get(passage, []),
                    similarities.get(passage),
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
        timings=timings(retrieved),
        warnings=plan.warnings,
        rest=hop_loop.cut_walk(plan, walk) if walk.hops else None,
        alone=ranking.teaches and not retrieved.shown.explored,
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
                    stored.external_id,
                    stored.title,
                    stored.metadata,
                    read_source(stored, retrieved.plan.collection),
                )
            )
    return duplicates


def timings(retrieved: RetrievalResult) -> Timings:
    """Return how long each stage of the query took."""
    plan = retrieved.plan
    total = plan.analyse_ms + plan.embed_ms + retrieved.search_ms
    return Timings(plan.analyse_ms, plan.embed_ms, retrieved.search_ms, round(total, 3))


def trace(retrieved: RetrievalResult) -> Trace:
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
    )


@dataclass(frozen=True, slots=True)
class _SelectedSentences:
    """Selected sentences of an answer.

    Attributes:
        of_passage: passage -> its selected sentences.
        hops: sentence -> numbers of the hops that selected it, from 1.
        best: sentence -> its best score in these hops, or its recall prior if that is higher.
        recall: sentence -> its recall prior, in [0, 1].
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
            best[sentence] = max(best.get(sentence, 0.0), hop.score(sentence), walk.priors.get(sentence, 0.0))
    return _SelectedSentences(of_passage, hops, best, walk.priors)


def _passage(
    stored: StoredPassage,
    score: float,
    source: PassageSource,
    selected: _SelectedSentences,
    sentences: Sequence[StoredSentence] | None,
    duplicates: list[DuplicateAnswer],
    similarity: float | None,
) -> PassageAnswer:
    """The passage with its selected sentences, or with all of them if ``sentences`` are given."""
    if sentences is None:
        passage_sentences = [(e.sentence_id, e.position, e.text) for e in selected.of_passage.get(stored.id, ())]
    else:
        passage_sentences = [(sentence.id, sentence.position, sentence.text) for sentence in sentences]
    return PassageAnswer(
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
        similarity=similarity,
    )


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
            walk.priors.get(past.sentence_id, 0.0),
        )
        for past in walk.recalled
        if past.same_need is not None
    ]


def _hop_traces(walk: Walk) -> list[HopTrace]:
    """Make one trace per hop; recall priors are shown for the first hop."""
    return [
        HopTrace(
            hop=number,
            entities={hop.start.names[entity]: score for entity, score in hop.start.activation.items()},
            candidates=len(hop.candidates),
            sentences=_sentence_traces(hop, walk.priors if number == 1 else {}),
            coverage=hop.coverage,
        )
        for number, hop in enumerate(walk.hops, start=1)
    ]


def _sentence_traces(hop: WalkHop, priors: Mapping[int, float]) -> list[SentenceTrace]:
    """Make one trace per selected sentence of a hop; ``priors``: sentence -> its recall prior."""
    rows = hop.candidates
    task_factors = propagation.task_factor(rows)
    time_factors = propagation.time_factor(rows)
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
                task_perplexity=float(rows.task_perplexity[row]),
                time_factor=float(time_factors[row]),
                time_perplexity=float(rows.time_perplexity[row]),
                recall_prior=priors.get(sentence, 0.0),
            )
        )
    return traces

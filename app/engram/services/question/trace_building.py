"""Part of step 10: make the trace of what was retrieved."""

from collections.abc import Mapping

from engram.core.ranking import sufficiency
from engram.services.question.search import RetrievalResult
from engram.services.question.sufficiency import SufficiencyEstimate
from engram.services.question.trace import (
    FeatureTrace,
    HopTrace,
    RecallTrace,
    SentenceTrace,
    SufficiencyTrace,
    Trace,
)
from engram.services.question.walk import Walk, WalkHop


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


def _recall_trace(walk: Walk) -> list[RecallTrace]:
    return [
        RecallTrace(
            sentence_id=past.sentence_id,
            past_question=past.question,
            similarity=past.similarity,
            same_need=need.probability,
            nearness=need.nearness,
            words=need.words,
            contrasts=need.contrasts,
            supporters=need.supporters,
            others=need.others,
            learned_from=need.learned_from,
            support=past.support,
            perplexity=past.perplexity,
            recall_probability=walk.recall.probabilities.get(past.sentence_id, 0.0),
        )
        for past in walk.recall.supports
        if (need := past.same_need) is not None
    ]


def _hop_traces(walk: Walk) -> list[HopTrace]:
    """Make one trace per hop; recall probabilities are shown for the first hop."""
    return [
        HopTrace(
            hop=number,
            entities={hop.start.names[entity]: score for entity, score in hop.start.activation.items()},
            candidates=len(hop.candidates),
            sentences=_sentence_traces(hop, walk.recall.probabilities if number == 1 else {}),
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

"""Trace of an answer as it is shown, stored and read again, with the influence of verdicts where asked for."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from engram.providers.language import Correction


@dataclass(frozen=True, slots=True)
class EntityAnswer:
    """A mention of the question and the entity it was aligned to (GAM-RAG, Eq. 3)."""

    mention: str
    entity_id: int
    name: str
    similarity: float


@dataclass(frozen=True, slots=True)
class RecallTrace:
    """A sentence that a past question's verdict brought in; the question is None to whom it is not to be shown.

    Attributes:
        similarity: cosine of the two questions.
        same_need: probability that the passage is evidence, by all past questions near this one.
        nearness, words, contrasts, supporters, others, learned_from: see ``core.ranking.same_need.SameNeed``.
        recall_probability: probability that the sentence is evidence, by recall.
    """

    sentence_id: int
    past_question: str | None
    similarity: float
    same_need: float
    nearness: float
    words: float
    contrasts: tuple[str, ...]
    supporters: int
    others: int
    learned_from: int
    support: float
    perplexity: float
    recall_probability: float


@dataclass(frozen=True, slots=True)
class Cause:
    """A verdict that counts, and the question that it was on."""

    event_id: int
    judge: str
    question: str
    applied_at: datetime


@dataclass(frozen=True, slots=True)
class SentenceInfluence(Cause):
    """Influence of one verdict on a selected sentence: each number less its value without the verdict.

    Attributes:
        score: of the sentence in its hop, by what the verdict did to the memories of all that the hop reached.
        recall_probability: of the sentence, by what the verdict did to past questions' supports.
    """

    score: float
    recall_probability: float


@dataclass(frozen=True, slots=True)
class SentenceTrace:
    """Why a hop selected a sentence: every factor of its score (Eqs. 4-6), and the verdicts behind them.

    ``influences`` are the strongest; ``influences_cut`` says that there may be more.
    """

    sentence_id: int
    passage_id: str
    text: str
    score: float
    activation: float
    activated_by: list[str]
    semantic: float
    task_factor: float
    task_perplexity: float
    time_factor: float
    time_perplexity: float
    recall_probability: float
    influences: list[SentenceInfluence] = field(default_factory=list)
    influences_cut: bool = False


@dataclass(frozen=True, slots=True)
class HopTrace:
    """One propagation round.

    Attributes:
        coverage: as of ``WalkHop``.
    """

    hop: int
    entities: dict[str, float]
    candidates: int
    sentences: list[SentenceTrace]
    coverage: float | None


@dataclass(frozen=True, slots=True)
class PassageInfluence(Cause):
    """Influence of one verdict on a passage's score: the score less its value without the verdict.

    What leads from hop to hop is left as it was. Evolved keys are told apart: see ``KeyTrace``.

    Attributes:
        score: by all of the following together, which need not be their sum.
        memory: by the memories of sentences.
        recall: by the supports of past questions.
    """

    score: float
    memory: float
    recall: float


@dataclass(frozen=True, slots=True)
class KeyCause(Cause):
    """A verdict that brought a unit of a key; its credit is gain times weight (ERM, Eqs. 5-7)."""

    gain: float
    weight: float


@dataclass(frozen=True, slots=True)
class KeyUnitTrace:
    """A unit of an evolved key.

    Attributes:
        share: in (0, 1], of what the key adds to its base.
        events: the verdicts with the highest credit behind it, of ``event_count``.
    """

    unit_id: int
    method: str
    text: str
    share: float
    events: list[KeyCause]
    event_count: int


@dataclass(frozen=True, slots=True)
class KeyTrace:
    """An evolved key: how near it and its base key are to the question, and what it is composed of."""

    similarity: float
    base_similarity: float
    units: list[KeyUnitTrace]


@dataclass(frozen=True, slots=True)
class FeatureTrace:
    """A feature of a passage and its weight: their product is what it adds to the score."""

    value: float
    weight: float


@dataclass(frozen=True, slots=True)
class PassageTrace:
    """Why a returned passage has its score, and what memory did to it.

    Attributes:
        id, passage_id: inside the collection, and the caller's.
        features: those that are not 0, by name (``PASSAGE_FEATURES``); none where features do not rank.
            What they add, and ``recall``, is the score.
        completes: the passage of the pool that it adds most to, by the caller's id; None where it adds to none.
        completes_id: the same inside the collection.
        rank_without_memory: from 1; None where it would not have been among the candidates.
        recall: what recalled sentences add to the score.
        key: None where the passage was found by its base key.
        influences: the strongest; ``influences_cut`` says that there may be more.
        text_since: when the passage's text became what it is; verdicts applied before were on an earlier text.
    """

    id: int
    passage_id: str
    rank: int
    rank_without_memory: int | None
    score: float
    features: dict[str, FeatureTrace]
    completes: str | None
    completes_id: int | None
    recall: float
    key: KeyTrace | None
    influences: list[PassageInfluence]
    influences_cut: bool
    text_since: datetime


@dataclass(frozen=True, slots=True)
class RejectionTrace:
    """A passage that judges rejected for this question, or for one with the same need.

    Attributes:
        id, passage_id: inside the collection, and the caller's.
        rank: in the answer, from 1; None where it is not shown.
        probability: that it is no evidence, by the rejections, in [0, 1].
        score: what the rejections change of its score; 0 where a support is more probable, or it is no candidate.
        judges: how many say so; None where the log of nearby questions is too long to be read.
        influences: their verdicts, those with the largest effect on the score first; ``influences_cut``: there may
            be more.
    """

    id: int
    passage_id: str
    title: str | None
    rank: int | None
    probability: float
    score: float
    judges: int | None
    influences: list[PassageInfluence]
    influences_cut: bool


@dataclass(frozen=True, slots=True)
class SufficiencyInfluence(Cause):
    """Influence of one verdict on a probability: its value less that without the verdict."""

    probability: float


@dataclass(frozen=True, slots=True)
class SufficiencyTrace:
    """Why an answer is believed to be enough with its probability.

    Attributes:
        probability: the highest of ``model``, ``vouched`` and ``remembered``, as ``undenied`` leaves them.
        model: by the features: 1 / (1 + exp(-sum of value times weight)).
        vouched: by a verdict on a nearby past question that claimed to name all evidence.
        features: by name, see ``sufficiency.ANSWER_FEATURES``; none where nothing was found.
        events: verdicts in the weights.
        influences: the strongest of them; ``influences_cut`` says that there are more.
        remembered: lower bound by what verdicts on nearby past questions said of the evidence that leads.
        undenied: the share that judges of earlier answers to the same question leave, in (0, 1]; of ``model``,
            before its calibration.
        judgements: verdicts that ``undenied`` follows from, with their influence on ``probability``. Without one,
            the judge's judgement before it counts.
    """

    probability: float
    model: float
    vouched: float
    features: dict[str, FeatureTrace]
    events: int
    influences: list[SufficiencyInfluence] = field(default_factory=list)
    influences_cut: bool = False
    remembered: float = 0.0
    undenied: float = 1.0
    judgements: list[SufficiencyInfluence] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class VersionTrace:
    """The version that a question was taken to be about, where versions of one text were found.

    Attributes:
        asked: ``last``, ``then`` (of a time that it names), ``previous`` or ``changes``.
        moved: passages that have another place for it.
    """

    asked: str
    moved: int


@dataclass(frozen=True, slots=True)
class Trace:
    """Trace of an answer.

    ``passages`` and ``rejected`` are None where the query did not ask for a trace, ``sufficiency`` where features
    do not rank.
    ``collapsed`` counts the candidates that are left out as duplicates; None where none would be.
    ``language`` is the question's, None where its words do not tell which of the collection's. ``lexical_terms``
    counts its terms, and those of its expansions, that are matched word for word. ``versions`` is None where no
    passage has another version. ``corrections`` are of typing errors in the question.
    """

    time_constraint: str | None
    entities: list[EntityAnswer]
    recalled: list[RecallTrace]
    hops: list[HopTrace]
    passages: list[PassageTrace] | None = None
    sufficiency: SufficiencyTrace | None = None
    collapsed: int | None = None
    language: str | None = None
    lexical_terms: int = 0
    versions: VersionTrace | None = None
    rejected: list[RejectionTrace] | None = None
    corrections: list[Correction] = field(default_factory=list)

    def write_as_typed(self, part: str) -> str:
        """Write a part of the corrected question as it was typed: what is kept has no words of passages."""
        for one in self.corrections:
            part = part.replace(f"{one.typed} {one.corrected}", one.typed).replace(one.corrected, one.typed)
        return part

    def hide_questions(self) -> "Trace":
        """Return the trace without what others asked."""
        return replace(self, recalled=[replace(past, past_question=None) for past in self.recalled])

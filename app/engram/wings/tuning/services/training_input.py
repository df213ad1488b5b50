"""Collect the samples that a question encoder learns from, each with a weight and a judge.

A question's weight is the reliability of its surest support (``compute_reliability``). Of very many questions those
of rare needs come first: the newest question of every need, then the second newest of each, and so on.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engram.core.learning.states import question_hash
from engram.core.ranking.question_memory import compute_reliability, net_acceptance, net_support
from engram.providers.embedder.question_tuning import QuestionTuning
from engram.storage.corpus.collections import Collection
from engram.storage.database import Reader
from engram.wings.tuning.core.acceptance import AcceptanceRule, find_needs
from engram.wings.tuning.core.bert_gradients import BertWeights
from engram.wings.tuning.core.learn_adapter import TuningOptions, TuningSamples
from engram.wings.tuning.services.learning_process import TrainingInput
from engram.wings.tuning.storage import tuning_samples
from engram.wings.tuning.storage.tuning_samples import AppliedVerdict, JudgedSupport, PassageVectors

MOST_QUESTIONS = 3_000
"""Judged questions that one generation is learned from."""
CONSIDERED_QUESTIONS = 12_000
"""The newest judged questions, of which these are chosen."""
MOST_PASSAGES = 20_000
"""Passages that questions are compared with while they learn, besides those that verdicts speak of."""
PROBES = 200
"""Questions that nobody judged, whose first five passages are compared before and after."""
ASKED_QUERIES = 1_000
"""The newest answered queries, of which probes are chosen."""


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A judged question, as the log stands.

    Attributes:
        supported: passages that verdicts support for it, at least one.
        rejected: passages that verdicts reject for it.
        weight: in (0, 1].
        judge: one of those who support a passage for it; empty if nobody does by now.
    """

    id: int
    text: str
    supported: Sequence[int]
    rejected: Sequence[int]
    weight: float
    judge: str


@dataclass(frozen=True, slots=True)
class LoggedSamples:
    """Samples of one snapshot.

    Attributes:
        judged_count: judged questions of the collection.
        events: the verdicts behind the questions.
        unjudged: texts of questions that nobody judged.
    """

    collection: Collection
    judged_count: int
    questions: Sequence[JudgedQuestion]
    events: Sequence[AppliedVerdict]
    passages: PassageVectors
    unjudged: Sequence[str]


def load_samples(reader: Reader, collection: Collection) -> LoggedSamples:
    """Load what the log teaches, on a snapshot."""
    supports = tuning_samples.load_supports(reader, collection.id, CONSIDERED_QUESTIONS)
    questions = choose_questions(collect_questions(supports), MOST_QUESTIONS)
    wanted = sorted({passage for one in questions for passage in (*one.supported, *one.rejected)})
    step = max(1, -(-collection.passage_count // MOST_PASSAGES))
    asked = tuning_samples.list_asked_questions(reader, collection.id, ASKED_QUERIES)
    hashes = {text: question_hash(text) for text in asked}
    judged = tuning_samples.find_judged_hashes(reader, collection.id, list(hashes.values()))
    return LoggedSamples(
        collection,
        tuning_samples.count_judged(reader, collection.id),
        questions,
        tuning_samples.list_events(reader, collection.id, [one.id for one in questions]),
        tuning_samples.load_passages(reader, collection.id, step, wanted),
        [text for text in asked if hashes[text] not in judged][:PROBES],
    )


def collect_questions(supports: Sequence[JudgedSupport]) -> list[JudgedQuestion]:
    """Collect the supports of each question, but of those that nothing supports or that concern hidden passages."""
    by_question: dict[int, list[JudgedSupport]] = {}
    for support in supports:
        by_question.setdefault(support.question_id, []).append(support)
    collected = (_collect_question(rows) for rows in by_question.values())
    return [question for question in collected if question is not None]


def _collect_question(rows: Sequence[JudgedSupport]) -> JudgedQuestion | None:
    supporting = [row for row in rows if net_support(row.support, row.perplexity) > 0]
    if not supporting or not all(row.is_open for row in rows):
        return None
    surest = max(net_support(row.support, row.perplexity) for row in supporting)
    supported = sorted({row.passage_id for row in supporting})
    rejected = {row.passage_id for row in rows if net_acceptance(row.acceptance, row.perplexity) < 0}
    judges = [judge for row in supporting for text in row.statements for judge, word in text if word == 1]
    return JudgedQuestion(
        rows[0].question_id,
        rows[0].text,
        supported,
        sorted(rejected.difference(supported)),
        compute_reliability(surest),
        judges[0] if judges else "",
    )


def choose_questions(questions: Sequence[JudgedQuestion], most: int) -> list[JudgedQuestion]:
    """Choose the newest question of every need, then the second newest of each, until there are ``most``."""
    needs = find_needs([question.supported for question in questions]).tolist()
    newest_first = sorted(range(len(questions)), key=lambda row: -questions[row].id)
    turns: dict[int, int] = {}
    seen: Counter[int] = Counter()
    for row in newest_first:
        turns[row] = seen[needs[row]]
        seen[needs[row]] += 1
    chosen = sorted(newest_first, key=lambda row: turns[row])[:most]
    return [questions[row] for row in sorted(chosen)]


def build_training_input(
    tuning: QuestionTuning, samples: LoggedSamples, options: TuningOptions, rule: AcceptanceRule
) -> TrainingInput:
    """Read the encoder's weights and tokens: everything that learning is a function of."""
    options = replace(options, adapted_layers=tuning.adapted_layers)
    questions = tuning.tokenise([one.text for one in samples.questions], options.most_tokens)
    probes = tuning.tokenise(samples.unjudged, options.most_tokens) if samples.unjudged else []
    read = tuning.read_weights([*questions, *probes])
    weights = BertWeights(
        read.arrays,
        read.shape.layers,
        read.shape.heads,
        read.shape.epsilon,
        read.pooling,
        read.fingerprint,
        read.vocabulary,
        read.dimension,
    )
    row_by_passage = {passage: row for row, passage in enumerate(samples.passages.ids.tolist())}
    return TrainingInput(
        weights,
        TuningSamples(
            [format_key(one.id) for one in samples.questions],
            questions,
            [_find_rows(row_by_passage, one.supported) for one in samples.questions],
            [_find_rows(row_by_passage, one.rejected) for one in samples.questions],
            np.array([one.weight for one in samples.questions]),
            samples.passages.vectors,
            [one.judge for one in samples.questions],
        ),
        probes,
        options,
        rule,
    )


def format_key(question_id: int) -> str:
    """Key of a judged question among samples: they are sorted by id."""
    return f"{question_id:020}"


def _find_rows(row_by_passage: Mapping[int, int], passages: Sequence[int]) -> list[int]:
    return [row_by_passage[passage] for passage in passages]

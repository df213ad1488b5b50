"""The protocol ``clicks``: nobody judges, people click, and mostly on what stands first.

Questions arrive with Zipf repetition. Who asks looks at the result of rank r with probability (1 / r)^eta, and
clicks on what is looked at and relevant, and now and then on what is not (the position-based model of unbiased
learning to rank: Joachims, Swaminathan & Schnabel, 2017). A click supports what was shown of the passage. Three
ways to take silence about the others are compared with no memory at all: as a rejection in full, as one of so much
weight as the result was looked at, and as nothing.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engram.services.auth.scope import Scope
from engram.services.question.answer import Answer
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram_evaluation.arrivals import ARRIVALS, arrivals
from engram_evaluation.dataset import Question
from engram_evaluation.finished_phases import Phase
from engram_evaluation.harness import Harness, QueryArm, list_shown_sentences
from engram_evaluation.learning_turns import build_harness
from engram_evaluation.learning_variations import FULL
from engram_evaluation.protocols import MEMORY_OFF, Run
from engram_evaluation.retrieval_metrics import QuestionResult, QuestionScores, score
from engram_evaluation.verdict_givers import ShownSentence

ETA = 1.0
"""How fast attention falls with the rank: the result of rank r is looked at with probability (1 / r)^eta."""
MISTAKEN_CLICK_RATE = 0.1
"""How often a result that is looked at and not relevant is clicked all the same."""
JUDGE = "clicks"
REPEATED_GROUP = "asked again"
"""The group of the questions that came more than once."""


@dataclass(frozen=True, slots=True)
class ClickModel:
    """A way to take clicks.

    Attributes:
        silence: whether what was not clicked is rejected.
        weighed: whether a rejection says only as much as the result was looked at.
    """

    silence: bool
    weighed: bool


READINGS = {
    "silence rejects": ClickModel(silence=True, weighed=False),
    "silence weighed": ClickModel(silence=True, weighed=True),
    "clicks alone": ClickModel(silence=False, weighed=False),
}


def examination(rank: int) -> float:
    """With what probability the result of a rank, from 1 on, is looked at."""
    return float((1.0 / rank) ** ETA)


def simulate_clicks(question: Question, ranking: Sequence[str], draw: str) -> set[str]:
    """The passages that are clicked; by the same ``draw`` a rank is looked at, and a passage mistaken, alike."""
    clicks = set()
    for rank, passage in enumerate(ranking, start=1):
        is_seen = random.Random(f"{draw}/rank {rank}").random() < examination(rank)  # noqa: S311 - repeatable
        mistaken = random.Random(f"{draw}/passage {passage}").random() < MISTAKEN_CLICK_RATE  # noqa: S311 - repeatable
        if is_seen and (passage in question.relevant or mistaken):
            clicks.add(passage)
    return clicks


def build_verdict(scope: Scope, answer: Answer, clicks: set[str], reading: ClickModel) -> Verdict | None:
    """Make a verdict of the clicks on an answer; None if they say nothing."""
    items = _items(list_shown_sentences(answer))
    supporting, rejected = [], []
    for rank, passage in enumerate(answer.passages, start=1):
        sentences = items.get(passage.passage_id, ())
        if passage.passage_id in clicks:
            supporting += [NamedSentence(sentence) for sentence in sentences]
        elif reading.silence:
            examined = examination(rank) if reading.weighed else 1.0
            rejected += [NamedSentence(sentence, examined=examined) for sentence in sentences]
    if not supporting and not rejected:
        return None
    return Verdict(
        query_id=answer.query_id, scope=scope, supporting=supporting, rejected=rejected, partial=True, judge=JUDGE
    )


def clicks(run: Run) -> list[Phase]:
    """The stream without memory, and with what each reading of the clicks taught; for each seed."""
    return [phase for seed in run.options.seeds for phase in _seed(run, seed)]


def _seed(run: Run, seed: int) -> Iterator[Phase]:
    questions = arrivals(run.dataset.questions, run.options.limit or ARRIVALS, seed)
    names: Mapping[str, ClickModel | None] = {MEMORY_OFF: None, **READINGS}
    for arm, reading in names.items():
        rows = _rows(run, questions, arm, reading, seed)
        for group, (start, end) in _parts(len(rows)).items():
            yield Phase(arm, group, 0, seed, tuple(rows[start:end]))
        if again := measure_repeats(rows):
            yield Phase(arm, REPEATED_GROUP, 0, seed, tuple(again))


def _rows(
    run: Run, questions: Sequence[Question], arm: str, reading: ClickModel | None, seed: int
) -> Sequence[QuestionScores]:
    """Every arrival, in order."""
    whole = f"{len(questions)} arrivals"
    store = run.store(
        profile=run.options.profile,
        stream=[question.id for question in questions],
        frozen=run.options.frozen,
        clicks=[ETA, MISTAKEN_CLICK_RATE],
    )
    phase = store.get(arm, whole, turn=0, seed=seed)
    if phase is None:
        # So many arrivals stand for weeks: what holds one judge back for a day would end the stream with its first.
        harness = build_harness(run, replace(FULL, frozen=frozenset(run.options.freeze), uncapped=True))
        harness.reset()
        asking = QueryArm(run.options.profile, "off" if reading is None else "read", run.options.stop_rule)
        step = run.begin(f"{arm}, seed {seed}", len(questions))
        phase = Phase(
            arm, whole, 0, seed, tuple(score(_answer_stream(harness, questions, asking, reading, seed, step)))
        )
        store.put(phase)
    return phase.rows


def _answer_stream(
    harness: Harness,
    questions: Sequence[Question],
    arm: QueryArm,
    reading: ClickModel | None,
    seed: int,
    step: Callable[[], None],
) -> list[QuestionResult]:
    results = []
    for question in questions:
        answer, observation = harness.ask(question, arm, read=reading is not None)
        results.append(observation)
        if reading is not None:
            on = simulate_clicks(question, observation.ranking, f"clicks/{seed}/{question.id}")
            verdict = build_verdict(harness.scope, answer, on, reading)
            if verdict is not None:
                harness.give(question, verdict)
        step()
    return results


def _items(sentences: Sequence[ShownSentence]) -> dict[str, list[int]]:
    """Passage -> what a list of results shows of it: the sentences that were selected, else its first."""
    selected: dict[str, list[int]] = {}
    first: dict[str, list[int]] = {}
    for sentence in sentences:
        first.setdefault(sentence.passage_id, [sentence.sentence_id])
        if sentence.selected:
            selected.setdefault(sentence.passage_id, []).append(sentence.sentence_id)
    return first | selected


def _parts(count: int) -> dict[str, tuple[int, int]]:
    """Name -> positions of the first tenth of the stream, the last, and all between."""
    tenth = max(1, count // 10)
    parts = {"first tenth": (0, tenth), "between": (tenth, count - tenth), "last tenth": (count - tenth, count)}
    return {name: (start, end) for name, (start, end) in parts.items() if start < end}


def measure_repeats(rows: Sequence[QuestionScores]) -> list[QuestionScores]:
    """Return whether the first result was right for each question that came more than once, 1 or 0.

    ``wrong``: it was not relevant when the question came first. Of those, ``mended``: when it came last it was;
    ``stuck``: it was the same one every time. Of all others, ``spoiled``: when it came last it was not relevant.
    """
    courses: dict[str, list[QuestionScores]] = {}
    for row in rows:
        courses.setdefault(row.id.rpartition("#")[0], []).append(row)
    repeats = []
    for question, course in courses.items():
        if len(course) > 1:
            right = [row.values["ndcg@1"] > 0 for row in (course[0], course[-1])]
            firsts = {row.ranking[:1] for row in course}
            values = {"wrong": float(not right[0])}
            values |= (
                {"spoiled": float(not right[1])}
                if right[0]
                else {"mended": float(right[1]), "stuck": float(len(firsts) == 1)}
            )
            repeats.append(QuestionScores(question, course[0].type, course[-1].ranking, values))
    return repeats

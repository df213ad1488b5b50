"""The protocol ``sweep``: how many sentences are selected in a hop, K_S, and how many entities lead on, K_E.

One is varied while the other stays as the profile has it (GAM-RAG, Figure 6). Memory is off.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from engram.core.ranking.profiles import PROFILES, Profile, ProfileName
from engram_evaluation.dataset import Question
from engram_evaluation.finished_phases import Phase
from engram_evaluation.harness import QueryArm
from engram_evaluation.protocols import Run, measure
from engram_evaluation.retrieval_metrics import QuestionScores, score

GROUP = "all questions"
SENTENCES, ENTITIES = "K_S", "K_E"
VALUES: Mapping[str, Sequence[int]] = {SENTENCES: (1, 2, 3, 5, 8, 12), ENTITIES: (1, 3, 5, 10, 20)}
"""What is tried; the values of both profiles are among them."""
SWEPT_PROFILES: tuple[ProfileName, ...] = ("paper", "default")


def settings(profile: Profile) -> dict[str, tuple[int, int]]:
    """Arm -> (K_S, K_E); the profile's own pair comes once for each of the two."""
    own = (profile.sentences_per_hop, profile.entities_per_hop)
    vary: Mapping[str, Callable[[int], tuple[int, int]]] = {
        SENTENCES: lambda value: (value, own[1]),
        ENTITIES: lambda value: (own[0], value),
    }
    return {f"{profile.name}, {name} {value}": vary[name](value) for name in VALUES for value in VALUES[name]}


def sweep(run: Run) -> list[Phase]:
    """Every question under every setting of both profiles."""
    questions = run.dataset.questions[: run.options.limit]
    run.harness.reset()
    phases = []
    for name in SWEPT_PROFILES:
        done: dict[tuple[int, int], Phase] = {}
        for label, pair in settings(PROFILES[name]).items():
            if pair not in done:
                sentences, entities = pair
                store = run.store(asked=[question.id for question in questions], profile=name, sweep=pair)
                phase = store.get(name, GROUP, turn=0, seed=None)
                if phase is None:
                    arm = QueryArm(name, "off", run.options.stop(name), sentences=sentences, entities=entities)
                    phase = Phase(name, GROUP, 0, None, _ask_all(run, label, questions, arm))
                    store.put(phase)
                done[pair] = phase
            phases.append(Phase(label, GROUP, 0, None, done[pair].rows))
    return phases


def _ask_all(run: Run, label: str, questions: Sequence[Question], arm: QueryArm) -> tuple[QuestionScores, ...]:
    return tuple(score(measure(run, label, questions, lambda question: run.harness.ask(question, arm)[1])))


def courses(values: Iterable[tuple[str, float]]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Group figures by parameter and profile as (value, figure), values ascending, from (arm, figure)."""
    courses_by_arm: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for arm, figure in values:
        profile, varied = arm.split(", ")
        name, value = varied.split(" ")
        courses_by_arm.setdefault(name, {}).setdefault(profile, []).append((float(value), figure))
    return {
        name: {of: sorted(points) for of, points in courses.items()} for name, courses in courses_by_arm.items()
    }

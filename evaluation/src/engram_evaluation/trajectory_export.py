"""Trajectories of sessions as lines to train an extractor on, with rewards (State-Aware RAG, section 3.2).

What is trained is what decides which sentences enter memory. So a line to imitate (``sft``) is one sifting: the
service's own prompt with what the step saw, and the sentences to keep as its reply. A line to reinforce (``grpo``)
is the same prompt, the reply that was given, its reward, and what a reward function needs to mark other replies to
it. ``steps`` is the whole trajectory in plain values, from which other shapes can be made.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from engram.context.errors import InvalidRequestError
from engram.providers.llm import Llm, prompts
from engram.wings.agent.llm import agent_prompts
from engram.wings.sessions.llm import session_prompts
from engram.wings.sessions.services.session_trajectories import SentenceLine, Trajectory, TrajectoryStep
from engram_evaluation import answer_marking, reasoning_grades
from engram_evaluation.dataset import Dataset, GoldSentence, Question
from engram_evaluation.reasoning_rewards import (
    objective,
    outcome_reward,
    outcome_reward_by_gold,
    path_reward,
    path_reward_by_gold,
    play_reward,
    share_held,
)
from engram_evaluation.retrieval_metrics import is_match

Shape = Literal["steps", "sft", "grpo"]
AGENT = "agent"
SHAPES: tuple[Shape, ...] = get_args(Shape)


@dataclass(frozen=True, slots=True)
class Rewards:
    """Rewards of a trajectory.

    Attributes:
        path: R_p of each step.
        outcome: R_o.
    """

    path: tuple[float, ...]
    outcome: float

    @property
    def objective(self) -> float:
        """Eq. 5."""
        return objective(self.path, self.outcome)


Reward = Callable[[Trajectory, Question], Rewards]


@dataclass(slots=True)
class ExportCounts:
    """Numbers of exported trajectories and lines.

    Attributes:
        unknown: trajectories of questions that the data set does not have, or says nothing of.
        wrong: those that came to a wrong answer.
    """

    trajectories: int = 0
    unknown: int = 0
    wrong: int = 0
    lines: int = 0


def is_right(answer: str, question: Question) -> bool:
    """Whether an accepted answer stands in the answer, in whole words."""
    return bool(answer_marking.contains(answer, question.answers))


def reward_by_gold(trajectory: Trajectory, question: Question) -> Rewards:
    """Rewards without a model: gold sentences in memory after each step, and the answer's words."""
    gold = range(len(question.gold))
    memories = [_match_gold([*step.memory, *step.added_sentences], question.gold) for step in trajectory.steps]
    share = share_held(gold, memories[-1]) if memories else 0.0
    f1 = answer_marking.token_f1(trajectory.answer, question.answers)
    return Rewards(
        tuple(path_reward_by_gold(gold, memory) for memory in memories), outcome_reward_by_gold(f1, share)
    )


def build_judge_reward(llm: Llm) -> Reward:
    """Rewards by the grades of a language model, which is shown the accepted answers at the end only."""

    def grade_trajectory(trajectory: Trajectory, question: Question) -> Rewards:
        before: list[str] = []
        path = []
        for step in trajectory.steps:
            evidence = [(line.sentence_id, line.text) for line in step.added_sentences]
            path.append(
                path_reward(
                    reasoning_grades.grade_step(llm, question.text, before, step.question, evidence, step.answer)
                )
            )
            before.append(f"{step.question} {step.answer}".strip())
        end = reasoning_grades.grade_outcome(llm, question.text, before, trajectory.answer, question.answers)
        return Rewards(tuple(path), outcome_reward(end))

    return grade_trajectory


def export(
    trajectories: Iterable[Trajectory], dataset: Dataset, shape: Shape, reward: Reward, counted: ExportCounts
) -> Iterator[dict[str, Any]]:
    """Lines of the trajectories whose answer is right, in their order; ``counted`` says what became of all.

    Raises:
        InvalidRequestError: no question of the data set has accepted answers and gold sentences.
    """
    known = {
        question.text: question
        for question in (*dataset.questions, *dataset.list_paraphrases(dataset.questions))
        if question.answers and question.gold
    }
    if not known:
        raise InvalidRequestError(f"{dataset.name} has no questions with accepted answers and gold sentences.")
    for trajectory in trajectories:
        counted.trajectories += 1
        question = known.get(trajectory.question)
        if question is None:
            counted.unknown += 1
        elif not is_right(trajectory.answer, question):
            counted.wrong += 1
        else:
            for line in _lines(trajectory, question, shape, reward(trajectory, question)):
                counted.lines += 1
                yield line


def _lines(trajectory: Trajectory, question: Question, shape: Shape, rewards: Rewards) -> Iterator[dict[str, Any]]:
    if trajectory.planner == AGENT:
        yield from _turns(trajectory, question, shape)
        return
    for at, (step, path) in enumerate(zip(trajectory.steps, rewards.path, strict=True)):
        named = {
            "session": str(trajectory.session_id),
            "question_id": question.id,
            "planner": trajectory.planner,
            "path": trajectory.path,
            "step": at,
        }
        reward = {"path": path, "outcome": rewards.outcome, "objective": rewards.objective}
        if shape == "steps":
            yield {**named, **_format_step(trajectory, step), "reward": reward}
        elif step.shown_sentences:
            yield _format_sifting(trajectory, question, step, shape, named, reward)


def _turns(trajectory: Trajectory, question: Question, shape: Shape) -> Iterator[dict[str, Any]]:
    """The turns of an agent, with the reward that the environment gives for them (GRAM, Eqs. 6 and 7).

    Where rules took a turn the model's had no form. Such a turn is nothing to learn from, and has no line but in
    ``steps``.
    """
    f1 = answer_marking.token_f1(trajectory.answer, question.answers)
    valid = all(step.reply is not None for step in trajectory.steps)
    worth = {"outcome": f1, "format": float(valid), "objective": play_reward(f1, valid)}
    system = {"role": "system", "content": agent_prompts.system(insert_only=trajectory.insert_only)}
    for at, step in enumerate(trajectory.steps):
        named = {"session": str(trajectory.session_id), "question_id": question.id, "planner": AGENT, "step": at}
        if shape == "steps":
            turn_fields = {"observed": step.observation, "reply": step.reply}
            yield {**named, "path": 0, **_format_step(trajectory, step), **turn_fields, "reward": worth}
        elif step.reply is not None and step.observation is not None:
            prompt = [system, {"role": "user", "content": step.observation}]
            reply = {"role": "assistant", "content": step.reply}
            if shape == "sft":
                yield {"messages": [*prompt, reply], **named}
            else:
                yield {
                    "prompt": prompt,
                    "completion": [reply],
                    "reward": worth["objective"],
                    "rewards": worth,
                    "answers": list(question.answers),
                    **named,
                }


def _format_step(trajectory: Trajectory, step: TrajectoryStep) -> dict[str, Any]:
    """A step as (state, action, observation)."""
    return {
        "state": {
            "question": trajectory.question,
            "notes": list(step.notes),
            "memory": [_format_line(line) for line in step.memory],
        },
        "action": {"name": step.action, "question": step.question, "queries": list(step.queries)},
        "observation": {
            "seen": [_format_line(line) for line in step.shown_sentences],
            "kept": [_format_line(line) for line in step.added_sentences],
            "answer": step.answer,
        },
        "answer": trajectory.answer,
    }


def _format_sifting(
    trajectory: Trajectory,
    question: Question,
    step: TrajectoryStep,
    shape: Shape,
    named: Mapping[str, Any],
    reward: Mapping[str, float],
) -> dict[str, Any]:
    """A step as the prompt that sifts, and the reply: which of what it saw it kept."""
    memory_ids = {line.sentence_id for line in step.memory}
    fresh = [line for line in step.shown_sentences if line.sentence_id not in memory_ids]
    lines = [*fresh, *step.memory]
    evidence = prompts.number_sentences((line.sentence_id, line.text) for line in lines)
    numbers = {sentence: number for number, sentence in enumerate(evidence.ids, start=1)}
    kept_numbers = sorted(numbers[line.sentence_id] for line in step.added_sentences if line.sentence_id in numbers)
    prompt = session_prompts.keep(trajectory.question, step.question, step.notes, evidence)
    reply = json.dumps({"kept": kept_numbers, "contradictions": []})
    if shape == "sft":
        return {"messages": [*prompt, {"role": "assistant", "content": reply}], **named}
    gold = sorted(
        numbers[line.sentence_id]
        for line in lines
        if line.sentence_id in numbers
        and any(is_match(one, GoldSentence(line.passage_id, line.text)) for one in question.gold)
    )
    return {
        "prompt": prompt,
        "completion": [{"role": "assistant", "content": reply}],
        "reward": reward["objective"],
        "rewards": dict(reward),
        "gold": gold,
        "answers": list(question.answers),
        **named,
    }


def _match_gold(lines: Sequence[SentenceLine], gold: Sequence[GoldSentence]) -> set[int | tuple[str, int]]:
    """Lines as the gold sentence that each is, by its place, or as themselves."""
    matched_gold: set[int | tuple[str, int]] = set()
    for line in lines:
        line_gold = GoldSentence(line.passage_id, line.text)
        matches = [at for at, one in enumerate(gold) if is_match(one, line_gold)]
        matched_gold.update(matches if matches else [("other", line.sentence_id)])
    return matched_gold


def _format_line(line: SentenceLine) -> dict[str, Any]:
    return {"sentence_id": line.sentence_id, "passage_id": line.passage_id, "text": line.text}

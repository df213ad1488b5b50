"""Measure how often a chat model's replies are usable and right, and what they cost.

    python benchmarks/chat_model.py [--base-url URL --model NAME] [--items N] [--minutes N] [--out FILE]

Every use of the LLM is asked about questions of the sample corpus, with their gold sentences and some of other
passages as evidence. Without --base-url the model is SmolLM2-135M, served on this machine (local_model.py). A reply
is usable if Engram's reading of it accepts it, at once or when asked once more. What is right is known of the uses
that the sample has gold for. The file gets all replies, line by line.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

from engram.context.errors import LlmError
from engram.core.text.words import words
from engram.providers.language import PassageText, load_language
from engram.providers.llm import Llm
from engram.wings.agent.core.agent_turns import AgentObservation
from engram.wings.agent.llm import agent_model
from engram.wings.facts.llm import facts_by_model, maintain_facts
from engram.wings.frontends.llm.restatement import restate
from engram.wings.published.core.expansion import WordedMethod
from engram.wings.published.llm import expansion_model
from engram.wings.sessions.llm import reasoning, session_model
from engram_evaluation import reasoning_grades

SAMPLE = files("engram.wings.local.sample")
DISTRACTORS = 3
REPLY_TOKENS = 200


@dataclass(frozen=True, slots=True)
class Item:
    """A question of the sample with its evidence.

    Attributes:
        evidence: sentences by number, gold ones and others in a fixed mixed order.
        gold: numbers of the gold ones.
        other: an answer that is wrong.
    """

    question: str
    answers: Sequence[str]
    evidence: Sequence[tuple[int, str]]
    gold: frozenset[int]
    title: str
    sentences: Sequence[str]
    other: str

    @property
    def texts(self) -> list[str]:
        """Evidence without numbers."""
        return [text for _, text in self.evidence]

    @property
    def notes(self) -> list[str]:
        """First gold sentence, as a note."""
        return [text for number, text in self.evidence if number in self.gold][:1]


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A use of the model.

    Attributes:
        call: makes it of an item.
        right: whether what came of it is right; None where nothing tells.
    """

    call: Callable[[Llm, Item], Any]
    right: Callable[[Any, Item], bool] | None = None


def items(count: int) -> list[Item]:
    corpus = {row["_id"]: row for row in map(json.loads, (SAMPLE / "corpus.jsonl").read_text("utf-8").splitlines())}
    rows = [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text("utf-8").splitlines()][:count]
    everything = [sentence for row in corpus.values() for sentence in row["metadata"]["sentences"]]
    made = []
    for at, row in enumerate(rows):
        gold = [text for _, _, text in row["metadata"]["supporting_sentences"]]
        others = [everything[(at * 37 + step * 101) % len(everything)] for step in range(DISTRACTORS)]
        mixed = sorted({*gold, *others}, key=lambda text: (len(text) * 7 + at) % 11)
        evidence = [(number + 100, text) for number, text in enumerate(mixed)]
        passage = corpus[row["metadata"]["supporting_sentences"][0][0]]
        made.append(
            Item(
                row["text"],
                row["metadata"]["answers"],
                evidence,
                frozenset(number for number, text in evidence if text in gold),
                passage["title"],
                passage["metadata"]["sentences"],
                rows[(at + 1) % len(rows)]["metadata"]["answers"][0],
            )
        )
    return made


def uses() -> dict[str, ModelUse]:
    language = load_language("rules")

    def names_answer(draft: Any, item: Item) -> bool:
        return any(set(words(answer)) <= set(words(draft.text)) for answer in item.answers)

    def facts(llm: Llm, item: Item) -> list[str]:
        (read,) = language.analyse_passages([_passage(item)])
        return [f"{one.subject} | {one.predicate} | {one.object}" for one in facts_by_model(llm, item.title, read)]

    def observation(item: Item) -> AgentObservation:
        return AgentObservation(item.question, "", None, item.title, " ".join(item.sentences), 1, 1, 1, 4)

    graded = ["relevance", "sufficiency"]
    by_name: dict[str, ModelUse] = {
        "time of a sentence": ModelUse(lambda llm, item: llm.extract_time_constraint(item.texts[0])),
        "sufficiency: all evidence": ModelUse(
            lambda llm, item: llm.is_sufficient(item.question, item.texts), lambda came, _: came is True
        ),
        "sufficiency: nothing relevant": ModelUse(
            lambda llm, item: llm.is_sufficient(item.question, _irrelevant(item)), lambda came, _: came is False
        ),
        "judge": ModelUse(
            lambda llm, item: llm.judge_support(item.question, item.evidence),
            lambda came, item: set(came.supporting) == item.gold,
        ),
        "answer": ModelUse(lambda llm, item: llm.answer(item.question, item.evidence), names_answer),
        "restate": ModelUse(
            lambda llm, item: restate(llm, "And why?", [("user", item.question), ("assistant", "Yes.")])
        ),
        "facts of a passage": ModelUse(facts),
        "maintenance of facts": ModelUse(
            lambda llm, item: maintain_facts(llm, [("Ada", "born in", "Oslo")], "Ada was born in Lisbon.")
        ),
        "refine question": ModelUse(
            lambda llm, item: expansion_model.refine_question(llm, item.question, item.question, item.texts[:2])
        ),
        "split": ModelUse(lambda llm, item: session_model.split(llm, item.question)),
        "gaps": ModelUse(lambda llm, item: session_model.gaps(llm, item.question, ["? | is | ?1"], item.evidence)),
        "keep": ModelUse(
            lambda llm, item: session_model.keep(llm, item.question, item.question, [], item.evidence),
            lambda came, item: item.gold <= set(came.sentences) and len(came.sentences) < len(item.evidence),
        ),
        "note": ModelUse(
            lambda llm, item: session_model.note(
                llm, item.question, [], item.evidence, item.question, item.answers[0]
            )
        ),
        "step": ModelUse(lambda llm, item: session_model.ask_next_step(llm, item.question, item.notes, [])),
        "queries": ModelUse(lambda llm, item: session_model.queries(llm, item.question, item.notes)),
        "consolidate": ModelUse(lambda llm, item: reasoning.consolidate(llm, item.question, [], item.evidence)),
        "refine answer": ModelUse(
            lambda llm, item: reasoning.refine(llm, item.question, item.answers[0], item.evidence), names_answer
        ),
        "redirect": ModelUse(lambda llm, item: reasoning.redirect(llm, item.question, item.notes)),
        "rate: right answer": ModelUse(
            lambda llm, item: reasoning.rate(llm, item.question, item.answers[0], item.notes, item.evidence),
            lambda came, _: came > 5.0,
        ),
        "rate: wrong answer": ModelUse(
            lambda llm, item: reasoning.rate(llm, item.question, item.other, item.notes, item.evidence),
            lambda came, _: came < 5.0,
        ),
        "synthesise": ModelUse(
            lambda llm, item: reasoning.synthesise(
                llm, item.question, [item.answers[0], item.other, item.answers[0]], item.evidence
            ),
            names_answer,
        ),
        "grade of a step": ModelUse(
            lambda llm, item: reasoning_grades.grade_step(
                llm, item.question, [], item.question, item.evidence, item.answers[0]
            ),
            lambda came, _: all(came[name] in ("good", "excellent") for name in graded),
        ),
        "grade of an outcome": ModelUse(
            lambda llm, item: reasoning_grades.grade_outcome(llm, item.question, item.notes, item.answers[0])
        ),
        "turn of the agent": ModelUse(lambda llm, item: agent_model.ask_turn(llm, observation(item))),
    }
    for method in get_args(WordedMethod):
        by_name[f"expand: {method}"] = ModelUse(partial(_expand, method))
    return by_name


def _expand(method: WordedMethod, llm: Llm, item: Item) -> list[str]:
    return expansion_model.expand(llm, method, item.question)


def _irrelevant(item: Item) -> list[str]:
    return [text for number, text in item.evidence if number not in item.gold]


def _passage(item: Item) -> Any:
    return PassageText(item.title, " ".join(item.sentences), tuple(item.sentences))


@contextmanager
def open_endpoint(base_url: str | None) -> Iterator[str]:
    """The endpoint's base URL; of the local model where none is arguments."""
    if base_url is not None:
        yield base_url
        return
    command = [sys.executable, str(Path(__file__).with_name("local_model.py")), "--reply-tokens", str(REPLY_TOKENS)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def measure_call(llm: Llm, use: ModelUse, item: Item) -> dict[str, Any]:
    """One call: what came of it and what it took."""
    before, began = llm.usage, time.perf_counter()
    failure, came = None, None
    try:
        came = use.call(llm, item)
    except LlmError as error:
        failure = error.detail
    after = llm.usage
    return {
        "usable": failure is None,
        "calls": after.calls - before.calls,
        "right": None if use.right is None else failure is None and bool(use.right(came, item)),
        "seconds": time.perf_counter() - began,
        "prompt_tokens": after.prompt_tokens - before.prompt_tokens,
        "completion_tokens": after.completion_tokens - before.completion_tokens,
        "came": repr(came),
        "failure": failure,
    }


def table(rows: dict[str, list[dict[str, Any]]]) -> str:
    lines = ["| use | usable | at once | right | tokens read, written | seconds |", "|---|---|---|---|---|---|"]
    for name, calls in rows.items():
        least = 2 if name == "facts of a passage" else 1
        once = sum(one["usable"] and one["calls"] <= least for one in calls)
        right = "" if calls[0]["right"] is None else f"{sum(one['right'] for one in calls)} of {len(calls)}"
        mean = {key: sum(one[key] for one in calls) / len(calls) for key in calls[0] if "tokens" in key}
        seconds = sum(one["seconds"] for one in calls) / len(calls)
        usable = sum(one["usable"] for one in calls)
        lines.append(
            f"| {name} | {usable} of {len(calls)} | {once} | {right} | "
            f"{mean['prompt_tokens']:.0f}, {mean['completion_tokens']:.0f} | {seconds:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", help="of an endpoint; its key stands in ENGRAM_LLM_API_KEY")
    parser.add_argument("--model", default="SmolLM2-135M")
    parser.add_argument("--items", type=int, default=5, help="questions of the sample for each use")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no further call begins")
    parser.add_argument("--out", type=Path, help="file for all replies")
    parser.add_argument("--only", nargs="+", help="uses, by the beginning of their names")
    arguments = parser.parse_args()
    chosen = {
        name: use for name, use in uses().items() if not arguments.only or name.startswith(tuple(arguments.only))
    }
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen}
    ends = time.monotonic() + arguments.minutes * 60
    with open_endpoint(arguments.base_url) as url:
        key = os.environ.get("ENGRAM_LLM_API_KEY")
        with Llm(base_url=url, api_key=key, model=arguments.model, timeout_seconds=600, max_attempts=1) as llm:
            for item in items(arguments.items):
                for name, use in chosen.items():
                    if time.monotonic() >= ends:
                        break
                    rows[name].append(measure_call(llm, use, item))
                    if arguments.out is not None:
                        with arguments.out.open("a", encoding="utf-8") as file:
                            line = {"use": name, "question": item.question, **rows[name][-1]}
                            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(table({name: calls for name, calls in rows.items() if calls}))


if __name__ == "__main__":
    main()

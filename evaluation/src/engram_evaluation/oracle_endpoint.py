"""An endpoint that knows: it answers the service's prompts from the data set's own decompositions.

What is measured against it is an **upper bound**: what planners, budgets and retrieval bring if the model behind
them never errs. It sees the prompt and nothing else, so it tells an answer only where the quoted sentences state
it. It can be made to err, at a rate: an erring reply names another sentence, entity or question, turns a yes into a
no, or, one time in four, is not what was asked for at all, which the service's repair has to mend. Which replies
err depends on the prompt's words and a seed alone, so a run can be repeated, however many calls are open at once.
"""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engram.context.errors import InvalidRequestError
from engram.wings.agent.core.agent_turns import format_turn
from engram.wings.sessions.core.rewards import HIGHEST_RATING
from engram_evaluation.dataset import Dataset
from engram_evaluation.oracle_agent import AGENT, act, list_names, spoil_turn, state_facts
from engram_evaluation.oracle_knowledge import Knowledge
from engram_evaluation.oracle_reasoning import REASONING, Fields, Parts, lines
from engram_evaluation.oracle_server import Messages
from engram_evaluation.reasoning_rewards import GRADES, OUTCOME, PATH

BROKEN = 0.25
"""Share of erring replies that are not the JSON asked for."""
SINGULAR = {"queries": "query"}
NUMBERS = frozenset({"supporting", "cited", "kept"})
"""Fields that list sentence numbers."""
UNTOUCHED = frozenset({"mark", "verdict"})
"""Fields that take one of a few words, of which a wrong one would only be refused."""
PROBABILITIES = frozenset({"confidence"})
"""Fields that take a number in [0, 1]. Other numbers are ratings from 0 to ``HIGHEST_RATING``."""
GRADED = frozenset({*PATH, *OUTCOME})
"""Fields that take one of ``GRADES``."""
_PART = re.compile(r"<(\w+)>\n(.*?)\n</\1>", re.DOTALL)


class Oracle:
    """Replies to prompts; safe to share between threads.

    Raises:
        InvalidRequestError: the data set takes none of its questions apart, or the rate is not in [0, 1].
    """

    def __init__(self, dataset: Dataset, error_rate: float = 0.0, seed: int = 0) -> None:
        if not 0.0 <= error_rate <= 1.0:
            raise InvalidRequestError("--oracle-errors must lie between 0 and 1.")
        self._knowledge = Knowledge(dataset)
        if not len(self._knowledge):
            raise InvalidRequestError(
                f"{dataset.name} does not take its questions apart (metadata.steps or metadata.evidences), "
                "which the oracle needs."
            )
        self._error_rate = error_rate
        self._seed = seed

    def __call__(self, messages: Messages) -> str:
        """The reply to a conversation.

        Raises:
            LookupError: it is no prompt that the oracle knows.
        """
        parts = dict(_PART.findall(messages[1]["content"])) if len(messages) > 1 else {}
        system = messages[0]["content"] if messages else ""
        draw = random.Random(json.dumps([self._seed, messages]))  # noqa: S311 - repeatable, not secret
        errs, breaks = draw.random() < self._error_rate, draw.random() < BROKEN
        if AGENT in system:
            turn = act(self._knowledge, parts)
            wrong = spoil_turn(self._knowledge, turn, parts, draw) if errs else turn
            return turn.content if errs and breaks else format_turn(wrong)
        reply = _find_reply(system)(self._knowledge, parts)
        if not errs:
            return json.dumps(reply)
        if breaks:
            return f"Let me think about this. {next(iter(reply.values()), '')}"
        return json.dumps(self._spoil_reply(reply, parts, draw))

    def _spoil_reply(self, reply: Fields, parts: Parts, draw: random.Random) -> Fields:
        """Replace the values of the fields by others of the same kind."""
        sentence_numbers = list(lines(parts))
        return {
            field_name: self._draw_wrong_value(field_name, value, sentence_numbers, draw)
            for field_name, value in reply.items()
        }

    def _draw_wrong_value(
        self, field_name: str, value: Any, sentence_numbers: Sequence[int], draw: random.Random
    ) -> Any:
        """Draw another value of the same kind for a reply field; by chance it can be the right one.

        Every value is one that the field can take: an invalid one would be refused, and not be a wrong reply. For
        the same reason marks of unknowns, such as "?1", stay: triples without them are refused.
        """
        wrong = value
        match value:
            case bool():
                wrong = not value
            case int() if field_name == "sentence":
                wrong = draw.choice(sentence_numbers)
            case int() | float() if field_name in PROBABILITIES:
                wrong = round(draw.random(), 2)
            case int() | float():
                wrong = draw.randint(0, int(HIGHEST_RATING))
            case str() if field_name in GRADED:
                wrong = draw.choice(GRADES)
            case str() if field_name not in UNTOUCHED and not value.startswith("?"):
                question_steps, hop = self._knowledge.draw_hop(draw)
                asks = field_name.endswith(("question", "query"))
                wrong = question_steps.hop_questions[hop] if asks else question_steps.hops[hop].answer
            case [int(), *_] | [] if sentence_numbers and field_name in NUMBERS:
                wrong = sorted({*draw.sample(value, len(value) // 2), draw.choice(sentence_numbers)})
            case list():
                singular = SINGULAR.get(field_name, field_name)
                wrong = [self._draw_wrong_value(singular, one, sentence_numbers, draw) for one in value[:1]]
            case dict():
                wrong = {
                    key: self._draw_wrong_value(key, one, sentence_numbers, draw) for key, one in value.items()
                }
        return wrong


def _find_reply(system: str) -> Callable[[Knowledge, Parts], Fields]:
    """Find what replies to a prompt by the words of its system message.

    Raises:
        LookupError: there is no such prompt.
    """
    for mark, reply in _REPLIES.items():
        if mark in system:
            return reply
    raise LookupError("The oracle knows no such prompt.")


def _time(knowledge: Knowledge, parts: Parts) -> Fields:
    return {"time_constraint": None}


def _sufficiency(knowledge: Knowledge, parts: Parts) -> Fields:
    return {"sufficient": knowledge.find_stated_answer(parts["question"], lines(parts)) is not None}


def _support(knowledge: Knowledge, parts: Parts) -> Fields:
    return {"supporting": knowledge.list_supporting(parts["question"], lines(parts)), "confidence": 1.0}


def _answer(knowledge: Knowledge, parts: Parts) -> Fields:
    known_answer = knowledge.find_stated_answer(parts["question"], lines(parts))
    if known_answer is None:
        return {"answer": "", "cited": [], "sufficient": False}
    return {
        "answer": known_answer,
        "cited": knowledge.list_supporting(parts["question"], lines(parts)),
        "sufficient": True,
    }


_REPLIES: Mapping[str, Callable[[Knowledge, Parts], Fields]] = {
    **REASONING,
    '"time_constraint"': _time,
    '"entities"': list_names,
    '"facts"': state_facts,
    '"supporting"': _support,
    '"cited"': _answer,
    '{"sufficient": true} or': _sufficiency,
}
"""Words of a system message -> what replies to it; the first that stand in it count."""

"""The agent's play as an environment to train in (GRAM, section 3.3): reset, step, and what it was worth.

It is the play that sessions go through (``agent_play`` of the wing ``agent``), with rules for the extraction and
without a database, a network or a clock: the same actions give the same observations and rewards, wherever and
how often it is played. So a trainer runs as many copies as it likes; they share nothing but the language's rules.
The interface is Gymnasium's, without depending on it; docs/trajectories.md wraps it, and gives recipes for GRPO
trainers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from engram.context.errors import InvalidRequestError
from engram.providers.language import Language, PassageText, load_language
from engram.wings.agent.core.agent_turns import (
    AgentObservation,
    AgentTurn,
    FormatError,
    read_turn,
)
from engram.wings.agent.llm import agent_prompts
from engram.wings.agent.services.agent_memory import AgentMemory
from engram.wings.agent.services.agent_play import Change, Play, TurnOutcome, begin, carry_out, observe, skip_turn
from engram.wings.agent.services.grounding import GroundedFacts, StreamDocument, ground_text
from engram_evaluation import answer_marking
from engram_evaluation.reasoning_rewards import FORMAT_WEIGHT, play_reward

Info = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Text:
    """A document as a caller has it; without sentences, its text is split."""

    title: str | None
    text: str
    sentences: Sequence[str] = ()


@cache
def _rules() -> Language:
    return load_language("rules")


class GraphMemoryEnvironment:
    """One agent at a time: ``reset``, then ``step`` until it is terminated or truncated."""

    def __init__(
        self,
        *,
        insert_only: bool = False,
        turns: int | None = None,
        format_weight: float = FORMAT_WEIGHT,
        language: Language | None = None,
    ) -> None:
        """Copies share nothing but the language.

        Args:
            insert_only: whether the agent is offered no updates (GRAM, Table 3).
            turns: at most; None: two for each document and two more.
            format_weight: lambda of the reward.
            language: finds sentences and names; by default the built-in rules.
        """
        self.insert_only = insert_only
        self.turns = turns
        self.format_weight = format_weight
        self.language = _rules() if language is None else language
        self._play: Play | None = None
        self._documents: Sequence[StreamDocument] = ()
        self._answers: tuple[str, ...] = ()
        self._valid = True
        self._ended = False
        self._outcome: TurnOutcome | None = None

    @property
    def system_prompt(self) -> str:
        """Return the system prompt of a model, the same as in sessions."""
        return agent_prompts.system(insert_only=self.insert_only)

    @property
    def memory(self) -> AgentMemory:
        """Memory of the agent.

        Raises:
            InvalidRequestError: ``reset`` was not called.
        """
        return self._require_play().memory

    @property
    def observation(self) -> AgentObservation:
        """Parts of the agent's observation.

        Raises:
            InvalidRequestError: ``reset`` was not called.
        """
        return observe(self._require_play(), self.document)

    @property
    def document(self) -> StreamDocument | None:
        """The current document; None once the last went by."""
        play = self._require_play()
        return self._documents[play.at] if play.at < len(self._documents) else None

    @property
    def play(self) -> Play:
        """State of the play, for policies that are programs.

        Raises:
            InvalidRequestError: ``reset`` was not called.
        """
        return self._require_play()

    def reset(
        self, question: str, documents: Sequence[Text | str], answers: Sequence[str] = ()
    ) -> tuple[str, Info]:
        """Begin anew, with an empty memory.

        Args:
            question: to be answered.
            documents: in the order in which they go by; texts may be given as they are.
            answers: those that are accepted; without any, no answer is worth anything.

        Returns:
            The first observation, as a message to a model, and ``info`` as ``step`` gives it.

        Raises:
            InvalidRequestError: there is no question, no document, or no turn.
        """
        if not question.strip() or not documents:
            raise InvalidRequestError("An environment needs a question and at least one document.")
        texts = [one if isinstance(one, Text) else Text(None, one) for one in documents]
        self._documents = [self._document(number, text) for number, text in enumerate(texts)]
        try:
            self._play = begin(question, len(texts), turns=self.turns, insert_only=self.insert_only)
        except ValueError as error:
            raise InvalidRequestError(f"turns: {error}.") from error
        self._answers, self._valid, self._ended, self._outcome = tuple(answers), True, False, None
        return self._render(), self._info(None)

    def step(self, action_text: str) -> tuple[str, float, bool, bool, Info]:
        """Take one turn.

        A text that is no turn changes nothing but the number of turns that are left, and costs the share of the
        reward that is for the form. Reward comes with the end: token F1 of the answer against the best accepted one
        (Eq. 6), and ``format_weight`` if every turn was one (Eq. 7); a play that ends without an answer has the
        second only.

        Args:
            action_text: what the model said, ``<think>...</think><memory_insert>...</memory_insert>`` for one.

        Returns:
            Observation, reward, whether the agent answered, whether its turns are over without an answer, and
            ``info``: ``turn``, ``document`` (of how many), ``act`` (None if it was no turn), ``valid``, ``error``,
            ``facts`` (of the memory), ``new``, ``contradicted``, ``superseded`` (how many), ``unsupported``,
            ``tokens`` (about, of the observation), and at the end ``answer``, ``cites`` (sentences), ``f1``,
            ``format`` and ``exact``.

        Raises:
            InvalidRequestError: ``reset`` was not called, or the play is over.
        """
        play = self._require_play()
        if self._ended:
            raise InvalidRequestError("The play is over: call reset.")
        try:
            turn = read_turn(action_text, play.offered)
        except FormatError as error:
            self._valid, self._outcome = False, None
            self._play = skip_turn(play, str(error))
            return self._apply_turn(None, str(error))
        self._outcome = carry_out(play, turn, self.document, self._insert, self._update)
        self._play = self._outcome.play
        return self._apply_turn(turn)

    def _apply_turn(self, turn: AgentTurn | None, error: str | None = None) -> tuple[str, float, bool, bool, Info]:
        play, info = self._require_play(), self._info(turn, error)
        answered = self._outcome is not None and self._outcome.answer is not None
        truncated = not answered and play.turn > play.turns
        self._ended = answered or truncated
        worth = 0.0
        if self._ended:
            answer = "" if self._outcome is None else self._outcome.answer or ""
            f1 = answer_marking.token_f1(answer, self._answers) if answered and self._answers else 0.0
            worth = play_reward(f1, self._valid, self.format_weight)
            exact = (
                bool(self._answers) and answered and bool(answer_marking.score_exact_match(answer, self._answers))
            )
            info |= {
                "answer": answer,
                "f1": f1,
                "format": float(self._valid),
                "exact": exact,
                "cites": self._list_cited_sentences(),
            }
        observation = "" if self._ended else self._render()
        return observation, worth, answered, truncated, info | {"tokens": len(observation) // 4}

    def _info(self, turn: AgentTurn | None, error: str | None = None) -> Info:
        play, outcome = self._require_play(), self._outcome
        return {
            "turn": play.turn,
            "document": (min(play.at + 1, play.documents), play.documents),
            "act": None if turn is None else "skip" if turn.skips else turn.act,
            "valid": self._valid,
            "error": error,
            "facts": len(play.memory.facts),
            "new": 0 if outcome is None else len(outcome.facts),
            "contradicted": 0 if outcome is None else len(outcome.contradicted),
            "superseded": 0 if outcome is None else len(outcome.superseded),
            "unsupported": [] if outcome is None else list(outcome.unsupported),
        }

    def _list_cited_sentences(self) -> list[str]:
        """The sentences that the answer rests on."""
        if self._outcome is None:
            return []
        texts = {key: text for document in self._documents for key, text in document.sentences}
        sources = self._outcome.play.memory.sources
        return [texts[sources[number - 1].key] for number in dict.fromkeys(self._outcome.cites)]

    def _render(self) -> str:
        return agent_prompts.format_observation(self.observation)

    def _require_play(self) -> Play:
        if self._play is None:
            raise InvalidRequestError("There is no play: call reset.")
        return self._play

    def _insert(self, text: str, document: StreamDocument) -> GroundedFacts:
        return ground_text(text, document, self.language)

    def _update(self, text: str, document: StreamDocument, memory: AgentMemory) -> Change:
        return Change(self._insert(text, document))

    def _document(self, number: int, text: Text) -> StreamDocument:
        sentences: Sequence[str] = text.sentences
        if not sentences:
            (analysed,) = self.language.analyse_passages([PassageText(text.title, text.text)])
            sentences = [one.text for one in analysed]
        keyed = [(f"{number}.{at}", sentence) for at, sentence in enumerate(sentences)]
        return StreamDocument(str(number), text.title, keyed)

"""The most that work with a language model may cost."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of the cost of a session, or of reading a text; each is >= 0.

    Attributes:
        rounds: that retrieve.
        llm_calls: completions, those that were asked for again included.
        tokens: of prompts and completions, as far as the endpoint tells.
        seconds: of work on it, waiting for a worker not included.
        passages: distinct ones that its rounds read.
    """

    rounds: int = 3
    llm_calls: int = 40
    tokens: int = 100_000
    seconds: float = 120.0
    passages: int = 40

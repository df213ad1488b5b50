"""Query drift: a query of the language model's that names what nothing that was read names is not asked."""

from collections.abc import Iterable

from engram.core.text.words import words
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.session_tools import StepTools


def list_invented_names(tools: StepTools, query: str, sources: Iterable[str]) -> list[str]:
    """Names in the query that are in none of the sources."""
    source_text = " ".join(f" {' '.join(words(source))} " for source in sources)
    names = tools.language.analyse_question(query).entities
    return [name for name in names if f" {' '.join(words(name))} " not in source_text]


def sources(state: SessionState, *more: str) -> list[str]:
    """Return the texts that a session's queries may take names from: its question, notes and pool."""
    return [
        state.question,
        *(note.text for note in state.notes),
        *(sentence.text for sentence in state.pool),
        *more,
    ]

"""Merging the working memories of branches that ran side by side (State-Aware RAG, Eq. 2 and section 3.3).

Each branch starts from the same notes and may rewrite them: two notes become one, one is dropped, one is added. A
note is identified by its words. Places say nothing, since a rewritten memory has other notes in the same places.
"""

from collections.abc import Sequence

from engram.core.text.words import words
from engram.wings.sessions.core.session import Note

_Identity = tuple[str, ...]


def merge_notes(before: Sequence[Note], branches: Sequence[Sequence[Note]]) -> list[Note]:
    """Merge what branches made of the notes that all of them started from.

    A note that any branch dropped or rewrote is gone. What branches added follows, in their order, each note once.
    Of a note that stays, the version of the last branch that changed it counts. Which notes there are does not
    depend on the order of the branches.

    Args:
        before: notes that every branch started from.
        branches: notes of each branch at its end.
    """
    started = _group_by_identity(before)
    rewritten = [_group_by_identity(notes) for notes in branches]
    dropped = {key for key in started for notes in rewritten if key not in notes}
    merged = {key: note for key, note in started.items() if key not in dropped}
    for notes in rewritten:
        for key, note in notes.items():
            standing = merged.get(key)
            added = standing is None and key not in started
            changed = standing is not None and key in started and set(note.cites) != set(started[key].cites)
            if added or changed:
                merged[key] = note
    return list(merged.values())


def _group_by_identity(notes: Sequence[Note]) -> dict[_Identity, Note]:
    """Notes by their words, the first of each."""
    notes_by_identity: dict[_Identity, Note] = {}
    for note in notes:
        notes_by_identity.setdefault((note.kind, *words(note.text)), note)
    return notes_by_identity

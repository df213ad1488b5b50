"""Merging rewritten working memories: by what notes say, never by where they stand."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from engram.wings.sessions.core.memory_merge import merge_notes
from engram.wings.sessions.core.session import Note


def note(text: str, *cites: int) -> Note:
    return Note("fact", text, cites or (1,), 1)


def texts(notes: list[Note]) -> set[str]:
    return {one.text for one in notes}


def memory(words: str) -> list[Note]:
    return [note(word) for word in words.split()]


MEMORIES = st.lists(st.sampled_from("A B C D E AB BC CD".split()), unique=True, max_size=6).map(
    lambda words: [note(word) for word in words]
)
BRANCHES = st.lists(MEMORIES, max_size=4)


def test_a_rewrite_takes_the_place_of_what_it_rewrote() -> None:
    assert merge_notes(memory("A B C"), [memory("AB D")]) == memory("AB D")


def test_a_branch_that_changed_nothing_undoes_no_rewrite() -> None:
    merged = merge_notes(memory("A B C"), [memory("C AB"), memory("A B C"), memory("A B C D")])
    assert merged == memory("C AB D")


def test_other_punctuation_and_case_is_the_same_note() -> None:
    assert merge_notes([note("Ada lived.")], [[note("ada lived")]]) == [note("Ada lived.")]


def test_merged_note_takes_its_changed_sources() -> None:
    assert merge_notes([note("A", 1)], [[note("A", 1)], [note("A", 1, 2)]]) == [note("A", 1, 2)]


def test_a_fact_and_a_contradiction_are_two_notes() -> None:
    both = [note("A"), Note("contradiction", "A", (1, 2), 1)]
    assert merge_notes([], [both]) == both


@given(MEMORIES, MEMORIES)
def test_memory_of_a_single_branch_stays_as_it_is(before: list[Note], branch: list[Note]) -> None:
    assert texts(merge_notes(before, [branch])) == texts(branch)


@given(MEMORIES, BRANCHES)
def test_drops_and_additions_of_all_branches_hold(before: list[Note], branches: list[list[Note]]) -> None:
    dropped = {text for branch in branches for text in texts(before) - texts(branch)}
    added = {text for branch in branches for text in texts(branch) - texts(before)}
    merged = merge_notes(before, branches)
    assert texts(merged) == (texts(before) - dropped) | added
    assert len(merged) == len(texts(merged))


@given(MEMORIES, BRANCHES, st.randoms())
def test_which_notes_there_are_does_not_depend_on_the_order(
    before: list[Note], branches: list[list[Note]], draw: Random
) -> None:
    shuffled = list(branches)
    draw.shuffle(shuffled)
    assert texts(merge_notes(before, shuffled)) == texts(merge_notes(before, branches))


@given(MEMORIES, BRANCHES)
def test_merge_is_idempotent(before: list[Note], branches: list[list[Note]]) -> None:
    merged = merge_notes(before, branches)
    assert merge_notes(merged, [merged, merged]) == merged

"""What says the same as what is there does not enter twice."""

from hypothesis import given
from hypothesis import strategies as st

from engram.wings.sessions.core.curation import curate

BORN = "Marie Curie was born in Warsaw in 1867, the fifth child of two teachers of that city."


def test_the_three_ways_to_say_the_same() -> None:
    candidates = [
        "MARIE CURIE was born in Warsaw in 1867 - the fifth child of two teachers of that city",
        BORN.replace("that city", "that town"),
        "Warsaw in 1867, the fifth child",
        "The Vistula flows into the Baltic Sea.",
        "...",
    ]
    decided = curate(candidates, [BORN])
    assert decided.kept_positions == [3]
    assert decided.dropped == {0: "exact", 1: "near", 2: "contained", 4: "exact"}


def test_near_is_a_share_of_word_pairs() -> None:
    words = [f"w{number}" for number in range(20)]  # 19 pairs; another last word leaves 18 of 20: 0.9
    changed = " ".join([*words[:-1], "other"])
    assert curate([changed], [" ".join(words)]).dropped == {0: "near"}
    half = " ".join([*words[:10], *(f"v{number}" for number in range(10))])  # 9 of 29
    assert curate([half], [" ".join(words)]).kept_positions == [0]


def test_earlier_candidates_count_as_there() -> None:
    assert curate([BORN, BORN, "Born in Warsaw"]).dropped == {1: "exact", 2: "contained"}


@given(st.lists(st.text(alphabet="ab c", max_size=12), max_size=8))
def test_every_candidate_is_kept_or_dropped_and_the_kept_stay(texts: list[str]) -> None:
    decided = curate(texts)
    assert sorted([*decided.kept_positions, *decided.dropped]) == list(range(len(texts)))
    kept = [texts[at] for at in decided.kept_positions]
    assert len(curate(kept).kept_positions) == len(kept)

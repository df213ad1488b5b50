"""Where the text of a document went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.text.document_matching import (
    EarlierPassage,
    EarlierSentence,
    NewPassage,
    Placement,
    match_documents,
    match_revisions,
    place,
)


def earlier(id: int, *texts: str, taught: tuple[str, ...] = (), title: str = "T") -> EarlierPassage:
    """Passage ``a#ID``, whose sentences are numbered 10 ID, 10 ID + 1, ..."""
    sentences = [EarlierSentence(10 * id + at, text, text in taught) for at, text in enumerate(texts)]
    text = " ".join(texts)
    return EarlierPassage(id, f"a#{id}", f"{title} {text}".encode(), text, sentences)


def new(number: int, *texts: str, title: str = "T") -> NewPassage:
    text = " ".join(texts)
    return NewPassage(f"a#{number}", f"{title} {text}".encode(), text, texts)


def test_a_passage_before_others_moves_them_on() -> None:
    placement = place([earlier(1, "A."), earlier(2, "B.")], [new(1, "New."), new(2, "A."), new(3, "B.")])
    assert placement == Placement(passages={1: "a#2", 2: "a#3"}, removed=[], exchanged=[])


def test_equal_passages_keep_their_ids_and_then_their_order() -> None:
    three = [earlier(1, "A."), earlier(2, "A."), earlier(3, "A.")]
    assert place(three, [new(3, "A."), new(4, "A.")]).passages == {3: "a#3", 1: "a#4"}


def test_another_title_leaves_the_passage_the_same() -> None:
    assert place([earlier(1, "A."), earlier(2, "B.")], [new(5, "B.", title="U")]).passages == {2: "a#5"}


def test_a_changed_passage_is_the_one_that_shares_most() -> None:
    placement = place(
        [earlier(1, "Head", "One is here."), earlier(2, "Head", "Two is here.", "It stays.")],
        [new(1, "Head", "Two is here.", "It goes."), new(2, "Head", "Other.")],
    )
    assert placement.passages == {2: "a#1", 1: "a#2"}


def test_text_that_went_is_removed() -> None:
    placement = place([earlier(1, "A."), earlier(2, "B.")], [new(1, "C.")])
    assert (placement.passages, placement.removed) == ({}, [1, 2])


def test_sentences_of_a_passage_that_is_split_move_into_a_passage_of_their_own() -> None:
    placement = place([earlier(1, "A is long.", "B.", "C.")], [new(1, "A is long."), new(2, "B.", "C.")])
    assert placement.passages == {1: "a#1"}
    assert placement.sentences == {11: ("a#2", 0), 12: ("a#2", 1)}
    assert placement.donors == {"a#2": 1}


def test_sentences_of_joined_passages_move_together() -> None:
    placement = place([earlier(1, "A is long."), earlier(2, "B.")], [new(1, "A is long.", "B.")])
    assert (placement.passages, placement.removed) == ({1: "a#1"}, [2])
    assert placement.sentences == {20: ("a#1", 1)}
    assert placement.donors == {}


def test_a_taught_sentence_takes_the_place_of_an_equal_one() -> None:
    overlapping = [earlier(1, "A is long.", "B."), earlier(2, "B.", taught=("B.",))]
    placement = place(overlapping, [new(1, "A is long.", "B.")])
    assert placement.exchanged == [(20, 11)]
    assert placement.sentences == {}


texts = st.lists(st.sampled_from(["A.", "B.", "C.", "Longer."]), min_size=1, max_size=4)


@given(before=st.lists(texts, max_size=4), after=st.lists(texts, max_size=4), taught=st.sets(st.integers(0, 40)))
def test_each_row_is_found_again_once_at_most(
    before: list[list[str]], after: list[list[str]], taught: set[int]
) -> None:
    held = [
        EarlierPassage(
            id,
            f"a#{id}",
            " ".join(texts).encode(),
            " ".join(texts),
            [EarlierSentence(10 * id + at, text, 10 * id + at in taught) for at, text in enumerate(texts)],
        )
        for id, texts in enumerate(before)
    ]
    wanted = [
        NewPassage(f"a#{number}", " ".join(texts).encode(), " ".join(texts), texts)
        for number, texts in enumerate(after)
    ]
    placement = place(held, wanted)
    assert len(set(placement.passages.values())) == len(placement.passages)
    assert sorted([*placement.passages, *placement.removed]) == [passage.id for passage in held]
    assert len(set(placement.sentences.values())) == len(placement.sentences)
    moved = [*placement.sentences, *(one for pair in placement.exchanged for one in pair)]
    assert len(set(moved)) == len(moved)
    text_of = {sentence.id: sentence.text for passage in held for sentence in passage.sentences}
    wanted_texts = {passage.external_id: passage.sentences for passage in wanted}
    for sentence, (target, position) in placement.sentences.items():
        assert text_of[sentence] == wanted_texts[target][position]
    received = {target for target, _ in placement.sentences.values()}
    assert received <= set(placement.passages.values()) | set(placement.donors)


def test_a_renamed_document_is_the_new_one_with_most_of_its_text() -> None:
    before = {"a.md": {"one": 10, "two": 10}, "b.md": {"three": 10, "four": 10}}
    after = {"x.md": {"one": 10, "two": 10, "new": 90}, "y.md": {"three": 10}, "z.md": {"five": 10}}
    assert match_documents(before, after) == {"a.md": "x.md", "b.md": "y.md"}
    assert match_documents({"a.md": {"one": 10, "two": 11}}, {"x.md": {"one": 10}}) == {}


def test_a_passage_of_one_revised_sentence_stays_itself() -> None:
    placement = place(
        [earlier(1, "The allowance is 32 EUR."), earlier(2, "Ask Ana.")],
        [new(5, "The allowance is 33 EUR."), new(6, "The office is closed.")],
    )
    assert (placement.passages, placement.removed) == ({1: "a#5"}, [2])


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        pytest.param("The allowance is 32 EUR.", "The allowance is 33 EUR.", True, id="figure"),
        pytest.param("Requests go to Ana Mayer by mail.", "Requests go to Ana Meier by mail.", True, id="spelling"),
        pytest.param("Die Pauschale beträgt 32 Euro.", "Die Pauschale beträgt nun 33 Euro.", True, id="more"),
        pytest.param("每日津贴为三十二欧元。", "每日津贴为三十三欧元。", True, id="Chinese"),
        pytest.param("Tokyo is the capital of Japan.", "Paris is the capital of France.", False, id="other"),
        pytest.param("Berlin has 3 shops.", "Rome has 5 shops.", False, id="short"),
    ],
)
def test_a_revision_says_the_same_of_the_same(before: str, after: str, kept: bool) -> None:
    assert (1 in match_revisions({1: before}, ["Quite another sentence stands here.", after])) is kept


def test_the_most_alike_of_several_is_the_revision() -> None:
    texts = ["Room 12 is on floor 3 of the house.", "Room 13 is on floor 2 of the house."]
    assert match_revisions({1: "Room 12 is on floor 2 of the house."}, texts)[1][0] in {0, 1}
    assert match_revisions({1: texts[0], 2: texts[1]}, [texts[1], texts[0]]) == {1: (1, 1.0), 2: (0, 1.0)}


def test_too_many_texts_are_not_compared() -> None:
    texts = [f"Shelf {at} holds the books of the year." for at in range(70)]
    assert match_revisions(dict(enumerate(texts)), texts) == {}

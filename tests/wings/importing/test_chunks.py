"""Documents are cut along their structure."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.wings.importing.conversion import chunks
from engram.wings.importing.conversion.documents import Block, Document

WORDS = st.text(alphabet="abcdefgh ", min_size=1, max_size=400).filter(lambda text: text.strip() != "")
BLOCKS = st.lists(
    st.builds(Block, WORDS, st.sampled_from([(), ("A",), ("A", "B")]), st.none(), st.booleans()),
    min_size=1,
    max_size=12,
)


def document(*blocks: Block) -> Document:
    return Document("notes/rivers.md", "Rivers", blocks, "markdown")


def test_sections_are_never_mixed_and_start_with_their_heading() -> None:
    made = list(
        chunks.passages(
            document(
                Block("The Danube is long.", ()),
                Block("The Rhine is short.", ("The Rhine",), page=2),
                Block("It ends in the sea.", ("The Rhine",), page=2),
                Block("Basel lies on it.", ("The Rhine",), page=3),
            )
        )
    )
    assert [passage.text for passage in made] == [
        "The Danube is long.",
        "The Rhine\nThe Rhine is short.\nIt ends in the sea.",
        "The Rhine\nBasel lies on it.",
    ]
    assert [passage.id for passage in made] == ["notes/rivers.md#1", "notes/rivers.md#2", "notes/rivers.md#3"]
    assert made[1].sentences == ("The Rhine", "The Rhine is short.", "It ends in the sea.")
    assert [passage.metadata.get("page") for passage in made] == [None, 2, 3]
    assert made[1].metadata == {
        "source": "notes/rivers.md",
        "format": "markdown",
        "heading": ["The Rhine"],
        "page": 2,
    }


def test_chinese_and_japanese_sentences_stand_in_a_passage_as_in_the_document() -> None:
    text = "所要時間は片道五十五分です。2024年に短くなりました。売店もあります。"
    (made,) = chunks.passages(document(Block(text, ())))
    assert made.text == text
    assert len(made.sentences) == 3


def test_a_chinese_passage_has_a_third_of_the_characters() -> None:
    made = list(chunks.passages(document(Block("图书馆周一不开门。" * 100, ())), size=1_200, overlap=0))
    assert [len(one.text) for one in made] == [378, 378, 144]


def test_long_sections_overlap_by_whole_sentences() -> None:
    sentences = [f"River number {n} flows slowly into the sea." for n in range(40)]
    made = list(chunks.passages(document(Block(" ".join(sentences))), size=200, overlap=60))
    assert len(made) > 5
    for before, after in pairwise(made):
        assert after.sentences[0] == before.sentences[-1]
        assert len(after.text) <= 200
    assert list(dict.fromkeys(sentence for passage in made for sentence in passage.sentences)) == sentences


@given(blocks=BLOCKS, size=st.integers(20, 300), part=st.floats(0, 0.9))
def test_passages_keep_all_text_within_the_size(blocks: list[Block], size: int, part: float) -> None:
    made = list(chunks.passages(document(*blocks), size=size, overlap=int(size * part)))
    for passage in made:
        heading = passage.metadata.get("heading")
        body = passage.text.partition("\n")[2] if heading else passage.text
        assert len(body) <= size
        assert len(set(passage.sentences)) >= 1
    kept = " ".join(sentence for passage in made for sentence in passage.sentences).split()
    assert set(" ".join(block.text for block in blocks).split()) <= set(kept) or any(
        len(word) > size for block in blocks for word in block.text.split()
    )


def test_an_overlap_as_large_as_the_passage_is_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        list(chunks.passages(document(Block("x")), size=100, overlap=100))

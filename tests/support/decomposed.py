"""A data set of two questions that it takes apart itself, small enough to see through."""

from engram_evaluation.dataset import Dataset, build

MOTHER = "Who is the mother of the director of The Quiet Weir?"
FILM = "The Quiet Weir is a film directed by Ana Bellotti."
MAKER = "Ana Bellotti is the daughter of the painter Ida Ferrero."
OTHER_QUESTION = "Weirs raise the level of a river <slightly>."
LATE_QUESTION = "When did the country that Tove Lind comes from join?"


def lines(rows: list[dict[str, object]]) -> list[tuple[str, dict[str, object]]]:
    return [(f"line {at}", row) for at, row in enumerate(rows)]


def write_decomposed(name: str = "tiny") -> Dataset:
    """Build a data set of ``MOTHER`` (triples, marked sentences), ``LATE_QUESTION`` (only steps) and another."""
    return build(
        name,
        lines(
            [
                {"_id": "film", "title": "The Quiet Weir", "text": FILM},
                {"_id": "maker", "title": "Ana Bellotti", "text": MAKER},
                {"_id": "weir", "title": "Weir", "text": OTHER_QUESTION},
                {"_id": "lind", "title": "Tove Lind", "text": "Tove Lind was born in Oslo, Norway. She paints."},
                {"_id": "norway", "title": "Norway", "text": "Norway joined in 1949. It is cold."},
            ]
        ),
        lines(
            [
                {
                    "_id": "q1",
                    "text": MOTHER,
                    "metadata": {
                        "answers": ["Ida Ferrero"],
                        "evidences": [
                            ["Bellotti", "mother", "Ida Ferrero"],
                            ["The Quiet Weir", "director", "Ana Bellotti"],
                        ],
                        "supporting_sentences": [["film", 0, FILM], ["maker", 0, MAKER]],
                    },
                },
                {
                    "_id": "q2",
                    "text": LATE_QUESTION,
                    "metadata": {
                        "answers": ["1949"],
                        "steps": [
                            {"question": "Tove Lind >> country", "answer": "Norway", "passage_id": "lind"},
                            {"question": "When did #1 join?", "answer": "1949", "passage_id": "norway"},
                        ],
                    },
                },
                {"_id": "q3", "text": "Who?", "metadata": {"answers": ["Nobody"]}},
            ]
        ),
        [("line 1", "q1", "film"), ("line 2", "q2", "norway")],
    )

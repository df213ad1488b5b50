"""Reading data sets: both spellings of the files, and one clear line for each mistake."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engram.core.learning.logged_verdict import Expansion
from engram_evaluation.dataset import GoldSentence, add_translations, cut_dataset, load
from engram_evaluation.dataset_files import DatasetError
from engram_evaluation.rating_scale import PassageRatings

CORPUS = [
    {
        "_id": "a",
        "title": "A",
        "text": "A is first. It is old.",
        "metadata": {"sentences": ["A is first.", "It is old."]},
    },
    {"_id": "b", "title": "", "text": "B is second."},
]
QUERIES = [
    {
        "_id": "q1",
        "text": "What is first?",
        "metadata": {"type": "order", "supporting_sentences": [["a", 0, "A is first."], ["a", 0, "A is first."]]},
    },
    {"_id": "q2", "text": "What is second?"},
    {"_id": "q3", "text": "Unlabelled?"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tb\t1\nq2\ta\t0\n"
PARAPHRASES = [
    {"_id": "q1-para", "text": "Which one leads?", "metadata": {"paraphrase_of": "q1"}},
    {"_id": "q3-para", "text": "No label?", "metadata": {"paraphrase_of": "q3"}},
]


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text(lines(CORPUS), encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text(lines(QUERIES), encoding="utf-8")
    (tmp_path / "qrels.tsv").write_text(QRELS, encoding="utf-8")
    (tmp_path / "paraphrases.jsonl").write_text(lines(PARAPHRASES), encoding="utf-8")
    return tmp_path


def test_a_folder_is_read(folder: Path) -> None:
    dataset = load(folder)
    assert dataset.passages[0] == {
        "id": "a",
        "title": "A",
        "text": "A is first. It is old.",
        "metadata": {},
        "sentences": ["A is first.", "It is old."],
    }
    assert dataset.passages[1]["title"] is None
    first, second = dataset.questions
    assert (first.relevant, first.gold, first.type) == ({"a"}, (GoldSentence("a", "A is first."),), "order")
    assert (second.relevant, second.gold) == ({"b"}, ())
    assert [question.id for question in dataset.unlabelled] == ["q3"]
    assert list(dataset.paraphrases) == ["q1"]
    (paraphrase,) = dataset.paraphrases["q1"]
    assert (paraphrase.gold, paraphrase.answers, paraphrase.relevant) == (first.gold, first.answers, first.relevant)


def test_a_question_may_have_several_paraphrases(folder: Path) -> None:
    more = {"_id": "q1-other", "text": "What comes before all?", "metadata": {"paraphrase_of": "q1"}}
    one = load(folder)
    (folder / "paraphrases.jsonl").write_text(lines([*PARAPHRASES, more]), encoding="utf-8")
    several = load(folder)
    assert [paraphrase.id for paraphrase in several.paraphrases["q1"]] == ["q1-para", "q1-other"]
    assert several.list_paraphrases(several.questions) == list(several.paraphrases["q1"])
    assert several.fingerprint != one.fingerprint
    (folder / "paraphrases.jsonl").write_text(lines([*PARAPHRASES, PARAPHRASES[0]]), encoding="utf-8")
    with pytest.raises(DatasetError, match="query 'q1-para' comes twice"):
        load(folder)


def test_grades_are_read_for_questions_and_their_paraphrases(folder: Path) -> None:
    before = load(folder)
    (folder / "graded.tsv").write_text("q1\ta\t4\nq1\tb\t1\n", encoding="utf-8")
    dataset = load(folder)
    first, second = dataset.questions
    assert (first.grades, second.grades) == ({"a": 4.0, "b": 1.0}, {})
    assert dataset.paraphrases["q1"][0].grades == first.grades
    assert dataset.fingerprint != before.fingerprint
    for line, message in (
        ("q1\tz\t4", "line 1: there is no passage 'z'"),
        ("z\ta\t4", "line 1: there is no query 'z'"),
        ("q1\ta\t0", "line 1: a grade is a number from 1 on, not 0"),
        ("q1\ta\tgood", "line 1: expected query id, passage id and score"),
    ):
        (folder / "graded.tsv").write_text(line + "\n", encoding="utf-8")
        with pytest.raises(DatasetError, match=message):
            load(folder)


def test_compressed_files_are_the_same_data_set(folder: Path) -> None:
    plain = load(folder)
    for name in ("corpus.jsonl", "queries.jsonl", "paraphrases.jsonl"):
        path = folder / name
        (folder / f"{name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert load(folder) == plain


EXPANSIONS = [
    {
        "query_id": "q2",
        "units": [{"method": "hyde", "text": "B follows."}, {"method": "facets", "text": "b, next"}],
    },
    {"query_id": "q3", "units": [{"method": "hyde", "text": "Nothing."}]},
]


def test_expansions_are_read_where_there_are_any(folder: Path) -> None:
    before = load(folder)
    assert before.expansions == {}
    (folder / "expansions.jsonl.gz").write_bytes(gzip.compress(lines(EXPANSIONS).encode()))
    after = load(folder)
    # q3 has no relevant passage, so it is no question.
    assert after.expansions == {"q2": (Expansion("hyde", "B follows."), Expansion("facets", "b, next"))}
    assert after.fingerprint != before.fingerprint


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"query_id": "zzz", "units": EXPANSIONS[0]["units"]}, "line 3: query_id names no query: 'zzz'"),
        ({"query_id": ["q1"], "units": EXPANSIONS[0]["units"]}, "line 3: query_id must be a string"),
        (EXPANSIONS[0], "query 'q2' is expanded twice"),
        ({"query_id": "q1", "units": []}, "line 3: units must be a list of objects"),
        ({"query_id": "q1", "units": ["text"]}, "line 3: units must be a list of objects"),
        ({"query_id": "q1", "units": [{"method": "hyde", "text": " "}]}, "line 3: text must be a string"),
        ({"query_id": "q1", "units": [{"text": "x"}]}, "line 3: method must be a string"),
    ],
)
def test_a_mistake_in_expansions_is_one_clear_error(folder: Path, row: dict[str, Any], message: str) -> None:
    (folder / "expansions.jsonl").write_text(lines([*EXPANSIONS, row]), encoding="utf-8")
    with pytest.raises(DatasetError, match=message):
        load(folder)


def test_answers_are_read_with_their_questions(folder: Path) -> None:
    answered = {"_id": "q1", "text": "What is first?", "metadata": {"answers": ["A", "the A", "A", " "]}}
    (folder / "queries.jsonl").write_text(lines([answered, *QUERIES[1:]]), encoding="utf-8")
    assert load(folder).questions[0].answers == ("A", "the A")
    wrong = answered | {"metadata": {"answers": "A"}}
    (folder / "queries.jsonl").write_text(lines([wrong, *QUERIES[1:]]), encoding="utf-8")
    with pytest.raises(DatasetError, match=r"line 1: metadata\.answers must be a list of strings"):
        load(folder)


RATINGS = [
    {"query_id": "q1", "passage_id": "a", "ratings": ["Excellent", "Bad"]},
    {"query_id": "q3", "passage_id": "a", "ratings": ["Acceptable"]},
    {"query_id": "q3", "passage_id": "b", "ratings": ["Bad", "Bad"], "feedback": ["It is off topic."]},
]


def test_ratings_are_read_also_of_questions_without_a_label(folder: Path) -> None:
    before = load(folder)
    assert before.ratings == {}
    (folder / "ratings.jsonl.gz").write_bytes(gzip.compress(lines(RATINGS).encode()))
    after = load(folder)
    assert after.ratings == {
        "q1": (PassageRatings("a", ("Excellent", "Bad")),),
        "q3": (PassageRatings("a", ("Acceptable",)), PassageRatings("b", ("Bad", "Bad"))),
    }
    assert after.fingerprint != before.fingerprint


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (RATINGS[0] | {"query_id": "zzz"}, "line 4: query_id names no query: 'zzz'"),
        (RATINGS[0] | {"passage_id": "zzz"}, "line 4: passage_id names no passage: 'zzz'"),
        (RATINGS[0] | {"passage_id": 1}, "line 4: passage_id must be a string"),
        (RATINGS[0] | {"passage_id": "b", "ratings": []}, "line 4: ratings must be a list of Excellent, Acc"),
        (RATINGS[0] | {"passage_id": "b", "ratings": ["Good"]}, "line 4: ratings must be a list"),
        (RATINGS[0] | {"passage_id": "b", "ratings": "Bad"}, "line 4: ratings must be a list"),
        (RATINGS[0], "passage 'a' is rated twice for query 'q1'"),
    ],
)
def test_a_mistake_in_ratings_is_one_clear_error(folder: Path, row: dict[str, Any], message: str) -> None:
    (folder / "ratings.jsonl").write_text(lines([*RATINGS, row]), encoding="utf-8")
    with pytest.raises(DatasetError, match=message):
        load(folder)


def test_the_fingerprint_follows_the_content(folder: Path) -> None:
    before = load(folder).fingerprint
    (folder / "qrels.tsv").write_text(QRELS + "q1\tb\t1\n", encoding="utf-8")
    assert load(folder).fingerprint != before


def drop(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def write(name: str, content: str | bytes) -> Callable[[Path], object]:
    data = content if isinstance(content, bytes) else content.encode()
    return lambda folder: (folder / name).write_bytes(data)


def write_without_gold(supports: Any) -> Callable[[Path], object]:
    return write(
        "queries.jsonl", lines([QUERIES[0] | {"metadata": {"supporting_sentences": supports}}, *QUERIES[1:]])
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (drop("corpus.jsonl"), r"there is no corpus\.jsonl or corpus\.jsonl\.gz"),
        (drop("queries.jsonl"), r"there is no queries\.jsonl"),
        (drop("qrels.tsv"), r"there is no qrels\.tsv"),
        (write("corpus.jsonl", lines(CORPUS) + "{broken\n"), r"corpus\.jsonl, line 3: not JSON"),
        (write("corpus.jsonl", lines(CORPUS) + "[1]\n"), r"line 3: not a JSON object"),
        (write("corpus.jsonl", lines([*CORPUS, CORPUS[0]])), "passage 'a' comes twice"),
        (write("corpus.jsonl", '{"_id": "a", "text": " "}\n'), r"line 1: text must be a string"),
        (write("corpus.jsonl", '{"text": "x"}\n'), r"line 1: _id must be a string"),
        (write("corpus.jsonl", '{"_id": "a", "text": "x", "title": 1}\n'), "title must be a string"),
        (write("corpus.jsonl", '{"_id": "a", "text": "x", "metadata": 1}\n'), "metadata must be an object"),
        (write("corpus.jsonl", '{"_id": "a", "text": "x", "metadata": {"sentences": [1]}}\n'), "a list of strings"),
        (write("corpus.jsonl", "\n"), "the corpus is empty"),
        (write("corpus.jsonl", b"\xff\n"), "not UTF-8 at byte 0"),
        (write("queries.jsonl", lines([*QUERIES, QUERIES[0]])), "query 'q1' comes twice"),
        (write_without_gold([["a", "A is first."]]), r"queries\.jsonl, line 1: a supporting sentence is"),
        (write_without_gold([["zzz", 0, "A is first."]]), "names passage 'zzz', which does not exist"),
        (write("qrels.tsv", QRELS + "q1\ta\n"), r"qrels\.tsv, line 5: expected query id, passage id and score"),
        (write("qrels.tsv", QRELS + "q1\ta\tyes\n"), r"line 5: expected query id"),
        (write("qrels.tsv", QRELS + "q9\ta\t1\n"), r"line 5: there is no query 'q9'"),
        (write("qrels.tsv", QRELS + "q1\tzzz\t1\n"), r"line 5: there is no passage 'zzz'"),
        (write("qrels.tsv", "query-id\tcorpus-id\tscore\n"), "labels no passage, and none is rated"),
        (write("paraphrases.jsonl", '{"_id": "p", "text": "x"}\n'), "names no query: None"),
        (write("corpus.jsonl.gz", b"no gzip"), None),
    ],
)
def test_a_mistake_is_one_clear_error(folder: Path, damage: Callable[[Path], object], message: str | None) -> None:
    damage(folder)
    if message is None:  # the plain file is preferred
        load(folder)
        return
    with pytest.raises(DatasetError, match=message) as caught:
        load(folder)
    assert "\n" not in caught.value.detail


def test_a_broken_archive_names_its_file(folder: Path) -> None:
    (folder / "corpus.jsonl").unlink()
    for content in (b"no gzip", gzip.compress(b"cut off" * 100)[:-12]):
        (folder / "corpus.jsonl.gz").write_bytes(content)
        with pytest.raises(DatasetError, match=r"corpus\.jsonl\.gz: "):
            load(folder)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="is no folder"):
        load(tmp_path / "absent")


def test_a_cut_keeps_the_first_questions_and_the_passages_that_come_with_them(folder: Path) -> None:
    rows = [QUERIES[0] | {"metadata": {"context_ids": ["a"]}}, *QUERIES[1:]]
    (folder / "queries.jsonl").write_text(lines(rows), encoding="utf-8")
    whole = load(folder)
    first = cut_dataset(whole, 1)
    assert [question.id for question in first.questions] == ["q1"]
    assert [passage["id"] for passage in first.passages] == ["a"]
    assert (first.unlabelled, list(first.paraphrases)) == ((), ["q1"])
    assert first.name != whole.name
    assert first.fingerprint != whole.fingerprint
    assert cut_dataset(whole, None) is cut_dataset(whole, 2) is whole


@pytest.mark.parametrize("pooled", [True, False])
def test_questions_in_another_language_are_paraphrases(folder: Path, pooled: bool) -> None:
    dataset = load(folder)
    german = replace(
        dataset,
        name="german",
        questions=(replace(dataset.questions[1], text="Was ist das Zweite?"),),
        paraphrases={},
    )

    both = add_translations(dataset, [german], pooled=pooled)

    (asked,) = both.list_paraphrases(both.questions)
    assert (asked.id, asked.text, asked.relevant) == ("german q2", "Was ist das Zweite?", frozenset({"b"}))
    assert [passage["id"] for passage in both.passages] == ["a", "b"] + ["german a", "german b"] * pooled
    assert both.name == (f"{dataset.name}-german" if pooled else dataset.name)
    assert both.fingerprint != dataset.fingerprint


def test_translations_share_questions_and_come_once(folder: Path) -> None:
    dataset = load(folder)
    other = replace(dataset, name="other", questions=(replace(dataset.questions[0], id="q9"),))

    with pytest.raises(DatasetError, match="other shares no question"):
        add_translations(dataset, [other], pooled=False)
    with pytest.raises(DatasetError, match="comes twice"):
        add_translations(dataset, [dataset], pooled=False)

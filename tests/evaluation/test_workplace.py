"""502 sentences of workplace text: what counts as right, wrong and missing."""

from dataclasses import replace

import pytest
import spacy

from engram.core.knowledge.triples import Triple
from engram.providers.language.rule_language import RuleLanguage
from engram_evaluation.dataset_files import DatasetError
from engram_evaluation.workplace import FOLDER, ReadingCounts, as_json, check, compare, load_sentences, summaries
from tests.support.command import Cli

MAYOR = next(one for one in load_sentences() if one.id == "news-16")  # mayor of Braga from October 2021
FOUNDER = next(one for one in load_sentences() if one.id == "handbook-02")  # states no fact; founders are listed


def triple(subject: str, predicate: str, thing: str, start: int | None = None, end: int | None = None) -> Triple:
    return Triple(subject, predicate, thing, 0, "text", start, end, 0.9)


def test_both_halves_have_all_kinds_of_text() -> None:
    sentences = load_sentences()

    assert [sum(one.half == half for one in sentences) for half in ("develop", "kept back")] == [422, 80]
    assert {
        kind: sum(one.kind == kind for one in sentences) for kind in ("news", "minutes", "handbook", "email")
    } == {
        "news": 146,
        "minutes": 119,
        "handbook": 113,
        "email": 124,
    }


@pytest.mark.parametrize(
    ("read", "right", "wrong"),
    [
        (triple("Ana Ferreira", "position held", "Mayor of the Braga", 738064), 1, 0),  # 1 October 2021
        (triple("Ana Ferreira", "position held", "mayor of Braga"), 0, 1),
        (triple("Ana Ferreira", "position held", "mayor of Braga", 738064, 738095), 0, 1),
        (triple("Ana Ferreira", "elected mayor of", "Braga", 738064), 0, 1),
        (triple("Braga", "position held", "mayor of Braga", 738064), 0, 1),
    ],
)
def test_a_fact_is_right_with_its_days_alone(read: Triple, right: int, wrong: int) -> None:
    reading = compare(MAYOR, [read])

    assert (reading.right, len(reading.wrong), len(reading.missing)) == (right, wrong, 1 - right)


def test_a_true_statement_in_other_words_is_left_out_of_the_count() -> None:
    reading = compare(
        FOUNDER, [triple("Halden Group", "founded by", "Josef Voss"), triple("Halden Group", "won", "Josef Voss")]
    )

    assert (reading.right, [one.predicate for one in reading.wrong], reading.missing) == (0, ["won"], ())


def test_a_fact_read_twice_counts_once() -> None:
    fact = triple("Ana Ferreira", "position held", "mayor of Braga", 738064)
    reading = compare(MAYOR, [fact, fact])

    assert (reading.right, reading.wrong) == (1, ())


def test_precision_and_recall_are_counted_by_half_and_kind() -> None:
    right = ReadingCounts(MAYOR, 1, (), ())
    wrong = ReadingCounts(replace(MAYOR, kind="email"), 0, MAYOR.facts, (triple("a", "b", "c"),))
    counted = {one.name: one for one in summaries([right, wrong])}

    assert (counted["develop: news"].precision, counted["develop: news"].recall) == (1.0, 1.0)
    assert (counted["develop: email"].precision, counted["develop: email"].recall) == (0.0, 0.0)
    assert (counted["all"].precision, counted["all"].recall) == (0.5, 0.5)
    assert "kept back" not in counted
    assert as_json([right])["summaries"][-1]["precision"] == 1.0


def test_each_sentence_is_read_in_its_passage() -> None:
    later = next(one for one in load_sentences() if one.before)
    (reading,) = check([later], RuleLanguage(lambda: spacy.blank("en")))

    assert reading.sentence is later
    assert all(fact.sentence == len(later.before) for fact in reading.wrong)


def test_an_unknown_half_is_refused(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert "develop, kept-back or both" in cli.fails("check-facts", "--half", "middle")
    folder = tmp_path_factory.mktemp("sentences")
    (folder / "develop.jsonl").write_text('{"id": "x", "kind": "news", "sentence": "X."}\n', encoding="utf-8")
    with pytest.raises(DatasetError, match="before"):
        load_sentences(folder)
    assert (FOLDER / "develop.jsonl").is_file()

"""Facts by rule: what sentences say of their page's topic and of the names in them."""

from datetime import date

import pytest

from engram.providers.language import PassageText
from engram.providers.language.rule_language import RuleLanguage
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.reading import extract_facts, find_country
from tests.support.growth import MOST_GROWTH, growth
from tests.support.light_spacy import spacy


@pytest.fixture(scope="module")
def rules() -> RuleLanguage:
    return RuleLanguage(spacy.blank)


def facts_of(rules: RuleLanguage, title: str | None, *sentences: str) -> list[Triple]:
    (analysed,) = rules.analyse_passages([PassageText(title, " ".join(sentences), sentences)])
    return extract_facts(title, analysed)


def read_triples(rules: RuleLanguage, title: str | None, *sentences: str) -> set[tuple[str, str, str]]:
    return {(fact.subject, fact.predicate, fact.object) for fact in facts_of(rules, title, *sentences)}


LEAD = "Ada Berg (12 May 1920 – 3 June 1990) was a Swedish painter."


def test_a_lead_says_who_somebody_was(rules: RuleLanguage) -> None:
    assert read_triples(rules, "Ada Berg", LEAD) == {
        ("Ada Berg", "date of birth", "12 May 1920"),
        ("Ada Berg", "date of death", "3 June 1990"),
        ("Ada Berg", "citizenship", "Swedish"),
        ("Ada Berg", "is a", "painter"),
    }


def test_a_lead_says_what_a_film_is(rules: RuleLanguage) -> None:
    sentence = (
        "Blue Harbour is a 1951 Danish drama film written and directed by Nils Holm and starring Eva Lind, "
        "Otto Krag and Rut Dahl."
    )
    assert read_triples(rules, "Blue Harbour (film)", sentence) == {
        ("Blue Harbour (film)", "release date", "1951"),
        ("Blue Harbour (film)", "country of origin", "Danish"),
        ("Blue Harbour (film)", "is a", "drama film"),
        ("Blue Harbour (film)", "written by", "Nils Holm"),
        ("Blue Harbour (film)", "directed by", "Nils Holm"),
        ("Blue Harbour (film)", "starring", "Eva Lind"),
        ("Blue Harbour (film)", "starring", "Otto Krag"),
        ("Blue Harbour (film)", "starring", "Rut Dahl"),
    }


def test_each_place_lies_in_the_next_and_the_village_in_the_country(rules: RuleLanguage) -> None:
    assert read_triples(rules, "Norrby", "Norrby is a village in Ekeby Parish, Skåne County, Sweden.") == {
        ("Norrby", "is a", "village"),
        ("Norrby", "located in", "Ekeby Parish"),
        ("Ekeby Parish", "located in", "Skåne County"),
        ("Skåne County", "located in", "Sweden"),
        ("Norrby", "country", "Sweden"),
    }


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("She was born in Lund, Sweden and died in Oslo.", ("Ada Berg", "place of birth", "Lund")),
        ("She was born in Lund, Sweden and died in Oslo.", ("Lund", "located in", "Sweden")),
        ("She was born in Lund, Sweden and died in Oslo.", ("Ada Berg", "place of death", "Oslo")),
        ("Born in Lund and raised in Oslo, Berg painted.", ("Ada Berg", "place of birth", "Lund")),
        ("She died of a heart attack.", ("Ada Berg", "cause of death", "heart attack")),
        ("She was the daughter of Carl Berg and his wife, Lisa Holm.", ("Ada Berg", "father", "Carl Berg")),
        ("She was the daughter of Carl Berg and his wife, Lisa Holm.", ("Ada Berg", "mother", "Lisa Holm")),
        ("The daughter of Carl Berg and Lisa Holm, she painted.", ("Ada Berg", "mother", "Lisa Holm")),
        ("Her mother was Lisa Holm.", ("Ada Berg", "mother", "Lisa Holm")),
        ("She lived with her husband Otto Krag in Oslo.", ("Ada Berg", "spouse", "Otto Krag")),
        ("She married Otto Krag in 1950.", ("Ada Berg", "spouse", "Otto Krag")),
        ("Eva Krag, the sister of Otto Krag, came.", ("Eva Krag", "sibling", "Otto Krag")),
        ("In 1951, she moved to Oslo.", ("Ada Berg", "moved to", "Oslo")),
        ("Otto Krag's brother Jens Krag wrote to her.", ("Otto Krag", "sibling", "Jens Krag")),
        ("Her show took place on 3 May 1950 at Krag Hall.", ("Ada Berg", "show took place at", "Krag Hall")),
        ("She painted 87 portraits.", ("Ada Berg", "painted", "87 portraits")),
        ("The gallery was founded by Otto Krag.", ("Ada Berg", "gallery founded by", "Otto Krag")),
        ("The husband of Ada Berg worked in Oslo.", ("Ada Berg", "husband worked in", "Oslo")),
        ("She was born in Lund, Sweden, the daughter of Carl Berg.", ("Ada Berg", "father", "Carl Berg")),
    ],
)
def test_later_sentences_speak_of_the_topic(
    rules: RuleLanguage, sentence: str, expected: tuple[str, str, str]
) -> None:
    assert expected in read_triples(rules, "Ada Berg", LEAD, sentence)


@pytest.mark.parametrize(
    ("sentence", "predicate", "name"),
    [
        ("She never met Otto Krag.", "met", "Otto Krag"),
        ("She could have married Otto Krag.", "spouse", "Otto Krag"),
        ("She moved to Oslo and could not be elected mayor of Lund.", "elected mayor of", "Lund"),
        ("She is not related to Otto Krag.", "related to", "Otto Krag"),
        ("It was painted by Otto Krag.", "painted by", "Otto Krag"),  # a painter is no "it"
        ("She won an Oslo Biennale nomination.", "won", "Oslo Biennale"),
        ("They were seen by Otto Krag.", "seen by", "Otto Krag"),
        ("The father of Ada Berg was a miller.", "is a", "miller"),
        ("The eldest son of Carl Berg was a miller.", "is a", "miller"),
        ("The husband of Ada Berg worked in Oslo.", "worked in", "Oslo"),
        ("The wife of the gardener was born in Oslo.", "wife born in", "Oslo"),
        ("She painted after the novel Nora by Otto Krag.", "painted by", "Otto Krag"),
    ],
)
def test_sentence_about_another_subject_gives_no_fact_of_the_topic(
    rules: RuleLanguage, sentence: str, predicate: str, name: str
) -> None:
    assert ("Ada Berg", predicate, name) not in read_triples(rules, "Ada Berg", LEAD, sentence)


@pytest.mark.parametrize(
    ("sentence", "expected", "wrong"),
    [
        ("The director of the film was a painter.", None, ("Blue Harbour", "is a", "painter")),
        (
            "The music of the film was written by Otto Krag.",
            ("Blue Harbour", "music written by", "Otto Krag"),
            ("Blue Harbour", "written by", "Otto Krag"),
        ),
        (
            'It is based on the play "Nora" by Eva Holm.',
            ("Blue Harbour", "based on", "Nora"),
            ("Blue Harbour", "based by", "Eva Holm"),
        ),
        (
            "With music by Otto Krag, the film was shot in Oslo.",
            ("Blue Harbour", "shot in", "Oslo"),
            ("Otto Krag", "is a", "film"),
        ),
    ],
)
def test_fact_about_a_part_is_not_attributed_to_the_whole(
    rules: RuleLanguage, sentence: str, expected: tuple[str, str, str] | None, wrong: tuple[str, str, str]
) -> None:
    facts = read_triples(rules, "Blue Harbour", "Blue Harbour is a 1951 drama film.", sentence)
    assert expected is None or expected in facts
    assert wrong not in facts


def test_a_film_is_no_he(rules: RuleLanguage) -> None:
    facts = read_triples(rules, "Blue Harbour", "Blue Harbour is a 1951 drama film.", "He was born in Lund.")

    assert not any(thing == "Lund" for _, _, thing in facts)


@pytest.mark.parametrize(
    ("bracket", "expected"),
    [
        ("(born 12 May 1920 in Lund, Sweden)", {("date of birth", "12 May 1920"), ("place of birth", "Lund")}),
        ("(born Eva Krag; 12 May 1920)", {("date of birth", "12 May 1920")}),
        ("(1920–1990)", {("date of birth", "1920"), ("date of death", "1990")}),
        ("(12 May 19203 June 1990)", {("date of birth", "12 May 1920"), ("date of death", "3 June 1990")}),
        ("(May 12, 1920 Lund - June 3, 1990 Oslo)", {("place of birth", "Lund"), ("place of death", "Oslo")}),
        ("(also known as Eva Krag)", {("also known as", "Eva Krag")}),
    ],
)
def test_brackets_after_the_topic(rules: RuleLanguage, bracket: str, expected: set[tuple[str, str]]) -> None:
    facts = read_triples(rules, "Ada Berg", f"Ada Berg {bracket} was a painter.")

    assert expected <= {(predicate, thing) for subject, predicate, thing in facts if subject == "Ada Berg"}


def test_a_company_begins_and_ends_and_is_not_born(rules: RuleLanguage) -> None:
    facts = read_triples(rules, "Krag Line", "Krag Line (1880–1950) was a shipping company.")

    assert ("Krag Line", "began", "1880") in facts
    assert not any(predicate.startswith("date of") for _, predicate, _ in facts)


def test_the_lead_may_call_the_topic_something_else(rules: RuleLanguage) -> None:
    facts = read_triples(rules, "Ed Berg", "Edward James Berg is a painter.", "Berg lives in Lund.")

    assert ("Ed Berg", "also known as", "Edward James Berg") in facts
    assert ("Ed Berg", "lives in", "Lund") in facts


def test_a_clause_s_dates_are_its_facts_days(rules: RuleLanguage) -> None:
    facts = facts_of(rules, "Ada Berg", LEAD, "She lived in Oslo from 1950 to 1960.")

    (lived,) = [fact for fact in facts if fact.object == "Oslo"]
    assert (lived.sentence, lived.kind) == (1, "entity")
    assert lived.valid_from == date(1950, 1, 1).toordinal()
    assert lived.valid_to == date(1961, 1, 1).toordinal()
    assert all(fact.valid_from is None for fact in facts if fact.sentence == 0)


@pytest.mark.parametrize(
    ("title", "sentence"),
    [
        (None, "Otto Krag founded Blue Harbour Gallery."),
        ("Reference for Nora Dahl", "Nora Dahl left Fjord Lines, where all liked her."),
        ("Trustees, 4 February", "The trustees decided to thank Nora Dahl."),
        ("Safety", "The safety officer met Nora Dahl."),
        ("Data protection", "Data protection is the job of Nora Dahl."),
        ("Congratulations", "Congratulations to Nora Dahl, who won a prize."),
        ("Company handbook", "Nora Dahl was born in Bergen."),
        ("Fjord Lines", "Fjord Lines replaced its old ferries with ships from Oslo."),
    ],
)
def test_passage_that_is_not_about_its_title_gives_no_fact(
    rules: RuleLanguage, title: str | None, sentence: str
) -> None:
    assert facts_of(rules, title, sentence) == []


@pytest.mark.parametrize("title", [None, "Ada Berg", " "])
@pytest.mark.parametrize(
    "text", ["", " ", "(", ")", "()", ", , .", "1998", "is", "Ada Berg", "of of of", "’s", "a (b (c) d"]
)
def test_text_without_facts_gives_none(rules: RuleLanguage, title: str | None, text: str) -> None:
    assert facts_of(rules, title, text) == []


def test_facts_cite_their_sentence_and_come_once_per_sentence(rules: RuleLanguage) -> None:
    facts = facts_of(rules, "Ada Berg", LEAD, "She moved to Oslo and moved to Oslo.", "She moved to Oslo.")

    assert [fact.sentence for fact in facts if fact.object == "Oslo"] == [1, 2]
    assert all(0 < fact.confidence <= 1 for fact in facts)


@pytest.mark.parametrize(
    ("name", "country"), [("Finnish", "Finland"), ("finland", "Finland"), ("U.S.", "United States"), ("Lund", None)]
)
def test_countries_and_their_adjectives(name: str, country: str | None) -> None:
    assert find_country(name) == country


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "piece", ["was ", "Ada, ", "(1920–1990) ", "(", "in 1950, ", "also ", "Ada's ", "his wife Ada ", "is a w "]
)
def test_work_grows_with_the_text(rules: RuleLanguage, piece: str) -> None:
    def extract(text: str) -> object:
        (analysed,) = rules.analyse_passages([PassageText("Ada", text, (text,))])
        return extract_facts("Ada", analysed)

    assert growth(extract, piece, 2_000) < MOST_GROWTH

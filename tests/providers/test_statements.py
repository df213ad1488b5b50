"""What sentences of news, minutes, handbooks and e-mails state: posts, places, relatives, lives, and their days."""

from datetime import date

import pytest
import spacy

from engram.core.knowledge.triples import Triple
from engram.providers.language import PassageText, extract_facts
from engram.providers.language.rule_language import RuleLanguage
from tests.support.growth import MOST_GROWTH, growth


@pytest.fixture(scope="module")
def rules() -> RuleLanguage:
    return RuleLanguage(lambda: spacy.blank("en"))


def read(rules: RuleLanguage, title: str | None, *sentences: str) -> list[str]:
    """Facts of the last sentence: subject | predicate | object, with the first and the last day."""
    (analysed,) = rules.analyse_passages([PassageText(title, " ".join(sentences), sentences)])
    return [_line(fact) for fact in extract_facts(title, analysed) if fact.sentence == len(sentences) - 1]


def _line(fact: Triple) -> str:
    line = f"{fact.subject} | {fact.predicate} | {fact.object}"
    if fact.valid_from is None and fact.valid_to is None:
        return line
    start = "" if fact.valid_from is None else date.fromordinal(fact.valid_from).isoformat()
    end = "" if fact.valid_to is None else date.fromordinal(fact.valid_to).isoformat()
    return f"{line} | {start}..{end}"


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("Nora Dahl was born in Bergen.", ["Nora Dahl | place of birth | Bergen"]),
        (
            "Nora Dahl, the sister of Per Dahl, was born in Bergen, Norway.",
            [
                "Nora Dahl | sibling | Per Dahl",
                "Nora Dahl | place of birth | Bergen",
                "Bergen | located in | Norway",
            ],
        ),
        (
            "Nora Dahl became chief executive of Fjord Lines in 2014.",
            ["Nora Dahl | position held | chief executive of Fjord Lines | 2014-01-01.."],
        ),
        (
            "Nora Dahl has been named chief financial officer of Fjord Lines.",
            ["Nora Dahl | position held | chief financial officer of Fjord Lines"],
        ),
        (
            "Nora Dahl was promoted to head of sales on 3 May 2019.",
            ["Nora Dahl | position held | head of sales | 2019-05-03.."],
        ),
        (
            "Nora Dahl was promoted from deputy director to director in 2012.",
            ["Nora Dahl | position held | director | 2012-01-01.."],
        ),
        (
            "In 2012, Nora Dahl succeeded Per Holm as chairman of Fjord Lines.",
            [
                "Nora Dahl | position held | chairman of Fjord Lines | 2012-01-01..",
                "Per Holm | position held | chairman of Fjord Lines | ..2013-01-01",
            ],
        ),
        (
            "Nora Dahl succeeded Per Holm as chairman of Fjord Lines in 2012.",
            [
                "Nora Dahl | position held | chairman of Fjord Lines | 2012-01-01..",
                "Per Holm | position held | chairman of Fjord Lines | ..2013-01-01",
            ],
        ),
        ("Nora Dahl resigned in 2017.", []),
        (
            "Nora Dahl, chief executive of Fjord Lines, resigned in 2017.",
            ["Nora Dahl | position held | chief executive of Fjord Lines | ..2018-01-01"],
        ),
        (
            "Nora Dahl resigned as chief executive of Fjord Lines on 1 March 2017.",
            ["Nora Dahl | position held | chief executive of Fjord Lines | ..2017-03-02"],
        ),
        ("Nora Dahl has resigned as chief executive.", []),
        ("Fjord Lines moved to Oslo in 2009.", ["Fjord Lines | based in | Oslo | 2009-01-01.."]),
        (
            "Fjord Lines moved from Bergen to Oslo in 2009.",
            ["Fjord Lines | based in | Oslo | 2009-01-01..", "Fjord Lines | based in | Bergen | ..2010-01-01"],
        ),
        ("Fjord Lines moved its head office to Oslo in 2009.", ["Fjord Lines | based in | Oslo | 2009-01-01.."]),
        ("Fjord Lines will move to Oslo in 2029.", []),
        ("Fjord Lines plans to move to Oslo.", []),
        ("Fjord Lines is headquartered in Oslo.", ["Fjord Lines | based in | Oslo"]),
        (
            "Fjord Lines was based in Oslo from 1990 to 1999.",
            ["Fjord Lines | based in | Oslo | 1990-01-01..2000-01-01"],
        ),
        ("Fjord Lines was based in Oslo.", []),
        ("Nora Dahl was born in Bergen, not in Oslo.", ["Nora Dahl | place of birth | Bergen"]),
        ("Nora Dahl lives in Bergen and not in Oslo.", ["Nora Dahl | based in | Bergen"]),
        ("It is wrong that Nora Dahl was born in Oslo.", []),
        ("It is not the case that Nora Dahl is chairman of Fjord Lines.", []),
        ("Contrary to reports, Nora Dahl was not born in Oslo.", []),
        ("Nora Dahl was never chairman of Fjord Lines.", []),
        ("Was Nora Dahl born in Oslo?", []),
        ("If Nora Dahl becomes chairman of Fjord Lines, the board will meet.", []),
        ("Nora Dahl hopes to become chairman of Fjord Lines.", []),
        ("Per Holm says that Nora Dahl was born in Oslo.", []),
        ("Nora Dahl is no longer chairman of Fjord Lines.", []),
        ("Nora Dahl is a former chairman of Fjord Lines.", []),
        ("Former chairman Nora Dahl spoke first.", []),
        (
            "Nora Dahl is chairman of Fjord Lines and lives in Bergen.",
            ["Nora Dahl | position held | chairman of Fjord Lines", "Nora Dahl | based in | Bergen"],
        ),
        ("The chairman of Fjord Lines is Nora Dahl.", ["Nora Dahl | position held | chairman of Fjord Lines"]),
        (
            "Fjord Lines' chairman, Nora Dahl, lives in Bergen.",
            ["Nora Dahl | based in | Bergen", "Nora Dahl | position held | chairman of Fjord Lines"],
        ),
        (
            "Fjord Lines chairman Nora Dahl lives in Bergen.",
            ["Nora Dahl | based in | Bergen", "Nora Dahl | position held | chairman of Fjord Lines"],
        ),
        (
            "Fjord Lines appointed Nora Dahl as head of research with effect from 1 May 2020.",
            ["Nora Dahl | position held | head of research of Fjord Lines | 2020-05-01.."],
        ),
        ("The council elected Nora Dahl mayor in 2003.", ["Nora Dahl | position held | mayor | 2003-01-01.."]),
        (
            "Nora Dahl has worked for Fjord Lines since 1999.",
            ["Nora Dahl | affiliation | Fjord Lines | 1999-01-01.."],
        ),
        (
            "Nora Dahl worked at Fjord Lines from 1999 to 2004.",
            ["Nora Dahl | affiliation | Fjord Lines | 1999-01-01..2005-01-01"],
        ),
        ("Nora Dahl worked at Fjord Lines.", []),
        ("Nora Dahl left Fjord Lines in 2004.", ["Nora Dahl | affiliation | Fjord Lines | ..2005-01-01"]),
        ("Nora Dahl left Bergen for Oslo in 2004.", []),
        (
            "Nora Dahl joined Fjord Lines in 1999 as an engineer.",
            ["Nora Dahl | position held | engineer of Fjord Lines | 1999-01-01.."],
        ),
        ("Nora Dahl joined Fjord Lines in 1999.", ["Nora Dahl | affiliation | Fjord Lines | 1999-01-01.."]),
        ("Nora Dahl is a lawyer.", ["Nora Dahl | is a | lawyer"]),
        ("Nora Dahl is a Danish engineer.", ["Nora Dahl | citizenship | Danish", "Nora Dahl | is a | engineer"]),
        (
            "Fjord Lines is a Norwegian shipping company.",
            ["Fjord Lines | country of origin | Norwegian", "Fjord Lines | is a | shipping company"],
        ),
        (
            "Nora Dahl, 51, died in Bergen on 2 May 2011.",
            ["Nora Dahl | place of death | Bergen", "Nora Dahl | date of death | 2 May 2011"],
        ),
        (
            "Nora Dahl died of cancer in 2011.",
            ["Nora Dahl | date of death | 2011", "Nora Dahl | cause of death | cancer"],
        ),
        ("Nora Dahl is married to Per Holm.", ["Nora Dahl | spouse | Per Holm"]),
        ("Nora Dahl studied law at the University of Oslo.", ["Nora Dahl | educated at | University of Oslo"]),
        ("Nora Dahl graduated from Bergen University in 1992.", ["Nora Dahl | educated at | Bergen University"]),
        (
            "Nora Dahl is the daughter of Jon Dahl and Eva Dahl.",
            ["Nora Dahl | father | Jon Dahl", "Nora Dahl | mother | Eva Dahl"],
        ),
        ("Please welcome Nora Dahl, our new head of finance.", ["Nora Dahl | position held | head of finance"]),
        ("Treasurer: Nora Dahl", ["Nora Dahl | position held | treasurer"]),
        ("Nora Dahl (treasurer) gave a report.", ["Nora Dahl | position held | treasurer"]),
        (
            "The meeting was opened by Nora Dahl, chair of the board.",
            ["Nora Dahl | position held | chair of board"],
        ),
        ("Nora Dahl and Per Holm were appointed directors of Fjord Lines in 2010.", []),
        ("The firm was moved by Nora Dahl.", []),
        ("Nora Dahl moved to approve the minutes.", []),
        (
            "Nora Dahl retired as principal of Bergen School in June 2018 after twenty years.",
            ["Nora Dahl | position held | principal of Bergen School | ..2018-07-01"],
        ),
        (
            "Nora Dahl served as secretary of Fjord Lines from 2001 until 2006.",
            ["Nora Dahl | position held | secretary of Fjord Lines | 2001-01-01..2007-01-01"],
        ),
        (
            "Nora Dahl was replaced as captain by Per Holm in 2015.",
            [
                "Per Holm | position held | captain | 2015-01-01..",
                "Nora Dahl | position held | captain | ..2016-01-01",
            ],
        ),
        ("Nora Dahl may have become chairman of Fjord Lines.", []),
        ("Nora Dahl almost became chairman of Fjord Lines.", []),
        ("Nora Dahl declined to become chairman of Fjord Lines.", []),
        ("Nora Dahl applied for the post of director of Fjord Lines.", []),
        ("Nora Dahl is acting director of Fjord Lines.", ["Nora Dahl | position held | director of Fjord Lines"]),
        ("Nora Dahl is not the director of Fjord Lines but its chairman.", []),
        ("Rather than Oslo, Fjord Lines chose Bergen.", []),
        (
            "Dr. Nora Dahl is professor of law at the University of Oslo.",
            ["Nora Dahl | position held | professor of law of University of Oslo"],
        ),
        ("Otto Krag founded Blue Harbour Gallery.", ["Otto Krag | founded | Blue Harbour Gallery"]),
        (
            "Nora Dahl's father, Jon Dahl, founded Fjord Lines.",
            ["Nora Dahl | father | Jon Dahl", "Jon Dahl | founded | Fjord Lines"],
        ),
        (
            "Nora Dahl, who was born in Bergen, is chief executive of Fjord Lines.",
            ["Nora Dahl | place of birth | Bergen", "Nora Dahl | position held | chief executive of Fjord Lines"],
        ),
        (
            "Nora Dahl, a lawyer by training, is the managing director.",
            ["Nora Dahl | position held | managing director"],
        ),
        ("Nora Dahl spoke for Fjord Lines, which is based in Bergen.", ["Fjord Lines | based in | Bergen"]),
        ("The board co-opted Nora Dahl as treasurer.", ["Nora Dahl | position held | treasurer"]),
        ("The members re-elected Nora Dahl as treasurer.", ["Nora Dahl | position held | treasurer"]),
        (
            "Fjord Lines has hired Nora Dahl as head of sales.",
            ["Nora Dahl | position held | head of sales of Fjord Lines"],
        ),
        ("The trustees decided not to appoint Nora Dahl as treasurer.", []),
        ("Had Nora Dahl stayed in Bergen, she would have become rector in 2015.", []),
        ('"Nora Dahl was born in Bergen", reads a poster.', []),
        ("Nora Dahl was born in Bergen, said Per Holm.", []),
        ("Nora Dahl rose from clerk to director in 2009.", ["Nora Dahl | position held | director | 2009-01-01.."]),
        (
            "Nora Dahl handed over the chair to Per Holm on 1 July 2021.",
            [
                "Per Holm | position held | chair | 2021-07-01..",
                "Nora Dahl | position held | chair | ..2021-07-02",
            ],
        ),
        ("Nora Dahl served as director until a successor was found.", []),
        ("Fjord Lines moved from Bergen to Oslo before 1990.", []),
        ("Fjord Lines left Bergen in 2018 to join Oslo Shipping.", []),
        ("Fjord Lines is now located at 12 Mill Road, Oslo.", []),
        (
            "Fjord Lines transferred its registered office to Oslo on 1 January 2022.",
            ["Fjord Lines | based in | Oslo | 2022-01-01.."],
        ),
        ("Nora Dahl passed away in Bergen.", ["Nora Dahl | place of death | Bergen"]),
        ("Nora Dahl died in 1964 at the age of 70.", ["Nora Dahl | date of death | 1964"]),
        (
            "Nora Dahl holds a degree in physics from Bergen University.",
            ["Nora Dahl | educated at | Bergen University"],
        ),
        (
            "Born in Bergen in 1980, Nora Dahl lives in Oslo.",
            [
                "Nora Dahl | place of birth | Bergen",
                "Nora Dahl | date of birth | 1980",
                "Nora Dahl | based in | Oslo",
            ],
        ),
        (
            "Nora Dahl is the wife of Per Holm and the sister of Jon Dahl.",
            ["Nora Dahl | spouse | Per Holm", "Nora Dahl | sibling | Jon Dahl"],
        ),
        ("Nora Dahl is a well-known engineer.", []),
        ("Lone Dahl, formerly finance director of Fjord Lines, took charge.", []),
        ("Lewis and Lowe have their office in Bath.", []),
        ("The Dahl family lives in Bergen.", []),
        (
            "Kind regards, Nora Dahl, Head of Sales, Fjord Lines",
            ["Nora Dahl | position held | Head of Sales of Fjord Lines"],
        ),
        (
            "Questions go to Nora Dahl, head of pay at Fjord Lines.",
            ["Nora Dahl | position held | head of pay of Fjord Lines"],
        ),
        (
            "Per Holm thanked Nora Dahl, who stepped down as treasurer in 2016.",
            ["Nora Dahl | position held | treasurer | ..2017-01-01"],
        ),
    ],
)
def test_a_sentence_under_a_heading(rules: RuleLanguage, sentence: str, facts: list[str]) -> None:
    assert sorted(read(rules, "Company handbook", sentence)) == sorted(facts)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "piece",
    [
        "Ada Berg, ",
        "Ada Berg, the chairman of Holm Lines, ",
        "the chairman ",
        "and moved to Oslo ",
        "was appointed ",
        "before he said, ",
        "(chair) ",
        "his sister ",
        "Holm's ",
        "not ",
        "in 1950, ",
        "Ada Berg, who met ",
        "of Holm ",
        "and Holm ",
        "Ada Berg of Holm Lines ",
    ],
)
def test_work_grows_with_the_text(rules: RuleLanguage, piece: str) -> None:
    def extract(text: str) -> object:
        (analysed,) = rules.analyse_passages([PassageText("Minutes", text, (text,))])
        return extract_facts("Minutes", analysed)

    assert growth(extract, piece, 2_000) < MOST_GROWTH


@pytest.mark.parametrize(
    ("title", "sentence"),
    [
        ("Reference for Nora Dahl", "Nora Dahl left Fjord Lines, where all liked her."),
        ("Trustees, 4 February", "The trustees decided to thank Nora Dahl."),
        ("Safety", "The safety officer met Nora Dahl."),
        ("Data protection", "Data protection is the job of Nora Dahl."),
        ("Congratulations", "Congratulations to Nora Dahl, who won a prize."),
        ("Fjord Lines", "Fjord Lines replaced its old ferries with ships from Oslo."),
    ],
)
def test_a_title_that_is_not_defined_is_no_topic(rules: RuleLanguage, title: str, sentence: str) -> None:
    assert read(rules, title, sentence) == []

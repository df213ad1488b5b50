"""Sentences and names, by the built-in rules and by a spaCy pipeline."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from engram.context.errors import ConfigurationError
from engram.providers.language import Language, PassageText, load_language, normalise_entity
from engram.providers.language.rule_language import RuleLanguage
from engram.providers.language.sentence_splitter import (
    CLAUSE_CHARACTERS,
    STRETCH,
    WIDE_CLAUSE_CHARACTERS,
    split_sentences,
)
from tests.support.light_spacy import spacy


@pytest.fixture(scope="module")
def rules() -> RuleLanguage:
    return RuleLanguage(spacy.blank)


@pytest.mark.parametrize(
    ("surface", "key"),
    [
        ("The  Beatles", "beatles"),
        ("Beatles'", "beatles"),
        ("Ada Lovelace's", "ada lovelace"),
        ("“Blue Harbour”,", "blue harbour"),
        ("Mercury (planet)", "mercury (planet)"),
        ("WHO)", "who"),
        ("ＮＡＳＡ", "nasa"),
        ("Straße", "strasse"),
        ("The The", "the"),
        ("!!!", "!!!"),
        (" ", ""),
    ],
)
def test_equal_names_share_a_key(surface: str, key: str) -> None:
    assert normalise_entity(surface) == key


@given(st.text())
def test_normalisation_is_idempotent(surface: str) -> None:
    key = normalise_entity(surface)

    assert normalise_entity(key) == key
    assert bool(key) == bool(surface.strip())


@pytest.mark.parametrize(
    "sentences",
    [
        ["It rained.", "Nobody came!", "Why?", "We left."],
        ["Dr. Lind met Mrs. Okafor vs. St. Olaf."],
        ["J. R. R. Halvorsen wrote it.", "It sold well."],
        ["She moved to the U.S. Army.", "He stayed in the U.S.", "The rest went home."],
        ["Chapel No. 5 stands.", "He said no.", "Then he left."],
        ["Harbour Inc. Norway grew.", "It was sold to Harbour Inc.", "In May it closed."],
        ["“Come here.”", "She came."],
        ["He paid 3.5 million at 5 p.m. and saw many, e.g. Lund."],
    ],
)
def test_sentences_end_where_a_reader_would_say(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences), "en") == sentences


def test_an_empty_line_ends_a_sentence() -> None:
    assert split_sentences(" A heading\n\nThe text\ngoes on. ", "en") == ["A heading", "The text\ngoes on."]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", [". ", ".", "\n ", "(", "the ", "'s", "A. ", "of March ", "1998-", "March   "])
def test_long_monotonous_text_takes_no_unreasonable_time(rules: RuleLanguage, piece: str) -> None:
    (sentences,) = rules.analyse_passages([PassageText(piece * 500, piece * 5_000)])

    assert "".join("".join(s.text for s in sentences).split()) == "".join((piece * 5_000).split())


LANGUAGES = ["en", "de", "fr", "es", "ru", "ar", "hi", "zh", "ja", "th", "ko", "xx"]


@given(st.text() | st.text('Ab .。?!\n\u2028\u3000\x85("।1漢'), st.sampled_from(LANGUAGES))
def test_splitting_loses_nothing_but_white_space(text: str, language: str) -> None:
    assert "".join("".join(split_sentences(text, language)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("de", ["Er kam am 12. Juni 1815.", "Das ist z. B. in Köln bzw. Bonn so.", "Im 19. Jahrhundert auch."]),
        ("de", ["Es hatte 30 °C.", "Das war „warm“ für J. S. Bach.", "Ludwig XIV. regierte."]),
        ("fr", ["M. Dupont est né en 753 av. J.-C. à Rome.", "Il est parti !", "Pourquoi ?", "Voilà."]),
        ("ru", ["Он родился в 1815 г. в Москве.", "Э. И. Дюпон, т. е. химик."]),
        ("zh", ["北京有2154.5万人口！", "你去过吗？", "「我去过。」", "他说。", "2024年。"]),
        ("ja", ["R.マレが作った。", "高さ約15.5メートル。", "はい。"]),
        ("hi", ["यह एक वाक्य है।", "यह दूसरा वाक्य है।"]),
        ("ar", ["هل تسمعني؟", "نعم!", "هذا نص."]),
        ("ko", ["이것은 문장이다.", "3.5배 증가했다."]),
        ("pl", ["Urodził się 5 maja 1900 r. w Łodzi.", "Np. tak."]),
    ],
)
def test_sentences_of_other_languages_end_where_a_reader_would_say(language: str, sentences: list[str]) -> None:
    text = ("" if language in ("zh", "ja") else " ").join(sentences)
    assert split_sentences(text, language) == sentences
    assert split_sentences(text.replace(" ", "\u2028"), language) == [
        one.replace(" ", "\u2028") for one in sentences
    ]


def test_short_thai_is_split_at_empty_lines_only() -> None:
    assert split_sentences("บ้านเก่า ปีค.ศ.1345 เขาซื้อ\n\nผลไม้", "th") == ["บ้านเก่า ปีค.ศ.1345 เขาซื้อ", "ผลไม้"]


def test_long_thai_is_split_at_spaces_that_a_reader_may_take_for_ends() -> None:
    first = "นอกจากนี้ไลน์ของทีมแพนเธอร์สยังมี จาเรด อัลเลน (ซึ่งเป็นดีเฟนซีฟเอนด์ ผู้ช่ำช่อง) ที่เคยเข้าร่วมในโปรโบว์ล 5 ครั้ง"
    second = "เบื้องหลังพวกเขา ไลน์แบคเกอร์สองในสามคนของทีมแพนเธอร์ส"
    third = "ก็ได้รับเลือกให้เล่นในโปรโบว์ลด้วยเช่นกัน"
    assert len(first) >= CLAUSE_CHARACTERS > len(second) >= WIDE_CLAUSE_CHARACTERS
    assert split_sentences(f"{first} {second}  {third}", "th") == [first, second, third]
    assert split_sentences(f"{second} {third}", "th") == [f"{second} {third}"]
    assert split_sentences(f"({first} {third})", "th") == [f"({first} {third})"]  # inside brackets


def test_a_text_of_an_unknown_language_is_read_as_it_is_recognised() -> None:
    german = "Im 19. Jahrhundert wurde die Stadt durch einen Brand vollständig zerstört."
    assert split_sentences(german) == [german]
    assert split_sentences("It rained. Nobody came.") == ["It rained.", "Nobody came."]


@pytest.mark.parametrize(
    ("question", "entities"),
    [
        ("Who founded the Bank of Ruritania?", ("Bank of Ruritania",)),
        ("Which film came first, Blue Harbour or The Last Ferry?", ("Blue Harbour", "The Last Ferry")),
        ("Did Ludwig van Dorn and Ana de la Cruz meet?", ("Ludwig van Dorn", "Ana de la Cruz")),
        ("In which year did Apollo 11 carry a Boeing 747?", ("Apollo 11", "Boeing 747")),
        ('Who wrote "The Men of the North" in Turku?', ("The Men of the North", "Turku")),
        ("Who sang “a song for nobody at all”?", ()),
        ("Where is the 6th Rifle Brigade based?", ("6th Rifle Brigade",)),
        ("Who won the 2031 Polar Games?", ("2031 Polar Games",)),
        ("Who wrote the 1979 Welsh novel?", ("Welsh",)),
        ("Is Jean-Luc O'Hara a NATO general?", ("Jean-Luc O'Hara", "NATO")),
        ("What is Élodie Ångström's London-based firm?", ("Élodie Ångström", "London")),
        ("Is Mercury (planet) hot?", ("Mercury (planet)",)),
        ("Did August Lind meet Theresa May in March 1998, on a Friday?", ("August Lind", "Theresa May")),
        ("When was Harbour: The Return shot at AT&T Park?", ("Harbour: The Return", "AT&T Park")),
        ("Does Chanel No. 5 smell?", ("Chanel No. 5",)),
        ("did J. J. Fen run The Who?", ("J. J. Fen", "The Who")),
        ("Who visited 東京 in 2005?", ("東京",)),
        ("who founded the bank of ruritania?", ()),
    ],
)
def test_names_in_questions(rules: RuleLanguage, question: str, entities: tuple[str, ...]) -> None:
    assert rules.analyse_question(question).entities == entities


@pytest.mark.parametrize(
    ("language", "question", "entities"),
    [
        ("de", "Welche Stadt gründete Ada Bergmann mit der NATO?", ("Ada Bergmann", "NATO")),
        ("de", "Was begrenzt die Effizienz des Kreisprozesses?", ()),
        ("fr", "Dans quelle ville d'Italie Riccardo Fen est-il né ?", ("Italie Riccardo Fen",)),
        ("es", "¿Qué limita la eficiencia del ciclo Rankine?", ("Rankine",)),
        ("ru", "Автомобили какой марки производятся в Лунде?", ("Лунде",)),
        ("ja", "「団菊時代」を築いたF-15とアルトン・フェンは?", ("団菊時代", "F-15", "アルトン・フェン")),
        ("zh", "Broadmeadows制作什么品牌的汽车？", ("Broadmeadows",)),
        ("th", "รถยี่ห้อใดที่ถูกผลิตใน 1998?", ()),
        ("ar", "ما هو خط Panthers الأول؟", ("Panthers",)),
    ],
)
def test_names_in_other_languages(
    rules: RuleLanguage, language: str, question: str, entities: tuple[str, ...]
) -> None:
    assert rules.analyse_question(question, language).entities == entities
    ((sentence,),) = rules.analyse_passages([PassageText(None, "", (question,), language)])
    assert sentence.entities == entities


@pytest.mark.parametrize(
    ("language", "question", "possible", "impossible"),
    [
        ("ja", "陳朝の首都は?", {"陳朝", "首都"}, {"陳"}),
        ("th", "รถใน", {"รถ", "รถใน"}, {"ร"}),
        ("de", "Was sind die Kosten der Stadt?", {"Kosten", "Kosten der Stadt"}, {"Was", "die Kosten"}),
        ("ar", "ما دورة رانكين؟", {"دورة رانكين", "رانكين"}, {"ما"}),
        ("en", "What is the capital of Lund?", set(), {"Lund"}),
    ],
)
def test_possible_names_of_a_question(
    rules: RuleLanguage, language: str, question: str, possible: set[str], impossible: set[str]
) -> None:
    found = rules.analyse_question(question, language).possible
    assert possible <= set(found)
    assert not impossible & set(found)


def test_time_of_a_question(rules: RuleLanguage) -> None:
    assert rules.analyse_question("Who led Lund from 1998 to 2003?").time_expression == "from 1998 to 2003"
    assert rules.analyse_question("Who led Lund?").time_expression is None


def test_passages_keep_their_sentences_and_carry_their_title(rules: RuleLanguage) -> None:
    given_sentences = ("Released in  Lund.", "It was the Lund's best, said Lund .", " ")
    passages = [
        PassageText("Blue Harbour (film)", "ignored", given_sentences),
        PassageText(None, "Rosa Fen sat. It was 1998."),
        PassageText("Empty", ""),
    ]

    first, second, third = rules.analyse_passages(passages)

    assert [sentence.text for sentence in first] == list(given_sentences)
    titles = ("Blue Harbour (film)", "Blue Harbour")
    assert [sentence.entities for sentence in first] == [(*titles, "Lund"), (*titles, "Lund"), titles]
    assert [(s.text, s.entities, s.time_expression) for s in second] == [
        ("Rosa Fen sat.", ("Rosa Fen",), None),
        ("It was 1998.", (), "1998"),
    ]
    assert third == []


@given(st.text())
def test_any_question_can_be_analysed(rules: RuleLanguage, text: str) -> None:
    analysis = rules.analyse_question(text)

    keys = [normalise_entity(entity) for entity in analysis.entities]
    assert len(set(keys)) == len(keys)


def test_a_vocabulary_that_grew_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    blank = Mock(side_effect=spacy.blank)
    language = RuleLanguage(blank)
    monkeypatch.setattr("engram.providers.language.rule_language._VOCABULARY_LIMIT", 0)

    assert language.analyse_question("Where is Lund?").entities == ("Lund",)
    assert language.analyse_question("Where is Oslo?").entities == ("Oslo",)
    assert [call.args for call in blank.call_args_list] == [("en",), ("xx",), ("en",), ("en",)]


def test_questions_from_many_threads(rules: RuleLanguage) -> None:
    questions = [f"Where is Lund {n} of Ruritania{n}?" for n in range(400)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(rules.analyse_question, questions))

    assert [analysis.entities for analysis in found] == [(f"Lund {n} of Ruritania{n}",) for n in range(400)]


def test_missing_pipeline_warns_once_and_falls_back_to_rules() -> None:
    with capture_logs() as logs:
        language = load_language("en_no_such_pipeline")

    assert language.name == "rules"
    assert [(entry["log_level"], entry["model"]) for entry in logs] == [("warning", "en_no_such_pipeline")]


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """A real pipeline in a folder: a sentence splitter and an entity ruler."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("entity_ruler").add_patterns(
        [{"label": "GPE", "pattern": "Lund"}, {"label": "DATE", "pattern": "1998"}]
    )
    nlp.to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


def test_installed_pipeline_serves(pipeline: Path) -> None:
    language: Language = load_language(str(pipeline))

    assert language.name.startswith("en_pipeline ")
    assert language.analyse_question("Was Lund big in 1998?").entities == ("Lund",)
    assert language.analyse_question("Was Lund big in 1998?").time_expression == "1998"
    whole, split = language.analyse_passages(
        [PassageText("T", "", ("Lund. Oslo.",)), PassageText("T", "It grew. In Lund.")]
    )
    assert [(sentence.text, sentence.entities) for sentence in whole] == [("Lund. Oslo.", ("T", "Lund"))]
    assert [(sentence.text, sentence.entities) for sentence in split] == [
        ("It grew.", ("T",)),
        ("In Lund.", ("T", "Lund")),
    ]


def test_each_pipeline_reads_its_language(pipeline: Path, tmp_path: Path) -> None:
    german = spacy.blank("de")
    german.add_pipe("entity_ruler").add_patterns([{"label": "LOC", "pattern": "Lund"}])
    german.to_disk(tmp_path / "german")
    language = load_language(f"{pipeline}, {tmp_path / 'german'}")
    passages = [
        PassageText(None, "", ("In Lund wohnt Ada Fen.",), "de"),
        PassageText(None, "", ("Oslo and Lund.",), "en"),
        PassageText(None, "", ("Près de Lund.",), "fr"),
    ]

    assert [sentence.entities for (sentence,) in language.analyse_passages(passages)] == [("Lund",)] * 3
    assert language.analyse_question("Wo wohnt Ada Fen?", "de").entities == ()
    assert language.analyse_question("Où habite Ada Fen ?", "fr").entities == ("Ada Fen",)


def test_two_pipelines_of_one_language_are_refused(pipeline: Path, tmp_path: Path) -> None:
    spacy.load(pipeline).to_disk(tmp_path / "other")

    with pytest.raises(ConfigurationError, match="for language 'en'"):
        load_language(f"{pipeline},{tmp_path / 'other'}")


def test_pipeline_without_sentences_uses_our_split(pipeline: Path) -> None:
    nlp = spacy.load(pipeline)
    nlp.remove_pipe("sentencizer")
    nlp.to_disk(pipeline)

    (sentences,) = load_language(str(pipeline)).analyse_passages([PassageText(None, "Dr. Fen left. Lund grew.")])
    assert [sentence.text for sentence in sentences] == ["Dr. Fen left.", "Lund grew."]


def test_pipeline_without_entities_is_refused(pipeline: Path) -> None:
    nlp = spacy.load(pipeline)
    nlp.remove_pipe("entity_ruler")
    nlp.to_disk(pipeline)

    with pytest.raises(ConfigurationError, match="finds no entities"):
        load_language(str(pipeline))


def test_unreadable_pipeline_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.cfg").write_text("[nlp]\nlang = 'en'\n", encoding="utf-8")

    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        load_language(str(tmp_path))


HIDES_TORCH = """
import sys
from engram.providers.language import load_language
assert load_language("en_no_such_pipeline").name == "rules"
assert "spacy" in sys.modules and "torch" not in sys.modules
from engram.context.errors import ConfigurationError
try:
    load_language(sys.argv[1])
except ConfigurationError as error:
    assert "runs on torch" in error.detail, error.detail
else:
    raise AssertionError("a transformer pipeline must be refused")
import importlib.util
assert importlib.util.find_spec("torch") is not None  # an import of it would find it
"""


def test_torch_is_hidden_from_spacy_only(tmp_path: Path) -> None:
    config = '[components.transformer]\nfactory = "transformer"\n'
    (tmp_path / "config.cfg").write_text(config, encoding="utf-8")

    subprocess.run([sys.executable, "-c", HIDES_TORCH, str(tmp_path)], check=True, timeout=120)


def test_a_long_text_is_split_like_its_parts() -> None:
    part = "東京は日本の首都です。京都は古い都です。\n"
    times = 3 * STRETCH // len(part)
    assert split_sentences(part * times, "ja") == split_sentences(part, "ja") * times

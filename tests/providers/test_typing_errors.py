"""Typing errors of questions, corrected by the words of a collection."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import pytest

from engram.providers.language import Vocabulary, correct_question, terms
from engram.providers.language.language_detection import detect_language
from engram.providers.language.typing_errors import MOST_LETTERS, MOST_SPELLINGS, measure_distance


@dataclass(frozen=True)
class Words:
    """Words of some texts in a language."""

    texts: Sequence[str]
    language: str

    def count_passages(self, wanted: Sequence[str]) -> dict[str, int]:
        return {term: len(found) for term, found in self.sample_texts(wanted).items() if found}

    def list_terms(self, beginning: str, shortest: int, longest: int) -> list[str]:
        held = {term for text in self.texts for term in terms(text, self.language)}
        return [term for term in held if term.startswith(beginning) and shortest <= len(term) <= longest]

    def list_containing(self, part: str) -> list[str]:
        return sorted({term for text in self.texts for term in terms(text, self.language) if part in term})

    def sample_texts(self, wanted: Sequence[str]) -> dict[str, list[str]]:
        return {term: [text for text in self.texts if term in terms(text, self.language)] for term in wanted}


WHOLE = {"walking", "along", "frosty"}
"""Words that the encoder reads as one token."""
REGULAR = {"homecare", "hmoeware"}
"""Words that it reads in no more tokens than those near them."""


def count_tokens(pair: Sequence[str]) -> list[int]:
    typed, _ = pair
    return [2 if typed in REGULAR else 3, 2]


READ = WHOLE.__contains__, count_tokens


def correct(question: str, language: str, *texts: str) -> tuple[str, list[tuple[str, str]]]:
    words = Words(texts, language)
    corrected, corrections = correct_question(
        question, {language: len(texts)}, lambda: nullcontext(words), Vocabulary(), *READ
    )
    return corrected, [(one.typed, one.corrected) for one in corrections]


RIVER = "Warsaw lies on the Vistula, by careful calculations."


@pytest.mark.parametrize(
    ("language", "text", "typed", "meant"),
    [
        ("en", RIVER, "vistla", "Vistula"),
        ("en", RIVER, "Vitsula", "Vistula"),
        ("en", RIVER, "Visstula", "Vistula"),
        ("en", RIVER, "bistula", "Vistula"),
        ("en", RIVER, "ViSTLA", "Vistula"),
        ("en", RIVER, "calculatoins", "calculations"),
        ("en", "Photosynthesis", "photsynthess", "Photosynthesis"),
        ("de", "Die Brücke der Städte", "Brüke", "Brücke"),
        ("fr", "Les équipes préférées gagnent.", "preferees", "préférées"),
        ("ru", "Висла впадает в море.", "Вилса", "Висла"),
        ("el", "Ο Σηκουάνας περνά από το Παρίσι.", "Σηκουάνς", "Σηκουάνας"),
        ("hi", "किताबें मेज़ पर हैं", "किताबेे", "किताबें"),
        ("he", "הוויסלה זורמת לים", "הוויסלא", "הוויסלה"),
        ("en", RIVER, "forsty", "frosty"),  # which only the encoder knows
        ("ru", "Встреча прошла в Королёве.", "Королев", "Королёве"),  # with an ending
        ("fi", "Kaupasta löytyivät käsiraudat.", "käsirauta", "käsiraudat"),
        ("en", "The office has Wi-Fi.", "wifi", "Wi-Fi"),
        ("en", "Keep a data base of spare parts.", "database", "data base"),
        ("en", "A frost-y morning.", "frosty", "frost-y"),
        ("en", "The dishwasher leaks.", "dish washer", "dishwasher"),
        ("en", "The username is new.", "user name", "username"),  # a function word is one of both
        ("en", "The wifi is slow.", "Wi-Fi", "wifi"),
        ("de", "Die Donaudampfschifffahrtsgesellschaft", "Dampfschifffahrt", "Donaudampfschifffahrtsgesellschaft"),
        ("nl", "De arbeidsongeschiktheidsverzekering", "ongeschiktheid", "arbeidsongeschiktheidsverzekering"),
    ],
)
def test_a_word_a_letter_or_accents_away_is_meant(language: str, text: str, typed: str, meant: str) -> None:
    assert correct(f"{typed}?", language, text) == (f"{meant}?", [(typed, meant)])


@pytest.mark.parametrize(
    "question",
    [
        "Where is the Vistula?",
        "Was it calculated?",  # another form of a word that there is
        "Is EUO a code?",  # short, and has capitals
        "walking",  # the encoder knows it whole
        "Does careful-calculations help?",  # the collection has both
        "calcul",  # English writes no compounds
        "vis4ula",
        "Vis",
        "lios on the Rhine",  # short, and what is meant stands beside no other word
        "Lise on the Vistula",  # short, and may be a name
        "Which unrelated questions mention nothing known whatsoever?",
        "Wo liegt die Weichsel und wie lang ist dieser Fluss?",
        "",
    ],
)
def test_what_is_no_typing_error_stays(question: str) -> None:
    assert correct(question, "en", RIVER) == (question, [])


@pytest.mark.parametrize(
    ("typed", "kept"),
    [("homecare", "homecare homeware"), ("homwware", "homeware"), ("hmoeware", "homeware")],
)
def test_what_may_be_right_stays_beside_what_may_be_meant(typed: str, kept: str) -> None:
    corrected = f"Who sells {kept} here?", [(typed, "homeware")]
    assert correct(f"Who sells {typed} here?", "en", "Our stores sell homeware.") == corrected


@pytest.mark.parametrize(
    ("one", "other", "changes"),
    [
        ("", "", 0),
        ("ab", "", 2),
        ("ab", "ba", 1),
        ("vistla", "vistula", 1),
        ("ca", "abc", 3),
        ("kitten", "sitting", 3),
    ],
)
def test_a_transposition_is_one_change(one: str, other: str, changes: int) -> None:
    assert measure_distance(one, other) == measure_distance(other, one) == changes


@pytest.mark.parametrize(
    ("typed", "meant", "other"),
    [
        ("maks", "mask", "make"),  # exchanged, or another letter
        ("takign", "taking", "talking"),
        ("chaer", "chaser", "cheer"),  # left out, or another letter
        ("visti", "visit", "vista"),
    ],
)
def test_letters_left_out_or_exchanged_are_likelier_than_wrong_ones(typed: str, meant: str, other: str) -> None:
    texts = f"Wear a {meant} near the river.", *(f"Use the {other} near the river." for _ in range(3))
    corrected, corrections = correct(f"Which {typed} near the river?", "en", *texts)
    assert (corrected, corrections) == (f"Which {meant} near the river?", [(typed, meant)])


def test_a_short_word_is_corrected_beside_another_one_of_the_question() -> None:
    assert correct("lios on the Vistula", "en", RIVER) == ("lies on the Vistula", [("lios", "lies")])


def test_a_short_word_with_two_letters_exchanged_is_corrected_by_itself() -> None:
    assert correct("lise of a motor", "en", RIVER) == ("lies of a motor", [("lise", "lies")])


def test_several_words_are_corrected_in_their_places() -> None:
    assert correct("Is warsow on the vistla?", "en", RIVER) == (
        "Is Warsaw on the Vistula?",
        [("warsow", "Warsaw"), ("vistla", "Vistula")],
    )


@pytest.mark.parametrize(
    ("question", "meant"),
    [("brend", "bread"), ("brend of a motor", "brand"), ("rye brend", "bread")],
)
def test_what_stands_beside_the_other_words_is_meant_or_else_what_most_passages_have(
    question: str, meant: str
) -> None:
    corpus = ["A brand of a motor.", "Rye bread.", "White bread."]
    assert correct(question, "en", *corpus) == (question.replace("brend", meant), [("brend", meant)])


HOSTILE = {
    "Latin": "ạ" + "a" * 29,
    "all accents": "aạàæǟ" * 6,
    "Greek": "ᾇ" + "α" * 29,
    "Cyrillic": "ѐ" * 30,
    "Arabic": "آ" * 30,
    "Devanagari": "क़ा" * 10,
    "many rows": "ሀለቀበተነከዘደገጠፈⶀꬁ",
}


def test_a_frequent_term_is_meant_though_one_text_has_a_rare_one_beside_more_words() -> None:
    often = [*["Prepare food."] * 3, *["Eat food in summer."] * 3, "Winter is cold."]
    corrected = correct("Prepare ood in summer or winter?", "en", *often, "Prepare for a summer or winter mood.")
    assert corrected[1] == [("ood", "food")]


@pytest.mark.parametrize("word", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("language", ["en", "vi"])
def test_no_word_has_more_spellings_than_a_bound(word: str, language: str) -> None:
    asked: list[int] = []

    class Counted(Words):
        def count_passages(self, wanted: Sequence[str]) -> dict[str, int]:
            asked.append(len(wanted))
            return {}

    languages = {language: 1, detect_language(word) or language: 1}
    correct_question(
        word[:30],
        languages,
        lambda: nullcontext(Counted([], language)),
        Vocabulary(),
        lambda _: False,
        count_tokens,
    )
    assert 1 <= max(asked) <= 2 * len(languages) * (MOST_SPELLINGS + MOST_LETTERS)


def test_words_that_are_known_or_whole_are_looked_up_once() -> None:
    vocabulary = Vocabulary()
    opened: list[Words] = []

    def open_words() -> nullcontext[Words]:
        opened.append(Words([RIVER], "en"))
        return nullcontext(opened[-1])

    for question in ("walking along", "Is Warsaw walking?", "Warsaw walking", "Warsaw", "Warsaw vistla"):
        correct_question(question, {"en": 1}, open_words, vocabulary, *READ)
    assert (len(opened), vocabulary.passages) == (3, {"warsaw": 1})


def test_a_word_that_nothing_is_near_is_looked_for_once() -> None:
    vocabulary = Vocabulary()
    asked: list[Sequence[str]] = []

    class Counted(Words):
        def count_passages(self, wanted: Sequence[str]) -> dict[str, int]:
            asked.append(wanted)
            return super().count_passages(wanted)

    words = Counted([RIVER], "en")

    def ask(question: str) -> str:
        return correct_question(question, {"en": 1}, lambda: nullcontext(words), vocabulary, *READ)[0]

    assert ask("Warsaw refunds") == "Warsaw refunds"
    assert len(asked) == 2
    assert ask("refunds Warsaw") == "refunds Warsaw"  # two that may be one are counted
    assert len(asked) == 3
    assert ask("Warsaw refunds") == "Warsaw refunds"
    assert len(asked) == 3
    assert ask("refunds along the vistla") == "refunds along the Vistula"

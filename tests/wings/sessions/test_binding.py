"""Unknowns bound by sentences that say the relation."""

from engram.core.text.question_triples import ANSWER, QuestionTriple
from engram.wings.sessions.core.binding import BindingSentence, bind, binds, describes

DIRECTOR = QuestionTriple("The Salt Road", "director", "?1", "the director of The Salt Road")


def build_sentence(text: str, *names: str, title: str | None = None) -> BindingSentence:
    return BindingSentence(7, text, names, title)


def test_the_name_after_the_relation_is_the_value() -> None:
    said = build_sentence(
        "The Salt Road was directed by Ada Brandt and stars Kurt Ahrens.",
        "The Salt Road",
        "Ada Brandt",
        "Kurt Ahrens",
    )
    found = bind(DIRECTOR, "The Salt Road", [said])
    assert found is not None
    assert (found.unknown, found.value, found.sentence_id) == ("?1", "Ada Brandt", 7)
    assert found.strength == 1 / 2  # "directed" and "by" lie before it


def test_a_sentence_of_a_passage_that_is_titled_so_is_about_it() -> None:
    said = build_sentence("It was directed by Ada Brandt.", "Ada Brandt", title="The Salt Road (film)")
    found = bind(DIRECTOR, "The Salt Road", [said])
    assert found is not None
    assert found.value == "Ada Brandt"


def test_similarity_alone_binds_no_value() -> None:
    for said in (
        build_sentence("The Salt Road stars Kurt Ahrens.", "The Salt Road", "Kurt Ahrens"),
        build_sentence("Another film was directed by Ada Brandt.", "Ada Brandt"),
        build_sentence("The Salt Road was directed in 1950.", "The Salt Road", "1950"),
    ):
        assert bind(DIRECTOR, "The Salt Road", [said]) is None


def test_value_already_bound_is_not_bound_again() -> None:
    said = build_sentence("The Salt Road was directed by Ada Brandt.", "The Salt Road", "Ada Brandt")
    assert bind(DIRECTOR, "The Salt Road", [said], ["ada  brandt"]) is None


def test_nearer_of_two_values_counts() -> None:
    near = BindingSentence(1, "The Salt Road, director Ada Brandt.", ["Ada Brandt"])
    far = BindingSentence(2, "The Salt Road was directed, as some say, by Kurt Ahrens.", ["Kurt Ahrens"])
    found = bind(DIRECTOR, "The Salt Road", [far, near])
    assert found is not None
    assert (found.value, found.sentence_id) == ("Ada Brandt", 1)


def test_passages_bind_as_their_best_sentence_does() -> None:
    said = build_sentence("The Salt Road was directed by Ada Brandt.", "The Salt Road", "Ada Brandt")
    other = build_sentence("Ada Brandt was born in Emden.", "Ada Brandt", "Emden")
    assert binds(DIRECTOR, "The Salt Road", [other, said]) == 1 / 2
    assert binds(DIRECTOR, "The Salt Road", [other]) == 0.0
    born = QuestionTriple("?1", "where was born", ANSWER, "where was ?1 born")
    assert binds(born, "Ada Brandt", [other]) == 1.0
    assert binds(born, "Ada Brandt", [said]) == 0.0
    assert binds(born, "Kurt Ahrens", [other, said]) == 0.0


def test_words_for_kinds_bind_only_to_relations_that_ask_for_them() -> None:
    song = build_sentence("Decade is an album by a Canadian singer.", "Decade", "Canadian")
    assert bind(QuestionTriple("Decade", "performer", "?1", "the performer of Decade"), "Decade", [song]) is None
    singer = build_sentence("Ada Brandt is a Canadian singer.", "Ada Brandt", "Canadian")
    found = bind(
        QuestionTriple("Ada Brandt", "nationality", "?1", "the nationality of Ada Brandt"), "Ada Brandt", [singer]
    )
    assert found is not None
    assert found.value == "Canadian"
    assert [
        describes(name, text)
        for name, text in (
            ("Canadian", "She is a Canadian-born singer."),
            ("Canadian", "The Canadian moved to a Canadian town."),
            ("Ada Brandt", "It has a song by Ada Brandt in it."),
            ("Ida", "A Canadian singer sang it."),
        )
    ] == [True, False, False, False]

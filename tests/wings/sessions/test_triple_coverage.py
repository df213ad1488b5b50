"""Coverage of a question's triples by a pool, and the query for what is missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.text.question_triples import QuestionTriple
from engram.wings.sessions.core.binding import BindingSentence
from engram.wings.sessions.core.triple_coverage import gap_query, triple_coverage

DIRECTOR = QuestionTriple("The Quiet Weir", "director", "?1", "the director of The Quiet Weir")
MOTHER = QuestionTriple("?1", "who is mother of", "?", "who is the mother of ?1")
FILM = BindingSentence(1, "The Quiet Weir is a film directed by Ana Bellotti.", ("The Quiet Weir", "Ana Bellotti"))
MAKER = BindingSentence(2, "The mother of Ana Bellotti is Ida Ferrero.", ("Ana Bellotti", "Ida Ferrero"))
BOUND_VALUES = {"?1": "Ana Bellotti"}


def test_names_unknowns_and_the_answer_are_parts() -> None:
    nothing = triple_coverage([DIRECTOR, MOTHER], {}, [])
    assert (nothing.share, nothing.missing) == (0.0, [DIRECTOR])  # of the mother no end is known yet
    named = triple_coverage([DIRECTOR, MOTHER], {}, [FILM])
    assert (named.share, named.missing) == (1 / 3, [DIRECTOR])
    bound = triple_coverage([DIRECTOR, MOTHER], BOUND_VALUES, [FILM])
    assert (bound.share, bound.missing) == (2 / 3, [MOTHER])
    whole = triple_coverage([DIRECTOR, MOTHER], BOUND_VALUES, [FILM, MAKER])
    assert (whole.share, whole.missing) == (1.0, [])


def test_a_bound_unknown_whose_name_no_sentence_has_is_missing() -> None:
    found = triple_coverage([DIRECTOR], BOUND_VALUES, [MAKER])
    assert (found.share, found.missing) == (1 / 2, [DIRECTOR])


def test_the_model_may_know_better_than_words() -> None:
    assert triple_coverage([DIRECTOR, MOTHER], BOUND_VALUES, [FILM], answered=True).share == 1.0


def test_a_question_without_triples_is_covered() -> None:
    assert triple_coverage([], {}, []).share == 1.0


def test_the_query_is_the_known_end_and_the_relation() -> None:
    assert gap_query(DIRECTOR, {}) == "The Quiet Weir director"
    assert gap_query(MOTHER, BOUND_VALUES) == "Ana Bellotti who is mother of"


@given(st.lists(st.sampled_from([FILM, MAKER]), max_size=4), st.sampled_from([{}, BOUND_VALUES]))
def test_a_larger_pool_never_covers_less(pool: list[BindingSentence], values: dict[str, str]) -> None:
    before = triple_coverage([DIRECTOR, MOTHER], values, pool).share
    for more in (FILM, MAKER):
        after = triple_coverage([DIRECTOR, MOTHER], values, [*pool, more]).share
        assert 0.0 <= before <= after <= 1.0
    assert triple_coverage([DIRECTOR, MOTHER], values, pool[::-1]).share == pytest.approx(before)

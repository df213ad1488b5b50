"""Which entity a mention is: by name, by alias, by similarity in its neighbourhood."""

from dataclasses import replace

import numpy as np
import pytest

from engram.wings.facts.core.alignment import (
    AlignedMention,
    CandidateEntity,
    Vector,
    agree,
    align,
    can_be_same_thing,
    differ,
    ends,
    find_kind,
)

EAST = np.array([1.0, 0.0], dtype=np.float32)
NEAR_EAST = np.array([0.8, 0.6], dtype=np.float32)
NORTH = np.array([0.0, 1.0], dtype=np.float32)


def node(number: int, *keys: str, kind: str | None = "person", near: tuple[int, ...] = ()) -> CandidateEntity:
    return CandidateEntity(number, keys, kind, EAST, frozenset(near))


def test_a_name_wins_over_an_alias_and_that_over_similarity() -> None:
    nodes = [node(3, "ada berg"), node(2, "a. berg", "ada lind"), node(1, "ada lind")]

    assert align("ada lind", "person", EAST, (), nodes) == AlignedMention(1, "name", 1.0)
    assert align("ada lind", "person", EAST, (), nodes[:2]) == AlignedMention(2, "alias", 1.0)


@pytest.mark.parametrize("vector", [NEAR_EAST, -NEAR_EAST])
def test_names_that_agree_join_whatever_the_encoder_says_of_them(vector: Vector) -> None:
    similarity = pytest.approx(float(vector @ EAST))

    assert align("ed berg", "person", vector, {1}, [node(1, "edward berg")]) == AlignedMention(
        1, "similarity", similarity
    )
    assert align("ed lind", "person", vector, {1}, [node(1, "edward berg")]) == AlignedMention(None, "new", 0.0)


def test_of_names_that_agree_the_most_similar_is_joined() -> None:
    nodes = [replace(node(1, "edgar berg"), vector=NORTH), node(2, "edward berg")]

    assert align("ed berg", "person", NEAR_EAST, {1, 2}, nodes).node == 2


@pytest.mark.parametrize(
    ("kind", "near", "joined"),
    [
        ("person", {1}, 1),
        ("person", {9}, 1),
        (None, {1}, 1),
        ("work", {1}, None),
        ("person", {2}, None),
        ("person", set(), None),
    ],
)
def test_similarity_joins_within_type_and_neighbourhood(
    kind: str | None, near: set[int], joined: int | None
) -> None:
    assert align("ed berg", kind, EAST, near, [node(1, "edward berg", near=(9,))]).node == joined


def test_lower_id_wins_among_equal_entities() -> None:
    nodes = [node(2, "edward berg"), node(1, "edgar berg")]

    assert align("ed berg", "person", EAST, {1, 2}, nodes).node == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ed solomon", "edward james solomon"),
        ("sir james berg", "james berg"),
        ("james berg jr.", "james berg"),
        ("j. berg", "james berg"),
        ("war and peace", "war and peace (film)"),
        ("henry iv", "henry 4th"),
        ("rutgers", "rutgers university"),
    ],
)
def test_names_that_may_be_one_thing_s(one: str, other: str) -> None:
    assert agree(one, other)
    assert agree(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("george ii", "george iii"),
        ("george ii", "george"),
        ("part 1", "part 2"),
        ("second symphony", "third symphony"),
        ("maria von trapp", "martina von trapp"),
        ("william john gunn", "john gunn"),
        ("anna berg", "anna lind"),
        ("lund", "oslo"),
        ("", "lund"),
    ],
)
def test_names_that_are_not(one: str, other: str) -> None:
    assert not agree(one, other)
    assert not agree(other, one)


@pytest.mark.parametrize(
    ("one", "other", "person"),
    [
        ("juha watt vainio", "juha vainio", True),
        ("sir francis hyde villiers", "francis hyde villiers", False),
        ("ed solomon", "edward james solomon", True),
    ],
)
def test_names_that_may_be_taken_for_one_things(one: str, other: str, person: bool) -> None:
    assert agree(one, other)
    assert can_be_same_thing(one, other, person=person)


@pytest.mark.parametrize(
    ("one", "other", "person"),
    [
        ("rayen district", "rayen rural district", False),
        ("mary cotton", "mary", True),
        ("daddy long legs (1931 film)", "daddy long legs (2005 film)", False),
        ("andrew jackson (visual effects)", "andrew jackson", True),
        ("n. t. rama rao jr.", "n. t. rama rao", True),
        ("charles warren", "c. denier warren", True),
        ("humphrey stafford, colbert", "humphrey colbert", True),
    ],
)
def test_names_that_agree_and_tell_nothing_of_that(one: str, other: str, person: bool) -> None:
    assert agree(one, other)
    assert not can_be_same_thing(one, other, person=person)


def test_kind_follows_from_predicates_and_conflicting_parents_differ() -> None:
    assert find_kind({"date of birth", "is a"}) == "person"
    assert find_kind({"is a"}) is None
    assert find_kind({"directed by", "spouse"}) is None
    assert differ({"father": {1}}, {"father": {2}})
    assert not differ({"father": {1}}, {"father": {1, 2}, "mother": {3}})


def test_first_and_last_words_of_names() -> None:
    assert ends("sir francis hyde villiers") == ("francis", "villiers")
    assert ends("green (album)") == ("green", "green")
    assert ends("1917") == ("1917", "1917")

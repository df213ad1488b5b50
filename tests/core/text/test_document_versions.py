from datetime import date

import pytest

from engram.core.text.document_versions import VersionedDocument, link_versions, read_claims

BODY = (
    "Employees book trips with the travel desk. The daily travel allowance is {} EUR. Receipts are kept two years."
)


@pytest.mark.parametrize(
    ("source", "title", "metadata", "text", "expected"),
    [
        pytest.param("a-2020.md", "A", {"date": "2021-05-01"}, "", (date(2021, 5, 1), "metadata"), id="metadata"),
        pytest.param("a.md", "A", {}, "Valid from: 1 March 2025", (date(2025, 3, 1), "line"), id="line"),
        pytest.param("a-2024-03.md", "A 2020", {}, "", (date(2024, 3, 1), "name"), id="name before title"),
        pytest.param("a.md", "Travel policy 2023", {}, "", (date(2023, 1, 1), "title"), id="title"),
        pytest.param("a.md", "Travel policy", {}, "The bridge fell in 1954.", (None, None), id="none"),
    ],
)
def test_the_date_of_a_document(
    source: str, title: str, metadata: dict[str, str], text: str, expected: tuple[date | None, str | None]
) -> None:
    claims = read_claims(source, title, metadata, text, "en")
    assert (claims.valid_from, claims.dated_by) == expected


def describe(number: int, title: str, year: int, text: str = "") -> VersionedDocument:
    source = f"{title}-{year}.md"
    return VersionedDocument(number, source, title, read_claims(source, title, {}, text or BODY.format(year), "en"))


def test_documents_of_one_title_follow_each_other() -> None:
    places = link_versions([describe(number, "Travel policy", 2021 + number) for number in (1, 2, 3)])
    assert {number: (place.replaced_by, place.chain, place.steps) for number, place in places.items()} == {
        1: (2, 3, 2),
        2: (3, 3, 1),
        3: (None, 3, 0),
    }


def test_minutes_do_not_replace_each_other() -> None:
    assert link_versions([describe(number, "Minutes of the board", 2021 + number) for number in (1, 2)]) == {}


def test_what_a_document_states_needs_no_common_title() -> None:
    new = describe(2, "Trips", 2025, "Replaces the Travel policy 2023.\n" + BODY.format(33))
    places = link_versions([describe(1, "Travel policy", 2023), new])
    assert (places[1].replaced_by, places[1].origin) == (2, "statement")


def test_a_link_that_would_close_a_circle_is_left_out() -> None:
    one = VersionedDocument(1, "a", "A", read_claims("a", "A", {}, "", "en"), is_fixed=True, replaced_by=2)
    two = VersionedDocument(2, "b", "B", read_claims("b", "B", {}, "", "en"), is_fixed=True, replaced_by=1)
    assert {number: place.replaced_by for number, place in link_versions([one, two]).items()} == {1: 2, 2: None}

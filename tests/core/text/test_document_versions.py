from datetime import date
from typing import Any

import pytest

from engram.core.text.document_versions import DocumentClaims, VersionedDocument, link_versions, read_claims

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


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param({"valid_until": "2025-06-30"}, date(2025, 6, 30), id="day"),
        pytest.param({"gültig bis": "2024"}, date(2024, 12, 31), id="last day of a year"),
        pytest.param({"expires": "March 2025"}, date(2025, 3, 31), id="last day of a month"),
        pytest.param({"expires": "never"}, None, id="no date"),
        pytest.param({}, None, id="none"),
    ],
)
def test_the_last_day_of_a_document(metadata: dict[str, str], expected: date | None) -> None:
    assert read_claims("a.md", "A", metadata, "", "en").valid_until == expected


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


PROSE = "Employees travel by train in second class and book hotels up to one hundred euros a night."
MARCH = date(2025, 3, 1)


def read(
    text: str = PROSE, source: str = "a.md", title: str = "A", language: str = "en", **metadata: Any
) -> DocumentClaims:
    return read_claims(source, title, metadata, text, language)


def named(number: int, title: str, text: str = PROSE, language: str = "en", **metadata: Any) -> VersionedDocument:
    source = f"{number}.md"
    return VersionedDocument(number, source, title, read(text, source, title, language, **metadata))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        pytest.param("Valid from: 1 March 2025", "en", id="English"),
        pytest.param("**Valid from:** 1 March 2025", "en", id="bold"),
        pytest.param("- Valid from: 1 March 2025", "en", id="item"),
        pytest.param("Gültig ab: 1. März 2025", "de", id="German"),
        pytest.param("Stand: 01.03.2025", "de", id="German number"),
        pytest.param("En vigueur depuis le 1er mars 2025", "fr", id="French"),
        pytest.param("Vigente desde el 1 de marzo de 2025", "es", id="Spanish"),
    ],
)
def test_a_line_dates_the_document(text: str, language: str) -> None:
    claims = read(f"# Travel\n\n{text}\n", language=language)
    assert (claims.valid_from, claims.dated_by) == (MARCH, "line")


@pytest.mark.parametrize(
    ("source", "title", "expected"),
    [
        pytest.param("2024/policy.md", "A", date(2024, 1, 1), id="path"),
        pytest.param("2020/policy-2024.md", "A", date(2024, 1, 1), id="name before path"),
        pytest.param("2024/policy.md", "A 2020", date(2024, 1, 1), id="path before title"),
        pytest.param("policy_20240506.pdf", "A", date(2024, 5, 6), id="digits"),
        pytest.param("policy-120241.md", "A", None, id="number"),
        pytest.param("policy-1-march-2024.md", "A", date(2024, 3, 1), id="spelled month"),
        pytest.param("2024/05/policy.md", "A", date(2024, 5, 1), id="month folder"),
        pytest.param("policy-2024-02-31.md", "A", date(2024, 2, 1), id="impossible day"),
    ],
)
def test_the_source_dates_the_document(source: str, title: str, expected: date | None) -> None:
    assert read(source=source, title=title).valid_from == expected


def test_the_header_dates_a_mail_before_its_lines() -> None:
    claims = read("Valid from: 1 March 2025", format="email", date="2024-05-06T10:00:00+00:00")
    assert (claims.valid_from, claims.dated_by) == (date(2024, 5, 6), "mail")


@pytest.mark.parametrize(
    ("text", "metadata", "expected"),
    [
        pytest.param("Status: draft", {}, "draft", id="draft"),
        pytest.param("**Status:** Draft", {}, "draft", id="bold"),
        pytest.param("Status: superseded by ADR 7", {}, "retired", id="superseded"),
        pytest.param("Statut : brouillon", {}, "draft", id="French"),
        pytest.param("Estado: sustituida", {}, "retired", id="Spanish"),
        pytest.param("Status: accepted", {}, None, id="accepted"),
        pytest.param("Status: not superseded", {}, None, id="denied"),
        pytest.param("Status: nicht ersetzt", {}, None, id="denied in German"),
        pytest.param("Status: no longer valid", {}, "retired", id="no longer"),
        pytest.param("Status: nicht mehr gültig", {}, "retired", id="no longer in German"),
        pytest.param("Status: draft", {"status": "active"}, None, id="metadata first"),
        pytest.param("The draft was superseded.", {}, None, id="prose"),
    ],
)
def test_the_status_of_a_document(text: str, metadata: dict[str, str], expected: str | None) -> None:
    assert read(text, **metadata).status == expected


@pytest.mark.parametrize(
    ("text", "language"),
    [
        pytest.param("This policy replaces the expense note.", "en", id="English"),
        pytest.param("Diese Ordnung ersetzt die expense note.", "de", id="German"),
        pytest.param("Cette politique remplace la expense note.", "fr", id="French"),
        pytest.param("Ce document remplace la expense note.", "fr", id="French masculine"),
        pytest.param("Cet accord remplace la expense note.", "fr", id="French before a vowel"),
        pytest.param("Esta política sustituye a la expense note.", "es", id="Spanish"),
    ],
)
def test_a_document_states_what_it_replaces(text: str, language: str) -> None:
    places = link_versions([named(1, "Expense note"), named(2, "Travel", text, language)])
    assert (places[1].replaced_by, places[1].origin) == (2, "statement")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        pytest.param("Superseded by travel rules.", "en", id="English"),
        pytest.param("Ersetzt durch die travel rules.", "de", id="German"),
        pytest.param("Diese Ordnung wurde durch die travel rules ersetzt.", "de", id="German verb last"),
        pytest.param("Remplacée par les travel rules.", "fr", id="French"),
        pytest.param("Sustituida por las travel rules.", "es", id="Spanish"),
    ],
)
def test_a_document_states_what_replaces_it(text: str, language: str) -> None:
    places = link_versions([named(1, "Expense note", text, language), named(2, "Travel rules")])
    assert (places[1].replaced_by, places[1].origin) == (2, "statement")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("As of 2019 the company had ten staff.", id="as of"),
        pytest.param("The stand of 2019 was sold.", id="stand"),
    ],
)
def test_a_sentence_about_a_year_dates_nothing(text: str) -> None:
    assert read(text).valid_from is None


def test_a_number_names_the_document_of_a_folder() -> None:
    earlier = VersionedDocument(1, "adr/0003-queue.md", "Use a queue", read())
    other = VersionedDocument(3, "adr/0004-cache.md", "Use a cache", read())
    later = VersionedDocument(2, "adr/0007-log.md", "Use a log", read("Supersedes ADR-3\n"))
    assert link_versions([earlier, other, later])[1].replaced_by == 2


def test_mails_of_one_title_do_not_replace_each_other() -> None:
    mails = [named(at, "Travel policy", format="email", date=f"202{at}-01-01") for at in (1, 2)]
    assert link_versions(mails) == {}


def test_other_texts_of_one_title_do_not_replace_each_other() -> None:
    assert link_versions([named(1, "Travel 2023"), named(2, "Travel 2024", "Quite another subject")]) == {}


def test_three_statements_in_a_circle_leave_the_last_out() -> None:
    names = ("Alpha", "Beta", "Gamma")
    ring = [named(at + 1, f"{names[at]} rules", f"Superseded by {names[(at + 1) % 3]} rules.") for at in range(3)]
    assert {one: place.replaced_by for one, place in link_versions(ring).items()} == {1: 2, 2: 3, 3: None}

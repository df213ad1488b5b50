"""Messages: parts in order, attachments as documents, quotations apart, false labels."""

from email.message import EmailMessage, MIMEPart
from typing import Any

import pytest

from engram.wings.importing.conversion.documents import Conversion
from engram.wings.importing.conversion.formats import convert
from engram.wings.importing.conversion.quotations import QUOTATION_DEPTH
from tests.wings.importing.office_files import LOCK_FILE, paragraph, word_file, workbook


def plain(text: str) -> Conversion:
    head = "From: Ann <ann@example.org>\nSubject: S\nContent-Type: text/plain; charset=utf-8\n\n"
    return convert("m.eml", (head + text).encode())


def page(markup: str) -> Conversion:
    head = "From: Ann <ann@example.org>\nSubject: S\nContent-Type: text/html; charset=utf-8\n\n"
    return convert("m.eml", (head + markup).encode())


def told(made: Conversion) -> list[tuple[bool, list[str], list[str]]]:
    """(whether it is quoted, its headings, its sentences below them) of each passage with more than a header."""
    shown = []
    for passage in made.passages:
        metadata: Any = passage.metadata
        headings = list(metadata.get("heading", []))
        sentences = [s for s in passage.sentences if s not in (*headings, passage.title)]
        if sentences:
            shown.append((bool(passage.metadata.get("quoted")), headings, sentences))
    return shown


def mixed(*parts: str) -> bytes:
    head = "From: a@example.org\nSubject: S\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n"
    return (head + "".join(f"--B\n{part}\n" for part in parts) + "--B--\n").encode()


PICTURE = 'Content-Type: image/png; name="p.png"\nContent-Disposition: inline\n\niVBO'
HTML = "Content-Type: text/html; charset=utf-8\n\n"
TEXT = "Content-Type: text/plain; charset=utf-8\n\n"


def test_texts_around_pictures_are_read_in_order() -> None:
    made = convert("m.eml", mixed(f"{TEXT}One.", PICTURE, f"{TEXT}Two.", f"{HTML}<p>Three.</p>"))
    assert made.passages[0].sentences == ("One.", "Two.", "Three.")
    assert made.notes == ("m.eml: attachments were not read: p.png",)


def test_the_best_alternative_is_read_once() -> None:
    message = EmailMessage()
    message["From"] = "a@example.org"
    message.set_content("The plain text.")
    message.add_alternative("<p>The page.</p>", subtype="html")
    message.add_attachment("The list.", filename="list.txt")
    made = convert("m.eml", message.as_bytes())
    assert [passage.sentences[-1] for passage in made.passages] == ["The plain text.", "The list."]
    message = EmailMessage()
    message["From"] = "a@example.org"
    message.set_content(" \n")
    message.add_alternative("<p>The page.</p>", subtype="html")
    assert convert("m.eml", message.as_bytes()).passages[0].sentences[-1] == "The page."


def test_who_wrote_when_to_whom_is_metadata_and_ids_are_text() -> None:
    message = EmailMessage()
    message["From"] = '"Gray, Ann" <ann@example.org>'
    message["To"] = "Bob <bob@example.org>, cy@example.org"
    message["Date"] = "Tue, 5 Mar 2024 23:30:00 -0800"
    message["Message-ID"], message["In-Reply-To"] = "<7.ab@example.org>", "<6.aa@example.org>"
    message.set_content("Yes.")
    (made,) = convert("m.eml", message.as_bytes()).passages
    assert made.metadata == {
        "source": "m.eml",
        "format": "email",
        "from": "Gray, Ann <ann@example.org>",
        "to": ["Bob <bob@example.org>", "cy@example.org"],
        "date": "2024-03-05T23:30:00-08:00",
        "message_id": "<7.ab@example.org>",
        "in_reply_to": "<6.aa@example.org>",
    }
    assert "Message-ID: <7.ab@example.org>" in made.text
    assert made.sentences == ("Yes.",)


def test_a_message_that_is_all_header_is_its_subject() -> None:
    receivers = ", ".join(f"r{number}@example.org" for number in range(100))
    head = f"From: ann@example.org\nTo: {receivers}\nSubject: Lunch is off\n"
    made = convert("m.eml", f"{head}\n".encode())
    assert {sentence for passage in made.passages for sentence in passage.sentences} == {"Lunch is off"}
    assert len(made.passages) > 1
    assert "r99@example.org" in made.passages[-1].text


def test_attachments_are_documents_of_the_message() -> None:
    message, inner = EmailMessage(), EmailMessage()
    message["From"], message["Subject"] = "ann@example.org", "Prices"
    message.set_content("See the lists.")
    message.add_attachment("The valve costs 40 euros.", filename="list.txt")
    message.add_attachment("Another list.", filename="list.txt")
    letter = word_file(paragraph("The pump costs 90 euros."))
    message.add_attachment(letter, "application", "octet-stream", filename="a b#1.docx")
    prices = workbook(lambda sheet: [sheet.append(row) for row in (["part", "price"], ["seal", 3])])
    message.add_attachment(prices, "application", "octet-stream", filename="p.xlsx")
    message.add_attachment(b"part,price\nhose,5\n", "text", "csv")
    message.add_attachment(b"not a zip", "application", "octet-stream", filename="broken.docx")
    message.add_attachment(b"\x00", "application", "zip", filename="plans.zip")
    message.add_attachment(LOCK_FILE, "application", "octet-stream", filename="~$a b.docx")
    inner["From"], inner["Subject"] = "cy@example.org", "Old"
    inner.set_content("An older message.")
    inner.add_attachment("Deep inside.", filename="deep.txt")
    message.add_attachment(inner.as_bytes(), "application", "octet-stream", filename="old.eml")
    made = convert("m.eml", message.as_bytes())
    assert [(one.id, one.metadata.get("attachment"), one.sentences[-1]) for one in made.passages] == [
        ("m.eml#1", None, "See the lists."),
        ("m.eml#list.txt!1", "list.txt", "The valve costs 40 euros."),
        ("m.eml#list (2).txt!1", "list (2).txt", "Another list."),
        ("m.eml#a b%231.docx!1", "a b%231.docx", "The pump costs 90 euros."),
        ("m.eml#p.xlsx!Sheet!2", "p.xlsx", "part: seal | price: 3"),
        ("m.eml#text csv.csv!1", "text csv.csv", "part: hose | price: 5"),
        ("m.eml#old.eml!1", "old.eml", "An older message."),
        ("m.eml#old.eml!deep.txt!1", "old.eml/deep.txt", "Deep inside."),
    ]
    assert {one.metadata["source"] for one in made.passages} == {"m.eml"}
    assert [one.metadata["from"] for one in made.passages] == ["ann@example.org"] * 6 + ["cy@example.org"] * 2
    assert made.notes == (
        "m.eml: attachments were not read: plans.zip, ~$a b.docx",
        "m.eml: attachment not read: broken.docx is not what its name says: it is no zip file.",
    )


REPLY = """Yes, raise it.

On Mon, 4 March Bob wrote:
> The limit is 5 bar.
> >5 bar is unsafe.
>> Keep it at 3.

Regards
"""


def test_what_a_reply_quotes_stands_below_the_line_that_introduces_it() -> None:
    wrote = "On Mon, 4 March Bob wrote:"
    assert told(plain(REPLY)) == [
        (False, [], ["Yes, raise it."]),
        (True, [wrote], ["The limit is 5 bar. >5 bar is unsafe."]),
        (True, [wrote, "Quoted message"], ["Keep it at 3."]),
        (False, [], ["Regards"]),
    ]


OUTLOOK = """See below.

-----Original Message-----
From: Bob <bob@example.org>
Sent: Monday
To: Ann

The limit is 5.
> Old."""
GERMAN = """Siehe unten.

Von: Bob <bob@example.org>
Gesendet: Montag
An: Ann

Die Grenze ist 5."""
QUOTED = ["Quoted message"]
ORIGINAL = ["Original Message"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (">5 bar is unsafe.", [(False, [], [">5 bar is unsafe."])]),
        ("Never go\n>= 5 bar.", [(False, [], ["Never go >= 5 bar."])]),
        (">is it 5?\n>5 it is.\nYes.", [(True, QUOTED, ["is it 5?", "5 it is."]), (False, [], ["Yes."])]),
        (
            "> One?\nYes.\n> Two?\nNo.",
            [(True, QUOTED, ["One?"]), (False, [], ["Yes."]), (True, QUOTED, ["Two?"]), (False, [], ["No."])],
        ),
        (
            OUTLOOK,
            [
                (False, [], ["See below."]),
                (True, ORIGINAL, ["The limit is 5."]),
                (True, ORIGINAL + QUOTED, ["Old."]),
            ],
        ),
        (
            GERMAN,
            [
                (False, [], ["Siehe unten."]),
                (True, QUOTED, ["Die Grenze ist 5."]),
            ],
        ),
        ("Phone: 1\nFax: 2\nRoom: 3", [(False, [], ["Phone: 1 Fax: 2 Room: 3"])]),
    ],
)
def test_new_text_is_told_from_quoted_text(text: str, expected: list[object]) -> None:
    assert told(plain(text)) == expected
    if "\n>" not in text:  # the same as a page
        parts = text.replace("<", "&lt;").replace("\n", "<br>").split("<br><br>")
        assert told(page("".join(f"<p>{part}</p>" for part in parts))) == expected


@pytest.mark.parametrize(
    "quote",
    [
        "<p>Bob wrote:</p><blockquote type=cite><p>The limit is 5.</p></blockquote>",
        "<div class=gmail_quote><div>Bob wrote:<br></div><blockquote>The limit is 5.</blockquote></div>",
        "<div>Bob wrote:</div><div class=yahoo_quoted>The limit is 5.</div>",
    ],
)
def test_pages_quote_too(quote: str) -> None:
    expected = [(False, [], ["Raise it."]), (True, ["Bob wrote:"], ["The limit is 5."]), (False, [], ["Ann"])]
    assert told(page(f"<p>Raise it.</p>{quote}<p>Ann</p>")) == expected


@pytest.mark.parametrize("header", ["From: Bob", "From: Bob &lt;b@example.org><br>Sent: Monday<br>To: Ann"])
def test_what_stands_below_the_header_of_outlook_is_quoted(header: str) -> None:
    made = page(f"<p>Raise it.</p><hr><div id=divRplyFwdMsg>{header}</div><div>The limit is 5.</div>")
    assert told(made) == [(False, [], ["Raise it."]), (True, ["Quoted message"], ["The limit is 5."])]
    assert "\nFrom: Bob" in made.passages[-1].text


def test_a_body_whose_head_is_open_is_read() -> None:
    made = page("<html><head><style>p{}</style><title>x</title><body><p>The text.")
    assert told(made) == [(False, [], ["The text."])]


def test_headers_of_raw_bytes_and_false_labels_are_read() -> None:
    head = "From: Jörg <j@example.org>\nSubject: Größe – ".encode("cp1252")
    subject = b"=?iso-8859-1?Q?the_customer=92s_=80?=\n"
    made = convert("m.eml", head + subject + b"Content-Type: text/plain\n\nText.\n").passages[0]
    assert made.title == "Größe – the customer’s €"
    assert made.metadata["from"] == "Jörg <j@example.org>"


@pytest.mark.parametrize(
    ("subject", "title"),
    [
        ("C:\\users é =?utf-8?q?=E2=80=A6?= end", "C:\\users é … end"),
        ("C:\\users =?utf-8?q?=E2=80=A6?= \\x", "C:\\users … \\x"),
        ("é =?utf-8?b?w?= end", "é =?utf-8?b?w?= end"),
        ("é =?utf-8?b?AAAA?= end", "é =?utf-8?b?AAAA?= end"),
        ("é =?base64?q?a?= =?utf-8?q?who?_me?=", "é awho? me"),
        ("é =?utf-8?b?w6k=?= =?utf-8?b?4oI=?=\n =?utf-8?b?rA==?=", "é é€"),
    ],
)
def test_a_header_that_is_encoded_in_part_loses_nothing(subject: str, title: str) -> None:
    made = convert("m.eml", f"From: a@example.org\nSubject: {subject}\n\nText.\n".encode())
    assert (made.passages[0].title, made.passages[0].sentences[-1]) == (title, "Text.")


LIST = "Content-Type: text/csv\nContent-Disposition: inline; filename=list.csv\n\npart,price\nhose,5"
LOGO = "Content-Type: image/png; name=l.png\nContent-ID: <l@x>\nContent-Disposition: inline\n\niVBO"


def test_files_inside_an_alternative_that_is_not_read_are_documents() -> None:
    inner = mixed(f"{HTML}<p>See the list.</p>", LIST, PICTURE, LOGO).decode().partition("Subject: S\n")[2]
    outer = mixed(f"{TEXT}See the list.", inner.replace("=B", "=C").replace("--B", "--C")).decode()
    made = convert("m.eml", outer.replace("multipart/mixed", "multipart/alternative", 1).encode())
    assert [passage.sentences[-1] for passage in made.passages] == ["See the list.", "part: hose | price: 5"]
    assert made.notes == ("m.eml: attachments were not read: p.png",)


ORIGINALS = "".join(f"\n-----Original Message-----\nFrom: b{n}@example.org\n\nText {n}.\n" for n in range(1500))


def test_many_earlier_messages_are_each_quoted_in_order() -> None:
    made = told(plain(f"New.{ORIGINALS}"))
    assert made[0] == (False, [], ["New."])
    assert all(quoted for quoted, _, _ in made[1:])
    assert [len(headings) for _, headings, _ in made[1:4]] == [1, 2, 3]
    assert max(len(headings) for _, headings, _ in made) == QUOTATION_DEPTH
    texts = [sentence for _, _, sentences in made for sentence in sentences if sentence.startswith("Text")]
    assert list(dict.fromkeys(texts)) == [f"Text {n}." for n in range(1500)]


@pytest.mark.parametrize("line", ["--- Agenda ---", "----- Original Message -----", "__________"])
def test_a_line_of_dashes_above_no_header_begins_no_earlier_message(line: str) -> None:
    assert not any(quoted for quoted, _, _ in told(plain(f"Hello.\n\n{line}\n\nWe start at nine.\nBye.")))
    assert not any(quoted for quoted, _, _ in told(plain(f"Hello.\n\n{line}")))


def test_parts_inside_each_other_are_bounded() -> None:
    part = MIMEPart()
    part.set_content("x")
    for _ in range(40):
        outer = MIMEPart()
        outer["Content-Type"] = "multipart/mixed"
        outer.set_payload([part])
        part = outer
    data = b"From: a@example.org\n" + part.as_bytes()
    with pytest.raises(Exception, match="nests more than"):
        convert("m.eml", data)


def test_broken_multiparts_and_reports_are_text() -> None:
    broken = b"From: a@example.org\nContent-Type: multipart/mixed; boundary=B\n\nThe text lost its boundaries.\n"
    assert convert("m.eml", broken).passages[0].sentences[-1] == "The text lost its boundaries."
    report = "Content-Type: message/delivery-status\n\nFinal-Recipient: rfc822;x@example.org\nAction: failed\n"
    calendar = "Content-Type: text/calendar\n\nSUMMARY:Meeting"
    made = convert("m.eml", mixed(f"{TEXT}Not delivered.", report, calendar))
    shown = " ".join(made.passages[0].sentences)
    for words in ("Not delivered.", "Final-Recipient: rfc822;x@example.org", "Action: failed", "SUMMARY:Meeting"):
        assert words in shown


CALENDAR = (
    "Content-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nTZID:Europe/Oslo\n"
    "END:VTIMEZONE\nBEGIN:VEVENT\nSUMMARY:Kick-off\\, room 12\nDTSTART;TZID=Europe/Oslo:20240307T090000\n"
    "DESCRIPTION:Dial in by\n  030 1234.\nATTENDEE;CN=Ana Lima:mailto:ana@example.org\n"
    "BEGIN:VALARM\nDESCRIPTION:Alarm\nEND:VALARM\nEND:VEVENT\nEND:VCALENDAR\n"
)


def test_what_only_the_html_and_the_calendar_say_is_kept() -> None:
    html = (
        "Content-Type: text/html\n\n<p>We meet in <b>room 12</b>.</p><p>The parking code is 4711.</p>"
        "<blockquote>An older offer of 99 euros.</blockquote>"
    )
    data = mixed("Content-Type: text/plain\n\nWe meet in room 12.", html, CALENDAR).replace(
        b"multipart/mixed", b"multipart/alternative"
    )
    made = convert("m.eml", data)
    assert [sentence for one in made.passages for sentence in one.sentences][-6:] == [
        "We meet in room 12.",
        "The parking code is 4711.",
        "Summary: Kick-off, room 12",
        "Start: 2024-03-07T09:00:00 (Europe/Oslo)",
        "Description: Dial in by 030 1234.",
        "Attendee: Ana Lima <ana@example.org>",
    ]
    assert made.notes == ("m.eml: added 1 piece that only the HTML of the message has",)


def test_a_message_inside_another_has_its_own_sender() -> None:
    inner = (
        "Content-Type: message/rfc822\n\nFrom: ana@example.org\nSubject: Old\nMIME-Version: 1.0\n"
        "Content-Type: multipart/mixed; boundary=in\n\n--in\nContent-Type: text/plain\n\nThe code is 2468.\n"
        "--in\nContent-Disposition: attachment; filename=a.txt\n\nAttached.\n--in--"
    )
    made = convert(
        "m.eml", mixed("Content-Type: text/plain\n\nSee below.", inner, "Content-Type: text/plain\n\nBye.")
    )
    senders = {one.sentences[-1]: one.metadata.get("from") for one in made.passages}
    outer = senders["See below."]
    assert outer != "ana@example.org"
    assert senders == {
        "See below.": outer,
        "The code is 2468.": "ana@example.org",
        "Bye.": outer,
        "Attached.": "ana@example.org",
    }

"""Reader of e-mail messages, by the standard library."""

import mimetypes
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from email import policy
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.utils import getaddresses, parsedate_to_datetime
from pathlib import PurePosixPath

from engram.core.text.words import count_noun
from engram.wings.importing.conversion.calendars import read_entries
from engram.wings.importing.conversion.documents import Attachment, Document, UnreadableError
from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.inline_text import WINDOWS
from engram.wings.importing.conversion.outline import Outline, flatten_text
from engram.wings.importing.conversion.pages import add_html
from engram.wings.importing.conversion.quotations import add_plain

_SHOWN_HEADERS = ("From", "To", "Cc", "Date", "Message-ID", "In-Reply-To")
_ADDRESSES = ("from", "to", "cc")
_FILES = ("text/csv", "text/tab-separated-values", "text/markdown")
"""Texts that another reader reads, also where they have no name."""
_CALENDARS = ("text/calendar", "application/ics")
_PLAIN = 3
"""Rank of an alternative with plain text."""
_WORD = re.compile(r"\w+")
_NAME_CHARACTERS = 50
_ENCODED_WORD = r"=\?[^?\s]+\?[bq]\?.*?\?="
_ENCODED_WORDS = re.compile(rf"{_ENCODED_WORD}(?:\s*{_ENCODED_WORD})*", re.IGNORECASE)
"""Encoded words of a header with nothing but spaces between them, which may share a character."""
MESSAGE_DEPTH = 5
"""Messages inside each other."""
PART_DEPTH = 20
"""Parts inside each other, of one message."""
MESSAGE_PARTS = 200


def eml(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """A message: the subject is its title, who wrote to whom and when is its first line, then its texts in order.

    Of alternatives the plain text is read, or the HTML where there is none. What only the HTML says is added, and
    so are the entries of calendars. What the message quotes is a section of its own. A forwarded message is a
    section below its subject, with metadata of its own. Attachments are documents of the message. Sender, receivers
    and date are metadata.

    Raises:
        UnreadableError: it has no headers of a message, too many parts, or no text.
    """
    message = BytesParser(EmailMessage, policy=policy.default).parsebytes(data)
    if not any(name in message for name in ("From", "To", "Subject", "Date", "Received", "Message-ID")):
        raise UnreadableError(f"{source} has no headers of an e-mail message.")
    return read_message(source, message)


def read_message(source: str, message: EmailMessage) -> Document:
    """Read a message, see ``eml``.

    Raises:
        UnreadableError: it has too many parts, or no text.
    """
    reader = _MailConverter(source, Outline(_header(message, "Subject")))
    reader.add_message(message, 0)
    return reader.document(_metadata(message))


class _MailConverter:
    """Reads a message and those in it into one outline."""

    def __init__(self, source: str, outline: Outline) -> None:
        self._source = source
        self._outline = outline
        self._notes: dict[str, None] = {}
        self._attachments: dict[str, Attachment] = {}
        self._parts = 0
        self._senders: list[dict[str, object]] = []  # metadata of the messages that are being read, outermost first
        self._entries: list[list[str]] = []

    def document(self, metadata: dict[str, object]) -> Document:
        """The message with everything that was read.

        Raises:
            UnreadableError: it has no text.
        """
        read = self._outline.document(self._source, "email", tuple(self._notes))
        return replace(read, metadata=metadata, attachments=tuple(self._attachments.values()))

    def add_message(self, message: EmailMessage, depth: int) -> None:
        """Add a message's header and its parts.

        Raises:
            UnreadableError: it has too many parts, or too many inside each other.
        """
        if depth > MESSAGE_DEPTH:
            raise UnreadableError(f"{self._source} nests more than {MESSAGE_DEPTH} messages in each other.")
        self._senders.append(_metadata(message))
        self._outline.metadata = self._senders[-1] if depth else None
        header_lines = [f"{name}: {value}" for name in _SHOWN_HEADERS if (value := _header(message, name))]
        self._outline.add("; ".join(header_lines), whole=True, is_header=True)
        for part, is_beside in _parts(message, 0):
            self._parts += 1
            if self._parts > MESSAGE_PARTS:
                raise UnreadableError(f"{self._source} has more than {MESSAGE_PARTS} parts.")
            if is_beside:
                self._add_beside(part)
            else:
                self._add_part(part, depth)
        self._senders.pop()
        self._outline.metadata = self._senders[-1] if depth > 1 else None

    def _add_beside(self, part: MIMEPart) -> None:
        """Add what the HTML of a message says and its plain text does not."""
        text, _, _ = decode_text(self._source, _payload(part), part.get_content_charset())
        outline = Outline()
        add_html(self._source, text, outline)
        known = {word for block in self._outline.blocks for word in _list_words(block.text)}
        added = 0
        for block in outline.blocks:
            words = _list_words(block.text)
            fresh = [word for word in words if word not in known]
            if not block.quoted and (2 * len(fresh) > len(words) or any(map(str.isdecimal, fresh))):
                self._outline.add(block.text, whole=block.whole)
                added += 1
        if added:
            pieces = count_noun(added, "piece")
            self._notes[f"{self._source}: added {pieces} that only the HTML of the message has"] = None

    def _add_calendar(self, part: MIMEPart) -> bool:
        """Add the entries of a calendar, each once; whether there are any."""
        text, _, notes = decode_text(self._source, _payload(part), part.get_content_charset())
        entries = list(read_entries(text))
        self._notes |= dict.fromkeys(notes)
        for lines in entries:
            if lines not in self._entries:
                self._entries.append(lines)
                for line in lines:
                    self._outline.add(line, whole=True)
        return bool(entries)

    def _add_part(self, part: MIMEPart, depth: int) -> None:
        kind = part.get_content_type()
        inner = part.get_payload(0) if kind == "message/rfc822" and part.is_multipart() else None
        if isinstance(inner, EmailMessage):
            level = min(depth + 2, 6)
            self._outline.open_heading(level, _header(inner, "Subject") or "Forwarded message")
            self.add_message(inner, depth + 1)
            self._outline.close(level)
        elif _is_calendar(part) and self._add_calendar(part):
            pass
        elif _is_text(part):
            text, _, notes = decode_text(self._source, _payload(part), part.get_content_charset())
            self._notes |= dict.fromkeys(notes)
            if kind == "text/html":
                self._notes |= dict.fromkeys(add_html(self._source, text, self._outline))
            else:
                add_plain(text, self._outline)
        else:
            name = self._attachment_name(part)
            self._attachments[name] = Attachment(name, _payload(part), self._senders[-1])

    def _attachment_name(self, part: MIMEPart) -> str:
        """The attachment's own name, told from others of that name, or one by its kind."""
        try:
            filename = _readable(part.get_filename() or "")
        except (HeaderParseError, ValueError):
            filename = ""
        kind = part.get_content_type()
        ending = mimetypes.guess_extension(kind) or ""
        path = PurePosixPath(
            flatten_text(filename).replace("\\", "/").replace("#", "%23") or kind.replace("/", " ") + ending
        )
        if not path.suffix:
            path = path.with_name(path.name + ending)
        stem, suffix = path.name[: len(path.name) - len(path.suffix)][:_NAME_CHARACTERS], path.suffix[:10]
        name, number = f"{stem}{suffix}", 1
        while name in self._attachments:
            number += 1
            name = f"{stem} ({number}){suffix}"
        return name


def _parts(part: MIMEPart, depth: int) -> Iterator[tuple[MIMEPart, bool]]:
    """Yield the parts to read, in order, and whether one is HTML beside a plain text.

    Of alternatives the best one is read, the HTML beside it, and the files and calendars that the others hold.

    Raises:
        UnreadableError: too many are inside each other.
    """
    if not part.is_multipart() or part.get_content_maintype() == "message":
        yield part, False
        return
    if depth > PART_DEPTH:
        raise UnreadableError(f"A message nests more than {PART_DEPTH} parts in each other.")
    inner = [one for one in part.iter_parts() if isinstance(one, MIMEPart)]
    if part.get_content_type() == "multipart/alternative":
        read = [list(_parts(one, depth + 1)) for one in inner]
        best = max(read, key=_rank, default=[])
        yield from best
        for one in (one for parts in read if parts is not best for one, _ in parts):
            if _is_file(one) or _is_calendar(one):
                yield one, False
            elif _is_text(one) and one.get_content_type() == "text/html" and _rank(best) == _PLAIN:
                yield one, True
        return
    for one in inner:
        yield from _parts(one, depth + 1)


def _rank(parts: list[tuple[MIMEPart, bool]]) -> int:
    """Rank how well an alternative can be read: plain text, then HTML, then other parts; blank texts last."""
    kinds = [part.get_content_type() for part, _ in parts if _is_text(part) and _payload(part).strip()]
    return _PLAIN if "text/plain" in kinds else 2 if "text/html" in kinds else 1 if kinds else 0


def _is_text(part: MIMEPart) -> bool:
    """Whether a part is text of the message, and no file: also parts that lost their boundaries, and reports."""
    kind = part.get_content_type()
    readable = part.get_content_maintype() in ("text", "multipart") or kind == "message/delivery-status"
    return readable and kind not in _FILES and not part.is_attachment() and part.get_filename() is None


def _is_calendar(part: MIMEPart) -> bool:
    return part.get_content_type() in _CALENDARS


def _list_words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _is_file(part: MIMEPart) -> bool:
    """Whether a part is a file of its own, and no picture that a page shows."""
    inline = part.get_content_maintype() == "image" and "Content-ID" in part
    return part.is_attachment() or (part.get_filename() is not None and not inline)


def _metadata(message: EmailMessage) -> dict[str, object]:
    """Sender, receivers, date (ISO 8601) and ids, as far as the message names them."""
    found: dict[str, object] = {}
    for name in _ADDRESSES:
        people = [f"{who} <{at}>" if who else at for who, at in getaddresses([_header(message, name)]) if who or at]
        if people:
            found[name] = people[0] if name == "from" else people
    if moment := _moment(_header(message, "Date")):
        found["date"] = moment.isoformat()
    for name, header in (("message_id", "Message-ID"), ("in_reply_to", "In-Reply-To")):
        if value := _header(message, header):
            found[name] = value
    return found


def _moment(date: str) -> datetime | None:
    try:
        return parsedate_to_datetime(date)
    except (ValueError, TypeError):
        return None


def _header(message: EmailMessage, name: str) -> str:
    """A header's text. Raw bytes are read like the text of a file."""
    raw = next((str(value) for header, value in message.raw_items() if header.lower() == name.lower()), "")
    try:
        return _readable(str(message[name] or "") if raw.isascii() else raw)
    except (HeaderParseError, ValueError, IndexError):  # the standard library stumbles over malformed headers
        return _readable(raw)


def _readable(text: str) -> str:
    """The text in one line, with raw bytes and encoded words decoded, and controls as Windows has them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = decode_text("A header", text.encode("utf-8", "surrogateescape")).text
    return flatten_text(_ENCODED_WORDS.sub(_decode_words, text).translate(WINDOWS))


def _decode_words(words: re.Match[str]) -> str:
    """Encoded words in their charsets; as they are where they cannot be decoded."""
    try:
        return "".join(
            part if isinstance(part, str) else decode_text("A header", part, charset).text
            for part, charset in decode_header(words[0])
        )
    except (HeaderParseError, ValueError, UnreadableError):
        return words[0]


def _payload(part: MIMEPart) -> bytes:
    if part.get_content_type() == "message/delivery-status":  # a list of headers for each receiver
        return b"\n".join(inner.as_bytes() for inner in part.iter_parts())
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""

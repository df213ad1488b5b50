"""Reader of e-mail messages, by the standard library."""

from collections.abc import Iterator
from email import policy
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from pathlib import PurePosixPath

from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.outline import Outline, flatten_text
from engram.wings.importing.conversion.pages import add_html
from engram.wings.importing.conversion.prose import paragraphs

_SHOWN_HEADERS = ("From", "To", "Cc", "Date")
DEPTH = 5
"""Messages and parts inside each other."""
PARTS = 200


def eml(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """A message: the subject is its title, who wrote to whom and when is its first line, then its text.

    The plain text is read, or the HTML where there is none. A forwarded message is a section below its subject.
    Attachments are named in a note and not read.

    Raises:
        UnreadableError: it has no headers of a message, too many parts, or no text.
    """
    message = BytesParser(EmailMessage, policy=policy.default).parsebytes(data)
    if not any(message[name] for name in ("From", "To", "Subject", "Date", "Received", "Message-ID")):
        raise UnreadableError(f"{source} has no headers of an e-mail message.")
    outline = Outline(_header(message, "Subject"))
    attached = list(_add_message(source, message, outline, 0))
    if len(attached) > PARTS:
        raise UnreadableError(f"{source} has more than {PARTS} parts.")
    notes = (f"{source}: attachments were not read: {', '.join(attached)}",) if attached else ()
    return outline.document(source, "email", notes)


def _add_message(source: str, message: EmailMessage, outline: Outline, depth: int) -> Iterator[str]:
    """Add a message's text; yields the names of its attachments."""
    if depth > DEPTH:
        raise UnreadableError(f"{source} nests more than {DEPTH} messages in each other.")
    header_lines = [f"{name}: {value}" for name in _SHOWN_HEADERS if (value := _header(message, name))]
    outline.add("; ".join(header_lines), whole=True)
    body = message.get_body(("plain", "html"))
    if body is not None and not _is_blank(body):
        text, _ = decode_text(source, _payload(body)) if body.get_content_charset() is None else (_text(body), "")
        if body.get_content_type() == "text/html":
            add_html(source, text, outline)
        else:
            for part in text.replace("\r\n", "\n").split("\n\n"):
                for piece, heading in paragraphs(_strip_quote_marks(part)):
                    outline.add(flatten_text(piece), whole=heading)
    for attached in message.iter_attachments():
        inner = attached.get_payload(0) if attached.get_content_type() == "message/rfc822" else None
        if isinstance(inner, EmailMessage):
            outline.open_heading(min(depth + 2, 6), _header(inner, "Subject") or "Forwarded message")
            yield from _add_message(source, inner, outline, depth + 1)
        else:
            yield flatten_text(PurePosixPath(attached.get_filename() or attached.get_content_type()).name)[:100]


def _header(message: EmailMessage, name: str) -> str:
    return flatten_text(str(message[name] or ""))


def _payload(part: MIMEPart) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _text(part: MIMEPart) -> str:
    try:
        return str(part.get_content())
    except LookupError:  # a charset that does not exist
        return decode_text("the message", _payload(part))[0]


def _is_blank(part: MIMEPart) -> bool:
    return not _payload(part).strip()


def _strip_quote_marks(part: str) -> str:
    return "\n".join(line.lstrip("> ") for line in part.splitlines())

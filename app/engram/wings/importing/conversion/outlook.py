"""Reader of messages that Outlook saved, which become messages of the internet first."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from email.message import EmailMessage
from email.utils import format_datetime, formataddr
from typing import Any

from engram.wings.importing.conversion import mail
from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.encodings import declared_encoding, decode_text
from engram.wings.importing.conversion.import_limits import OLE, ConversionLimits
from engram.wings.importing.conversion.inline_text import WINDOWS
from engram.wings.importing.conversion.outline import flatten_text, library

_EMBEDDED = "__substg1.0_3701000D"
_HEADER_BYTES, _PROPERTY_BYTES = 32, 16
_RICH_TEXT = 0x1009
_HTML, _ATTACH_SHORT_NAME, _ATTACH_TITLE = 0x1013, 0x3704, 0x3001
_SENDER_NAME, _SENDER_SMTP, _SENDER_ADDRESS = 0x0C1A, 0x5D01, 0x0C1F
_RECIPIENT_TYPE, _INTERNET_ID, _REPLY_TO_ID = 0x0C15, 0x1035, 0x1042
_RECEIVERS = {1: "To", 2: "Cc"}


def msg(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """A message, read as ``mail.eml`` reads one: headers, texts, messages and files in it.

    Raises:
        UnreadableError: it is no such file, or nests too many messages.
    """
    if not data.startswith(OLE):
        raise UnreadableError(f"{source} is not what its name says: Outlook did not save it.")
    message = library("oxmsg").Message.load(data)
    read = mail.read_message(source, _build(source, message, 0))
    has_text = message.body or message.html_body or not message.properties.binary_prop_value(_RICH_TEXT)
    return (
        read
        if has_text
        else replace(read, notes=(*read.notes, f"{source}: not read: its text, which is RTF alone"))
    )


def read_body(data: bytes) -> str:
    """Return the subject and the plain text of a message's body."""
    message = library("oxmsg").Message.load(data)
    return _clean(f"{message.subject}\n{message.body or ''}")


def _build(source: str, message: Any, depth: int) -> EmailMessage:
    if depth > mail.MESSAGE_DEPTH:
        raise UnreadableError(f"{source} nests more than {mail.MESSAGE_DEPTH} messages in each other.")
    built = EmailMessage()
    for name, value in _list_headers(message):
        if shown := flatten_text(_clean(value)):
            built[name] = shown
    html = message.properties.binary_prop_value(_HTML)
    page = decode_text(source, html, declared_encoding(html)).text if html else message.html_body
    body = _clean(message.body or "")
    if body:
        built.set_content(body)
    if page and body:
        built.add_alternative(_clean(page), subtype="html")
    elif page:
        built.set_content(_clean(page), subtype="html")
    for attachment in message.attachments:
        _attach(source, attachment, built, depth)
    return built


def _clean(text: str) -> str:
    """The text without the NUL at its end, and with characters of Windows that another label made controls."""
    return text.replace("\0", "").translate(WINDOWS)


def _list_headers(message: Any) -> Iterator[tuple[str, str]]:
    """Yield headers: those that the message came with, else what its properties tell."""
    properties = message.properties
    came: Mapping[str, str] = {name.lower(): value for name, value in message.message_headers.items()}
    headers = {
        "Subject": message.subject,
        "From": _write_address(properties, _SENDER_NAME, _SENDER_SMTP, _SENDER_ADDRESS),
        "Message-ID": properties.str_prop_value(_INTERNET_ID) or "",
        "In-Reply-To": properties.str_prop_value(_REPLY_TO_ID) or "",
        "Date": format_datetime(message.sent_date) if message.sent_date else "",
    }
    for number, name in _RECEIVERS.items():
        receivers = (one for one in message.recipients if one.properties.int_prop_value(_RECIPIENT_TYPE) == number)
        headers[name] = ", ".join(formataddr((one.name, one.email_address)) for one in receivers)
    for name, value in headers.items():
        yield name, value if name == "Subject" else came.get(name.lower()) or value


def _write_address(properties: Any, name: int, *addresses: int) -> str:
    """A sender as a header has it; names of Exchange are no addresses."""
    texts = (properties.str_prop_value(address) or "" for address in addresses)
    shown, address = properties.str_prop_value(name) or "", next((one for one in texts if "@" in one), "")
    return formataddr((shown, address)) if shown or address else ""


def _attach(source: str, attachment: Any, built: EmailMessage, depth: int) -> None:
    """Attach a file, or a message as one of the internet."""
    storages = attachment._storage.storages  # noqa: SLF001 - oxmsg reads no message in a message
    embedded = next((one for one in storages if one.name == _EMBEDDED), None)
    if embedded is not None:
        built.add_attachment(_build(source, _open_embedded(embedded), depth + 1))
        return
    properties = attachment.properties
    name = attachment.file_name or properties.str_prop_value(_ATTACH_SHORT_NAME)
    kind, _, inner = (attachment.mime_type or "").partition("/")
    if attachment.file_bytes is not None:
        built.add_attachment(
            attachment.file_bytes,
            maintype=kind if inner and kind not in ("text", "message", "multipart") else "application",
            subtype=inner if inner and kind not in ("text", "message", "multipart") else "octet-stream",
            filename=_clean(name or properties.str_prop_value(_ATTACH_TITLE) or "attachment"),
        )


def _open_embedded(storage: Any) -> Any:
    """Open a message in a message, whose header is 8 bytes shorter, though not all programs write it so."""
    header_bytes = _HEADER_BYTES - len(storage.properties_stream_bytes) % _PROPERTY_BYTES
    oxmsg, properties = library("oxmsg.message"), library("oxmsg.properties")

    class Embedded(oxmsg.Message):  # type: ignore[misc, name-defined]
        _properties = properties.Properties(storage, properties_header_offset=header_bytes)

    return Embedded(storage)

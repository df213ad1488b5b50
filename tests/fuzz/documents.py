"""Documents made of others by mutation of their structure: parts of Office files, PDF objects, HTML, charsets."""

import io
import random
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from lxml import etree, html

MARK = "zqmark"
"""Begins the word that is planted in a mutated document; its number follows."""
MOST_CHANGES = 4
_MOST_NESTED = 300
_CODECS = (
    "utf-8",
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "cp1252",
    "latin-1",
    "cp1251",
    "gb18030",
    "shift_jis",
    "koi8-r",
)
_ODD = ("", "-1", "0", "99999999999", "true", "\u202e", "NaN", "\x7f", "../../x", "x" * 3_000)
_WRAPPERS = (
    "div",
    "b",
    "table",
    "tr",
    "td",
    "li",
    "ul",
    "p",
    "h2",
    "blockquote",
    "details",
    "pre",
    "a",
    "sup",
    "dl",
    "dd",
)
_UNSHOWN = {"script", "style", "head", "title", "template", "noscript", "svg", "button", "option", "nav", "aside",
            "header", "footer", "form", "textarea", "select", "label"}  # fmt: skip
_TEXT_NODES = {
    ".docx": ("word/document.xml", "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}t"),
    ".pptx": ("ppt/slides/slide1.xml", "{http://schemas.openxmlformats.org/drawingml/2006/main}t"),
    ".xlsx": ("xl/sharedStrings.xml", "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}t"),
}
_UNSHOWN_LINE = re.compile(r"```|[\w ]+:")
"""A language of code, or a field of front matter, which may be empty."""
_PDF_OBJECT = re.compile(rb"\d+ 0 obj.*?endobj", re.DOTALL)
_PDF_STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.DOTALL)
_PDF_NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_SHOWN_STRING = re.compile(rb"\(([A-Za-z ]{4,})\)(?=\s*Tj)")


@dataclass(frozen=True)
class MutatedDocument:
    """A document to import.

    Attributes:
        word: planted in its text; None: none was, or a mutation may hide it.
    """

    name: str
    data: bytes
    word: str | None


def mutate(seed: int, number: int, originals: Mapping[str, bytes]) -> MutatedDocument:
    """Make the document of this number: always the same one of the same seed and originals."""
    chance = random.Random(f"{seed}/{number}")
    name = chance.choice(sorted(originals))
    kind = PurePosixPath(name).suffix
    word = f"{MARK}{number}"
    changes = chance.randint(1, MOST_CHANGES)
    mutator = _MUTATORS.get(kind, _mutate_text)
    data, planted = mutator(chance, originals[name], kind, word, changes)
    return MutatedDocument(f"{number}{kind}", data, word if planted else None)


def _mutate_office(chance: random.Random, data: bytes, kind: str, word: str, changes: int) -> tuple[bytes, bool]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {one.filename: archive.read(one) for one in archive.infolist()}
    shown, text_tag = _TEXT_NODES[kind]
    planted = True
    for _ in range(changes):
        part = chance.choice([one for one in parts if one.endswith((".xml", ".rels"))])
        if chance.random() < 0.1 and part != shown:  # what is shown may hang on it
            parts[part] = chance.choice([b"", parts[part][: len(parts[part]) // 2], b"<a/>"])
            planted = False
            continue
        parts[part] = _mutate_xml(chance, parts[part])
        planted = planted and part == shown and kind == ".docx"
    root = _parse_xml(parts.get(shown, b""))
    nodes = [] if root is None else [node for node in root.iter(text_tag) if node.text]
    if nodes:
        chance.choice(nodes).text = word
        parts[shown] = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    # Of other parts than the text a mutation may say that the text is deleted, hidden or not there.
    return made.getvalue(), planted and bool(nodes)


def _parse_xml(data: bytes) -> Any:
    try:
        return etree.fromstring(data, etree.XMLParser(resolve_entities=False, huge_tree=True))
    except etree.XMLSyntaxError:
        return None


def _mutate_xml(chance: random.Random, data: bytes) -> bytes:
    root = _parse_xml(data)
    if root is None:
        return data
    nodes = [node for node in root.iter() if node.getparent() is not None and isinstance(node.tag, str)]
    if not nodes:
        return data
    _change_tree(chance, nodes)
    if chance.random() < 0.1:
        return bytes(etree.tostring(root, xml_declaration=True, encoding=chance.choice(["UTF-16", "ISO-8859-1"])))
    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8"))


def _change_tree(chance: random.Random, nodes: list[Any]) -> None:
    """Repeat, remove, move, nest or alter one of these elements, which have parents."""
    node, other = chance.choice(nodes), chance.choice(nodes)
    parent = node.getparent()
    match chance.randrange(6):
        case 0:
            for _ in range(chance.choice([1, 1, 50])):
                node.addnext(deepcopy(node))
        case 1:
            parent.remove(node)
        case 2 if other is not node and node not in other.iterancestors():
            other.append(node)
        case 3:
            for _ in range(chance.choice([1, 5, _MOST_NESTED])):
                around = node.makeelement(node.tag, dict(node.attrib))
                node.getparent().replace(node, around)
                around.append(node)
        case 4 if node.attrib:
            node.set(chance.choice(sorted(node.attrib)), _drop_controls(chance.choice(_ODD)))
        case _:
            node.text = _drop_controls(chance.choice(_ODD))


def _drop_controls(text: str) -> str:
    return text.replace("\x7f", "\u2028")


def _mutate_html(chance: random.Random, data: bytes, _kind: str, word: str, changes: int) -> tuple[bytes, bool]:
    root = html.document_fromstring(_decode(data), ensure_head_body=True)
    for _ in range(changes):
        nodes = [node for node in root.body.iter() if node is not root.body and isinstance(node.tag, str)]
        if not nodes:
            break
        node = chance.choice(nodes)
        if chance.random() < 0.5:
            tag = chance.choice(_WRAPPERS)
            for _ in range(chance.choice([1, 3, _MOST_NESTED])):
                around = node.makeelement(tag)
                node.getparent().replace(node, around)
                around.append(node)
        else:
            _change_tree(chance, nodes)
    shown = [
        node
        for node in root.body.iter()
        if isinstance(node.tag, str)
        and (node.text or "").strip()
        and not any(one.tag in _UNSHOWN or _is_hidden(one) for one in (node, *node.iterancestors()))
    ]
    if shown:
        chance.choice(shown).text = f" {word} "
    text = html.tostring(root, encoding="unicode")
    for _ in range(changes if chance.random() < 0.5 else 0):
        ends = list(re.finditer(r"</(?:p|li|td|tr|b|i|div|span|h\d)>", text))
        if ends:
            cut = chance.choice(ends)
            text = text[: cut.start()] + text[cut.end() :]
    return _encode(chance, text, word), bool(shown)


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "ignore").replace("\0", "")


def _is_hidden(node: Any) -> bool:
    return bool(set(node.attrib) & {"hidden", "aria-hidden", "style", "role", "class"})


def _encode(chance: random.Random, text: str, word: str) -> bytes:
    """Encode a text, sometimes with bytes of another charset before the word or at an end."""
    data = text.encode(chance.choice(_CODECS), "ignore")
    if chance.random() < 0.2:
        at = chance.choice([0, max(data.find(word.encode()), 0), len(data)])
        data = (
            data[:at] + chance.choice([b"\xff\xfe", b"\x80\x81", b"\xe2\x82", b"\x1a", b"\xef\xbb\xbf"]) + data[at:]
        )
    return data


def _mutate_text(chance: random.Random, data: bytes, kind: str, word: str, changes: int) -> tuple[bytes, bool]:
    lines = _decode(data).split("\n")
    filled = [
        at for at, line in enumerate(lines) if re.search("[A-Za-z]{4}", line) and not _UNSHOWN_LINE.match(line)
    ]
    planted = kind in {".txt", ".md", ".csv", ".tsv"} and bool(filled)
    if planted:
        at = chance.choice(filled)
        lines[at] = re.sub("[A-Za-z]{4,}", word, lines[at], count=1)
    for _ in range(changes):
        at = chance.randrange(len(lines))
        match chance.randrange(6):
            case 0:
                lines[at:at] = [lines[at]] * chance.choice([1, 2, 200])
            case 1 if word not in lines[at] and len(lines) > 1:
                del lines[at]
            case 2:
                chance.shuffle(lines)
            case 3:
                lines[at] += chance.choice(['"', "'", ",", ";", "\t", "|", "```", "<!--", "{", "[", "\u2028", "\r"])
                planted = planted and "<!--" not in lines[at]
            case 4:
                lines[at] = (
                    chance.choice([" ", ">", "#", "- ", "\t"]) * chance.choice([1, 4, _MOST_NESTED]) + lines[at]
                )
            case _:
                lines.insert(at, chance.choice(_ODD))
    return _encode(chance, "\n".join(lines), word), planted


def _mutate_pdf(chance: random.Random, data: bytes, _kind: str, word: str, changes: int) -> tuple[bytes, bool]:
    objects = _PDF_OBJECT.findall(data)
    head, tail = data[: data.find(objects[0])], data[data.rfind(b"endobj") + 6 :]
    planted = False
    for at, one in enumerate(objects):
        stream = _PDF_STREAM.search(one)
        if stream is None or planted:
            continue
        content = _inflate(stream[1])
        if content is not None and (strings := list(_SHOWN_STRING.finditer(content))):
            string = chance.choice(strings)
            content = content[: string.start(1)] + word.encode() + content[string.end(1) :]
            objects[at] = _put_stream(one, stream, content)
            planted = True
    for _ in range(changes):
        at = chance.randrange(len(objects))
        match chance.randrange(5):
            case 0:
                objects.append(objects[at])
            case 1:
                objects[at] = b""
                planted = False
            case 2:
                objects[at] = _change_number(chance, objects[at])
                planted = False  # a length, a box or a number of an object
            case 3:
                chance.shuffle(objects)
            case _:
                stream = _PDF_STREAM.search(objects[at])
                content = None if stream is None else _inflate(stream[1])
                if stream is not None and content is not None:
                    objects[at] = _put_stream(objects[at], stream, _change_number(chance, content))
                    planted = False  # it may be drawn off the page
    if chance.random() < 0.1:
        tail, planted = tail[: chance.randrange(len(tail) + 1)], False
    return head + b"\n".join(objects) + tail, planted


def _inflate(content: bytes) -> bytes | None:
    try:
        return zlib.decompress(content)
    except zlib.error:
        return content if b"Tj" in content else None


def _put_stream(one: bytes, stream: "re.Match[bytes]", content: bytes) -> bytes:
    packed = zlib.compress(content) if b"/FlateDecode" in one else content
    dictionary = re.sub(rb"/Length \d+(?! \d+ R)", b"/Length %d" % len(packed), one[: stream.start()])
    return dictionary + b"stream\n" + packed + b"\nendstream" + one[stream.end() :]


def _change_number(chance: random.Random, data: bytes) -> bytes:
    numbers = list(_PDF_NUMBER.finditer(data))
    if not numbers:
        return data
    found = chance.choice(numbers)
    put = chance.choice([b"0", b"-1", b"90", b"45.5", b"1e9", b"2147483648", b"0.0001"])
    return data[: found.start()] + put + data[found.end() :]


_MUTATORS: dict[str, Callable[[random.Random, bytes, str, str, int], tuple[bytes, bool]]] = {
    ".docx": _mutate_office,
    ".pptx": _mutate_office,
    ".xlsx": _mutate_office,
    ".pdf": _mutate_pdf,
    ".html": _mutate_html,
}

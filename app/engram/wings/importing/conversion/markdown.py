"""Reader of Markdown, which becomes HTML first: tables, line breaks and tags then have one reader."""

import re
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

from engram.wings.importing.conversion.documents import Document
from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.outline import library
from engram.wings.importing.conversion.pages import markup
from engram.wings.importing.conversion.records import read_plain

_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*\n", re.DOTALL)
_FRONT_FIELD = re.compile(r"^(?P<key>[^\W\d][\w .-]{0,60}?)\s*:(?:\s+(?P<value>.*))?$")
_TEXT_BEGIN = re.compile("[|>][-+]?")
_TEXT_JOINTS = {"|": "\n", ">": " "}
_FRONT_ITEM = re.compile(r"^\s*-\s+(?P<value>.+)$")
RESERVED = frozenset({"source", "format", "heading", "page", "quoted", "attachment"})
"""Metadata that the importer itself gives passages."""
_TAG = re.compile(r"</?([A-Za-z][\w-]*)")
_ENCLOSING_TAG = re.compile(
    r"""<(/?)(aside|button|datalist|footer|iframe|main|nav|noembed|noframes|noscript|plaintext|script|select|style|svg
    |template|textarea|title|xmp)(?![\w-])""",
    re.IGNORECASE | re.VERBOSE,
)
"""Tags of elements whose content is left out, or read apart from the rest."""


def markdown(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """CommonMark with tables and formulas. The title is front matter's, else the only heading of level 1."""
    whole, _, notes = decode_text(source, data)
    front = _FRONT_MATTER.match(whole)
    if front is not None and not _begins_with_field(front[1]):
        front = None  # text between two lines
    fields = read_front_matter(front[1]) if front else {}
    title = fields.pop("title", None)
    content = _parser().render(whole[front.end() :] if front else whole)
    read = markup(source, content, "markdown", notes, title=title if isinstance(title, str) else None, lines=True)
    return replace(read, metadata={**read.metadata, **fields})


def read_front_matter(text: str) -> dict[str, object]:
    """Fields of front matter: key -> plain value, or a list of such; keys in lower case, in their order.

    A nested field is a text of its parent's list. Keys that the importer uses itself begin with ``front_matter_``.
    """
    fields: dict[str, object] = {}
    key, items = "", []
    joint = None  # what joins the lines of a text
    for line in text.splitlines():
        if joint is not None and (line[:1].isspace() or not line):
            fields[key] = f"{fields.get(key, '')}{joint}{line.strip()}".strip()
        elif (item := _FRONT_ITEM.match(line)) is not None and key:
            items.append(_read_value(item["value"]))
            fields[key] = list(items)
        elif (found := _FRONT_FIELD.match(line)) is not None:
            key, items = found["key"].strip().lower(), []
            key = f"front_matter_{key}" if key in RESERVED else key
            value = (found["value"] or "").strip()
            joint = _TEXT_JOINTS.get(value[:1]) if _TEXT_BEGIN.fullmatch(value) else None
            if value.startswith("[") and value.endswith("]"):
                fields[key] = [_read_value(one) for one in value[1:-1].split(",") if one.strip()]
            elif value and joint is None:
                fields[key] = _unquote(value) if key == "title" else _read_value(value)
        elif key and line.strip() and not line.startswith("#"):
            value, items = fields.get(key), [*items, line.strip()]
            fields[key] = items if value is None or isinstance(value, list) else f"{value} {line.strip()}"
    return {key: value for key, value in fields.items() if value not in ("", [])}


def _begins_with_field(text: str) -> bool:
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return (first := next(lines, None)) is None or _FRONT_FIELD.match(first) is not None


def _read_value(value: str) -> object:
    """A text without its quotes, or the number or boolean that one without quotes is."""
    text = _unquote(value)
    return read_plain(text) if text == value.strip() else text


def _unquote(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


@cache
def _parser() -> Any:
    """A parser that knows formulas, and drops no image whatever its address."""
    plugins = library("mdit_py_plugins.dollarmath"), library("mdit_py_plugins.amsmath")
    # It leaves out what is nested deeper than its bound; without one that is an error.
    parser = library("markdown_it").MarkdownIt("commonmark", {"maxNesting": sys.maxsize})
    parser.enable(["table", "strikethrough"])
    parser.use(plugins[0].dollarmath_plugin, allow_digits=False, allow_space=False, double_inline=True)
    parser.use(plugins[1].amsmath_plugin)
    parser.validateLink = lambda url: True
    for kind, mark in (("math_inline", "$"), ("math_inline_double", "$$"), ("math_block", "$$")):
        parser.add_render_rule(kind, _formula_rule(mark))
    parser.core.ruler.push("tags", lambda state: _escape_mentioned_tags(state.tokens, Counter()))
    return parser


def _formula_rule(mark: str) -> Any:
    def render(self: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
        text = f"{mark}{library('html').escape(tokens[at].content.strip())}{mark}"
        return f"<p>{text}</p>" if tokens[at].block else text

    return render


def _escape_mentioned_tags(tokens: list[Any], ends: Counter[str]) -> None:
    """Make text of the tags that are only mentioned; other HTML stays as it is.

    These are placeholders like ``<your name>``, which is no element of HTML, and tags like ``<script>`` whose
    element never ends and would take the rest of the file with it.

    Args:
        ends: names of the end tags below these tokens that no element has used; it is changed.
    """
    for token in reversed(tokens):
        if token.children:
            _escape_mentioned_tags(token.children, ends)
        if token.type in ("html_inline", "html_block"):
            tag = _TAG.match(token.content.lstrip())
            if tag is None or tag[1].lower() in library("lxml.html.defs").tags:
                token.content = _escape_open_tags(token.content, ends)
            else:
                token.content = library("html").escape(token.content)


def _escape_open_tags(content: str, ends: Counter[str]) -> str:
    opened = set()
    for tag in reversed(list(_ENCLOSING_TAG.finditer(content))):
        name = tag[2].lower()
        if tag[1]:
            ends[name] += 1
        elif ends[name]:
            ends[name] -= 1
        else:
            opened.add(tag.start())
    return _ENCLOSING_TAG.sub(lambda tag: "&lt;" + tag[0][1:] if tag.start() in opened else tag[0], content)

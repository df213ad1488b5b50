"""Reader of reStructuredText, which becomes HTML first."""

import re
from typing import Any

from engram.wings.importing.conversion.documents import Document
from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.outline import library
from engram.wings.importing.conversion.pages import markup

_DIRECTIVE = re.compile(r"^\s*\.\. (?:\|[^|]+\| )?([\w:.+-]+)::", re.MULTILINE)
_ROLE = re.compile(r":([\w:.+-]+):(?=`)")
_TITLED = re.compile(r"(.+?)\s*<[^>]*>", re.DOTALL)
_NO_TEXT = frozenset("toctree index highlight currentmodule module contents sectnum raw include".split())
"""Directives whose content is no text of this file."""
_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "doctitle_xform": True,
    "embed_stylesheet": False,
    "syntax_highlight": "none",
    "math_output": "LaTeX",
    "line_length_limit": 1_000_000,
    "smart_quotes": False,
}


def rst(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """reStructuredText: sections, lists, tables, footnotes, code; what Sphinx adds is read as what it holds.

    No file that it names is read.
    """
    text, _, notes = decode_text(source, data)
    _add_names(text)
    parts = library("docutils.core").publish_parts(text, writer="html5", settings_overrides=_SETTINGS)
    return markup(source, f"<main>{parts['html_body']}</main>", "rst", notes, title=parts["title"] or None)


def _add_names(text: str) -> None:
    """Make known to docutils the directives and roles of a text that others define."""
    directives, roles, nodes = (
        library(f"docutils.{name}") for name in ("parsers.rst.directives", "parsers.rst.roles", "nodes")
    )
    language = library("docutils.parsers.rst.languages.en")
    for name in {name.lower() for name in _DIRECTIVE.findall(text)}:
        if name in _NO_TEXT or name not in (language.directives.keys() | directives._directives.keys()):  # noqa: SLF001
            directives.register_directive(name, _make_directive(name))
    for name in {name.lower() for name in _ROLE.findall(text)}:
        if name not in (language.roles.keys() | roles._roles.keys()):  # noqa: SLF001 - no public look-up
            roles.register_local_role(name, _make_role(nodes))


def _make_directive(name: str) -> type:
    """A directive that holds its arguments as a paragraph and then its content."""
    rst_parser, nodes = library("docutils.parsers.rst"), library("docutils.nodes")

    class Held(rst_parser.Directive):  # type: ignore[misc]
        has_content = True
        optional_arguments = 1
        final_argument_whitespace = True
        option_spec = library("docutils.parsers.rst.directives.misc").Class.option_spec

        def run(self) -> list[Any]:
            if name in _NO_TEXT:
                return []
            held = nodes.container()
            if self.arguments:
                inline, messages = self.state.inline_text(self.arguments[0], self.lineno)
                held += [nodes.paragraph("", "", *inline), *messages]
            self.state.nested_parse(self.content, self.content_offset, held)
            return [held]

    return Held


def _make_role(nodes: Any) -> Any:
    """A role that shows its text, or the title before an address."""

    def role(name: str, raw: str, text: str, line: int, inliner: Any, *_: Any) -> tuple[list[Any], list[Any]]:
        shown = _TITLED.fullmatch(text)
        plain = (shown[1] if shown else text).lstrip("~!").replace("\x00", "")
        return [nodes.inline(raw, plain)], []

    return role

"""Reader of reStructuredText, which becomes HTML first."""

import io
import re
from dataclasses import replace
from typing import Any

from engram.wings.importing.conversion.documents import Document
from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.outline import library, stem
from engram.wings.importing.conversion.pages import markup

_DIRECTIVE = re.compile(r"^\s*\.\. (?:\|[^|]+\| )?([\w:.+-]+)::", re.MULTILINE)
_ROLE = re.compile(r":([\w:.+-]+):(?=`)")
_TITLED = re.compile(r"(.+?)\s*<[^>]*>", re.DOTALL)
_NO_TEXT = frozenset("toctree index highlight currentmodule contents sectnum raw include meta".split())
"""Directives whose content is no text of this file."""
_CODE = frozenset("code-block code sourcecode literalinclude prompt doctest testcode testoutput".split())
_CHANGES = ("version", "deprecated")
"""What names of directives begin with that say since when something is so."""
_ERROR = 3
_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": _ERROR,
    "halt_level": 5,
    "embed_stylesheet": False,
    "syntax_highlight": "none",
    "math_output": "LaTeX",
    "line_length_limit": 1_000_000,
}


class _AnyOption(dict[str, Any]):
    """Options of a directive that nobody knows here: each is taken as it is."""

    def __missing__(self, name: str) -> Any:
        return lambda value: value


def rst(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """reStructuredText: sections, lists, tables, footnotes, code; what Sphinx adds is read as what it holds.

    No file that it names is read. What docutils cannot read stands as it is written.
    """
    text, _, notes = decode_text(source, data)
    _add_names(text)
    core, nodes = library("docutils.core"), library("docutils.nodes")
    tree = core.publish_doctree(text, settings_overrides={**_SETTINGS, "warning_stream": io.StringIO()})
    for message in list(tree.findall(nodes.system_message)):
        if "system-messages" in message.parent.get("classes", ()):
            message.parent.parent.remove(message.parent)
        elif message.parent is not None:
            message.replace_self([child for child in message if isinstance(child, nodes.literal_block)])
    page = core.publish_from_doctree(tree, writer="html5", settings_overrides=_SETTINGS)
    document = markup(source, page.decode(), "rst", notes, title=tree.get("title") or stem(source))
    return document if tree.get("title") else replace(document, title=stem(source), titled_by_name=True)


def _add_names(text: str) -> None:
    """Make known to docutils the directives and roles of a text that others define."""
    known, names = library("docutils.parsers.rst"), library("docutils.parsers.rst.languages.en")
    for name in {name.lower() for name in _DIRECTIVE.findall(text)}:
        if name in _NO_TEXT | _CODE or name not in names.directives:
            known.directives.register_directive(name, _make_directive(name))
    for name in {name.lower() for name in _ROLE.findall(text)}:
        if name not in names.roles:
            known.roles.register_local_role(name, _read_role)


def _make_directive(name: str) -> type:
    """A directive that holds its arguments as a paragraph, and then its content."""
    rst_parser, nodes = library("docutils.parsers.rst"), library("docutils.nodes")

    class Held(rst_parser.Directive):  # type: ignore[misc, name-defined]
        has_content = True
        optional_arguments = 1
        final_argument_whitespace = True
        option_spec = _AnyOption(name=str)

        def run(self) -> list[Any]:
            if name in _NO_TEXT:
                return []
            if name in _CODE:
                code = "\n".join(self.content)
                return [nodes.literal_block(code, code)]
            held = nodes.container()
            if self.arguments:
                before = f"{name} " if name.startswith(_CHANGES) else ""
                inline, _ = self.state.inline_text(before + self.arguments[0], self.lineno)
                held += nodes.paragraph("", "", *inline)
            self.state.nested_parse(self.content, self.content_offset, held)
            return [held]

    return Held


def _read_role(name: str, raw: str, text: str, *_: Any, **__: Any) -> tuple[list[Any], list[Any]]:
    """Show the text of a role, or the title before an address."""
    titled = _TITLED.fullmatch(text)
    label = (titled[1] if titled else text).lstrip("~!").replace("\0", "")
    return [library("docutils.nodes").inline(raw, label)], []

"""Reader of Markdown, which becomes HTML first: tables, line breaks and tags then have one reader."""

import re
from functools import cache
from typing import Any

from engram.wings.importing.conversion.documents import Document
from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.outline import library
from engram.wings.importing.conversion.pages import markup

_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*\n", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE)
_TAG = re.compile(r"</?([A-Za-z][\w-]*)")


def markdown(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """CommonMark with tables and formulas; front matter gives the title, else the only heading of level 1."""
    whole, _, notes = decode_text(source, data)
    front = _FRONT_MATTER.match(whole)
    title = _FRONT_TITLE.search(front[1]) if front else None
    content = _parser().render(whole[front.end() :] if front else whole)
    if front and (fields := _FRONT_TITLE.sub("", front[1]).strip()):
        content = f"<pre>{library('html').escape(fields)}</pre>{content}"
    return markup(source, content, "markdown", notes, title=title[1] if title else None, lines=True)


@cache
def _parser() -> Any:
    """A parser that knows formulas, and drops no image whatever its address."""
    plugins = library("mdit_py_plugins.dollarmath"), library("mdit_py_plugins.amsmath")
    parser = library("markdown_it").MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.use(plugins[0].dollarmath_plugin, allow_digits=False, allow_space=False, double_inline=True)
    parser.use(plugins[1].amsmath_plugin)
    parser.validateLink = lambda url: True
    for kind, mark in (("math_inline", "$"), ("math_inline_double", "$$"), ("math_block", "$$")):
        parser.add_render_rule(kind, _formula_rule(mark))
    for kind in ("html_inline", "html_block"):
        parser.add_render_rule(kind, _render_html)
    return parser


def _formula_rule(mark: str) -> Any:
    def render(self: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
        text = f"{mark}{library('html').escape(tokens[at].content.strip())}{mark}"
        return f"<p>{text}</p>" if tokens[at].block else text

    return render


def _render_html(self: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    """HTML as it is, but a placeholder like ``<your name>``, which is no element of HTML, as text."""
    content: str = tokens[at].content
    tag = _TAG.match(content.lstrip())
    if tag is None or tag[1].lower() in library("lxml.html.defs").tags:
        return content
    return str(library("html").escape(content))

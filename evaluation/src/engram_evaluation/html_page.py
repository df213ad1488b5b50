"""The JSON reports of several runs as one HTML file that needs nothing else: tables and charts side by side."""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from engram_evaluation.report_files import read
from engram_evaluation.report_sections import INTRODUCTION, Section, corpora, makers, sections
from engram_evaluation.report_table import Grid
from engram_evaluation.section_charts import charts
from engram_evaluation.svg import COLOURS, figure, write_style
from engram_evaluation.table_report import TableReport

CODE = re.compile("`([^`]+)`")


def html(folders: Sequence[Path]) -> str:
    """One HTML page from the reports in ``folders``, the same whatever their order.

    Raises:
        ReportFileError: as ``report_files.read``.
    """
    reports = read(folders)
    chapters: dict[str, list[str]] = {}
    for section in sections(reports.retrieval):
        chapters.setdefault(section.protocol, []).append(_section(section))
    for run in reports.tables:
        chapters.setdefault(run.protocol, []).append(_list_tables(run))
    links = "".join(f'<li><a href="#{name}">{escape(name)}</a></li>' for name in chapters)
    body = "\n".join(
        f'<section id="{name}">\n<h2>{escape(name)}</h2>\n' + "\n".join(articles) + "\n</section>"
        for name, articles in chapters.items()
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Engram: measured</title>
<style>{_style()}</style>
</head>
<body>
<header>
<h1>Measured</h1>
{_prose(INTRODUCTION)}
<nav aria-label="Protocols"><ul>{links}</ul></nav>
</header>
<main>
{_table(corpora(reports.retrieval)) if reports.retrieval else ""}
{body}
</main>
<footer>{_prose(makers(reports.retrieval)) if reports.retrieval else ""}</footer>
</body>
</html>
"""


def _list_tables(run: TableReport) -> str:
    parts = [_commands(run.command), _prose(run.note), *map(_table, run.titled_grids())]
    return "<article>\n" + "\n".join(parts) + "\n</article>"


def _commands(commands: str) -> str:
    return f"<details><summary>Commands</summary><pre><code>{escape(commands)}</code></pre></details>"


def _section(section: Section) -> str:
    parts = [_commands("\n".join(section.commands))]
    if section.remark:
        parts.append(f'<p class="remark"><strong>{escape(section.remark)}</strong></p>')
    if section.legend:
        parts.append(_prose(section.legend))
    tables = "\n".join(map(_table, section.grids))
    pictures = "\n".join(map(figure, charts(section)))
    parts.append(f'<div class="beside">\n<div>\n{tables}\n</div>\n<div>\n{pictures}\n</div>\n</div>')
    return "<article>\n" + "\n".join(parts) + "\n</article>"


def _table(grid: Grid) -> str:
    heads = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in grid.headings)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in grid.rows
    )
    return f'<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>'


def _prose(text: str) -> str:
    marked = CODE.sub(r"<code>\1</code>", escape(text))
    return f"<p>{marked}</p>"


def _style() -> str:
    names = "".join(f".legend .s{at}::before{{background:var(--s{at})}}" for at in range(COLOURS))
    return f"""{write_style()}
*{{box-sizing:border-box}}
body{{margin:0 auto;max-width:78rem;padding:1.5rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}}
p{{max-width:46rem}}
nav ul,.legend{{list-style:none;padding:0;margin:.5rem 0;display:flex;flex-wrap:wrap;gap:.25rem 1rem}}
a{{color:var(--s0)}}
h2{{border-top:1px solid var(--faint);padding-top:1.5rem}}
article{{margin-bottom:2.5rem}}
.beside{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:1.5rem}}
.wide{{overflow-x:auto;margin-bottom:1rem}}
table{{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.875rem}}
th,td{{padding:.2rem .6rem;border-bottom:1px solid var(--faint);text-align:right;white-space:nowrap}}
th:first-child{{text-align:left}}
tbody th{{font-weight:400}}
pre{{overflow-x:auto;font-size:.8125rem}}
summary{{cursor:pointer;color:var(--soft)}}
.remark{{border-left:4px solid var(--s1);padding-left:.75rem}}
figure{{margin:0 0 1.5rem}}
figcaption{{font-weight:600;font-size:.875rem}}
svg{{width:100%;max-width:480px;height:auto}}
.legend{{font-size:.8125rem}}
.legend li::before{{content:"";display:inline-block;width:.7em;height:.7em;margin-right:.4em}}
{names}
"""

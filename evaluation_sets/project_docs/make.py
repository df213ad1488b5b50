"""Cut the project's documentation into the passages of ``corpus.jsonl``.

Run it in the repository root: ``python evaluation_sets/project_docs/make.py > corpus.jsonl``. The committed corpus
is a snapshot. A new run reads the documentation of today, and the questions and labels do not belong to it.
"""

import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PAGES = ("docs/*.md", "README.md", "clients/*/README.md", "integrations/*/README.md")
MOST_WORDS = 230
FENCE = "```"


def sections(page: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the path of headings and the lines of each section; a ``#`` inside a code block is no heading."""
    path: list[str] = []
    lines: list[str] = []
    fenced = False
    for line in page.splitlines():
        fenced ^= line.lstrip().startswith(FENCE)
        heading = None if fenced else re.fullmatch(r"(#+) +(.+)", line)
        if heading is None:
            lines.append(line)
            continue
        yield path, lines
        path = [*path[: len(heading[1]) - 1], heading[2].strip()]
        lines = []
    yield path, lines


def blocks(lines: list[str]) -> Iterator[str]:
    """Yield paragraphs, code blocks, list items and table rows: what a passage never cuts apart."""
    block: list[str] = []
    fenced = False
    for line in lines:
        starts = not line.strip() or line.startswith(("- ", "| ", FENCE)) or re.match(r"\d+\. ", line)
        if starts and not fenced and block:
            yield "\n".join(block)
            block = []
        fenced ^= line.lstrip().startswith(FENCE)
        if line.strip() or fenced:
            block.append(line)
    if block:
        yield "\n".join(block)


def words(text: str) -> int:
    return len(text.split())


def passages(lines: list[str]) -> Iterator[str]:
    """Yield texts of about equal length below ``MOST_WORDS``; the rest of a cut table repeats its head."""
    every = list(blocks(lines))
    total = sum(words(block) for block in every)
    limit = total / max(1, math.ceil(total / MOST_WORDS)) * 1.1
    text, head = "", ""
    for block in every:
        if "\n|---" in block:
            head = block
        if text and words(text) + words(block) > limit:
            yield text
            text = head if block.startswith("|") and block != head else ""
        joint = "\n" if block.startswith(("- ", "| ")) else "\n\n"
        text = f"{text}{joint}{block}" if text else block
    if text:
        yield text


def main() -> None:
    """Print one passage a line."""
    root = Path.cwd()
    for source in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        name = source.relative_to(root).as_posix()
        slug = re.sub(r"\W+", "-", name.removeprefix("docs/").removesuffix(".md")).lower()
        number = 0
        for path, lines in sections(source.read_text(encoding="utf-8")):
            for part, text in enumerate(passages(lines), start=1):
                number += 1
                metadata = {"source": name, "headings": path, "part": part}
                row = {"_id": f"{slug}-{number:02}", "title": path[-1], "text": text, "metadata": metadata}
                sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

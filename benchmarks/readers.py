"""What do the importer and two other readers of documents each find that the others do not?

    pip install 'markitdown[docx,pptx,xlsx,pdf]' xberg
    python benchmarks/readers.py FOLDER [--most 12]

Converts each file of FOLDER that the importer takes with Engram, markitdown and xberg. For each file it prints the
words and the cells of tables that only one of them has, and those that only one of them lacks. None is right by
itself: a word that only Engram has may be invented, and one that it alone lacks may be a menu. Read each
difference, look into the file, and mend what is wrong. The last lines count the differences.

Words are compared without case, accents and signs, so `10^6` is `10` and `6`. A cell is the text between two `|` of
a table, with Engram's names of columns taken off. Engram's notes are printed, since they name what it leaves out.
"""

import argparse
import asyncio
import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from engram.context.errors import UnreadableError
from engram.wings.importing.conversion.folder import list_files
from engram.wings.importing.conversion.formats import convert
from engram.wings.importing.conversion.import_limits import PATIENT

_WORD = re.compile(r"[^\W_]+")
_MARKS = re.compile(r"<[^>]{0,200}>|!?\[([^\]]*)\]\([^)]*\)|\\(?=\W)")
_RULE = re.compile(r"[|\s:-]+")
_NAME = re.compile(r"^[^:|]{1,80}: ")


def read_with_engram(path: Path) -> str:
    """The titles, texts, headings and metadata of the passages."""
    lines: dict[str, None] = {}
    for passage in convert(path.name, path.read_bytes(), overlap=0, limits=PATIENT).passages:
        more = [str(value) for name, value in passage.metadata.items() if name not in ("source", "format", "page")]
        title = "" if passage.title == path.stem else passage.title
        lines |= dict.fromkeys([title, *more, *passage.text.split("\n")])
    return "\n".join(lines)


def read_with_markitdown(path: Path) -> str:
    """What markitdown writes as Markdown."""
    from markitdown import MarkItDown

    return str(MarkItDown().convert(str(path)).text_content)


def read_with_xberg(path: Path) -> str:
    """What xberg writes as plain text with tables in Markdown."""
    import xberg

    result = asyncio.run(xberg.extract(xberg.ExtractInput(kind=xberg.ExtractInputKind.URI, uri=str(path))))
    return "\n".join(one.content for one in result.results)


READERS: Mapping[str, Callable[[Path], str]] = {
    "engram": read_with_engram,
    "markitdown": read_with_markitdown,
    "xberg": read_with_xberg,
}


def find_words(text: str) -> set[str]:
    """The words of a text in one spelling."""
    plain = unicodedata.normalize("NFKD", html.unescape(_MARKS.sub(r" \1 ", text)))
    return {word.casefold() for word in _WORD.findall("".join(c for c in plain if not unicodedata.combining(c)))}


def find_cells(text: str) -> set[str]:
    """The cells of the tables in a text, each as its words."""
    rows = [line.strip().strip("|").split("|") for line in text.split("\n") if "|" in line]
    cells = (_NAME.sub("", cell.strip()) for row in rows for cell in row if not _RULE.fullmatch("|".join(row)))
    return {" ".join(_WORD.findall(html.unescape(_MARKS.sub(r" \1 ", cell)).casefold())) for cell in cells} - {""}


def compare(found: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """What only one reader has, and what only one lacks while all others have it."""
    differences: dict[str, set[str]] = {}
    for name, own in found.items():
        others = [other for other_name, other in found.items() if other_name != name]
        if others:
            differences[f"only {name} has"] = own.difference(*others)
            differences[f"only {name} lacks"] = others[0].intersection(*others[1:]) - own
    return {what: values for what, values in differences.items() if values}


def read_all(path: Path) -> dict[str, str]:
    """The text that each reader makes of a file; what a reader refuses is printed and left out."""
    texts = {}
    for name, read in READERS.items():
        try:
            texts[name] = read(path)
        except UnreadableError as error:
            print(f"  {name} refuses: {error.detail}")
        except Exception as error:  # noqa: BLE001 - other readers raise what they please
            print(f"  {name} refuses: {' '.join(str(error).split())[:150]}")
    return texts


def main() -> None:
    """Print what the readers do not share."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    options.add_argument("folder", type=Path)
    options.add_argument("--most", type=int, default=12, help="words or cells of each kind that are printed")
    arguments = options.parse_args()
    counts: Counter[str] = Counter()
    for source in list_files([arguments.folder]).sources:
        print(source.name)
        texts = read_all(source.path)
        if "engram" in texts:
            for note in convert(source.path.name, source.path.read_bytes(), limits=PATIENT).notes:
                print(f"  note: {note}")
        for kind, find in (("words", find_words), ("cells", find_cells)):
            for what, values in compare({name: find(text) for name, text in texts.items()}).items():
                counts[f"{what} ({kind})"] += len(values)
                shown = sorted(values)[: arguments.most]
                print(f"  {what} ({len(values)} {kind}): {', '.join(shown)}")
    for what, count in sorted(counts.items()):
        print(f"{count:>6}  {what}")


if __name__ == "__main__":
    main()

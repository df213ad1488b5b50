"""How long should the passages of a document be, and what should stand before each?

    python benchmarks/chunking.py DATA_DIR [--sets feedbackqa mtrag 2wiki] [--questions 100]
        [--passages 600] [--variants 400/100/last 1200/200/none]

DATA_DIR holds folders in the BEIR layout. Their passages are put together into documents with headings:
FeedbackQA's by the page they are from and the headings in their titles, MT-RAG's by the document that their ids
begin with. 2WikiMultihopQA has no documents: twenty passages, in the order of the questions that they came with,
make one, with their titles as headings. Half of the documents are Markdown, half HTML. The importer converts them
in each variant, SIZE/OVERLAP/LEAD as in `chunks.passages`. They are ingested into a scratch collection and asked
the dev questions without memory.

A question's evidence is the first sentence of each gold passage, or for 2wiki each supporting sentence. The figures
are the mean shares of it in the best five passages, and in the best passages up to 4,000 characters together: five
long passages hold more than five short ones, whether or not they are the better choice.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from common import WrappedEncoder, application, ask, dataset_file, fill, labels, read_jsonl, scratch_collection
from engram.composition.container import Application
from engram.providers.language.sentence_splitter import split_sentences
from engram.wings.importing.conversion import chunks, formats
from engram.wings.importing.conversion.chunks import Lead
from engram.wings.importing.conversion.documents import Document, ImportedPassage
from engram.wings.importing.conversion.import_limits import ConversionLimits

SETS = ("feedbackqa", "mtrag", "2wiki")
VARIANTS = (
    "400/100/last",
    "800/150/last",
    "1200/200/last",
    "1200/0/last",
    "2000/200/last",
    "1200/200/none",
    "1200/200/path",
)
DEPTH = 5
BUDGET_CHARACTERS = 4_000
INGEST_BATCH = 20
EVIDENCE_CHARACTERS = 120
Row = dict[str, Any]
Section = tuple[tuple[str, ...], str]


class CachingEncoder(WrappedEncoder):
    """An encoder that embeds each text once: variants share most of their sentences."""

    def __init__(self, embedder: Any) -> None:
        super().__init__(embedder)
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str], *arguments: Any, **named: Any) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self.embedder.embed(new, *arguments, **named), strict=True))
        return np.stack([self._vectors[text] for text in texts]) if texts else self.embedder.embed([])


def subset(folder: Path, questions: int, passages: int) -> tuple[dict[str, list[Row]], list[tuple[str, list[str]]]]:
    """(passages by document, (question, evidence)): documents with gold passages first, then others."""
    corpus = {row["_id"]: row for row in read_jsonl(dataset_file(folder, "corpus"))}
    gold = labels(folder)
    rows = [row for row in read_jsonl(dataset_file(folder, "queries")) if gold.get(row["_id"])]
    by_document: dict[str, list[Row]] = defaultdict(list)
    given = dict.fromkeys(one for row in rows for one in row["metadata"].get("context_ids", ()))
    for number, row in enumerate(
        [corpus[one] for one in given] + [corpus[one] for one in corpus if one not in given]
    ):
        by_document[document_of(folder.name, row, number)].append(row)
    holder = {row["_id"]: name for name, held in by_document.items() for row in held}
    chosen: dict[str, list[Row]] = {}
    asked: list[tuple[str, list[str]]] = []
    for row in rows:
        needed = {holder[passage]: by_document[holder[passage]] for passage in gold[row["_id"]]}
        if len(asked) < questions and sum(map(len, {**chosen, **needed}.values())) <= passages:
            chosen |= needed
            asked.append((row["text"], evidence(row, [corpus[passage] for passage in gold[row["_id"]]])))
    for name, held in by_document.items():
        if name not in chosen and sum(map(len, chosen.values())) + len(held) <= passages:
            chosen[name] = held
    return chosen, asked


def document_of(name: str, row: Row, number: int) -> str:
    if name == "feedbackqa":
        return str(row["metadata"]["uri"])
    if name == "mtrag":
        return str(row["_id"]).rsplit("-", 2)[0]
    return f"collection {number // INGEST_BATCH}"


def evidence(question: Row, gold: Sequence[Row]) -> list[str]:
    supporting = question["metadata"].get("supporting_sentences")
    texts = (
        [sentence for _, _, sentence in supporting]
        if supporting
        else [split_sentences(row["text"])[0] for row in gold]
    )
    return [strip_text(text)[:EVIDENCE_CHARACTERS] for text in texts]


def strip_text(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()


def sections(name: str, rows: Sequence[Row]) -> Iterator[Section]:
    for row in rows:
        title = row.get("title") or ""
        path = tuple(part.strip() for part in title.split(" / ")) if name == "feedbackqa" else (title,)
        yield tuple(part for part in path if part), row["text"]


def markdown(parts: Sequence[Section]) -> str:
    lines: list[str] = []
    for path, level, text in list_open_headings(parts):
        lines += [f"{'#' * (level + at)} {heading}\n" for at, heading in enumerate(path)]
        lines.append(re.sub(r"^(\s*)([#>*+\-|`])", r"\1\\\2", text, flags=re.MULTILINE) + "\n")
    return "\n".join(lines)


def html(parts: Sequence[Section]) -> str:
    lines = ["<html><body>"]
    for path, level, text in list_open_headings(parts):
        lines += [
            f"<h{min(level + at, 6)}>{escape(heading)}</h{min(level + at, 6)}>" for at, heading in enumerate(path)
        ]
        lines += [f"<p>{escape(part)}</p>" for part in text.splitlines() if part.strip()]
    return "\n".join([*lines, "</body></html>"])


def list_open_headings(parts: Sequence[Section]) -> Iterator[tuple[tuple[str, ...], int, str]]:
    """(headings to write, level of the first, text): those that are open already are not written again."""
    before: tuple[str, ...] = ()
    for path, text in parts:
        same = 0
        while same < min(len(before), len(path)) and before[same] == path[same]:
            same += 1
        yield path[same:], same + 1, text
        before = path


def documents(name: str, chosen: Mapping[str, list[Row]]) -> list[Document]:
    made: list[Document] = []
    for number, rows in enumerate(chosen.values()):
        parts = (
            sorted(sections(name, rows), key=lambda part: part[0])
            if name == "feedbackqa"
            else list(sections(name, rows))
        )
        kind, written = (".html", html(parts)) if number % 2 else (".md", markdown(parts))
        read = formats.READERS[kind](f"{number}{kind}", written.encode(), ConversionLimits())
        made.append(cast(Document, read))
    return made


def measure_evidence(
    app: Application, made: Sequence[ImportedPassage], questions: Sequence[tuple[str, list[str]]]
) -> tuple[float, float]:
    """Mean shares of the evidence in the best five passages, and within the budget of characters."""
    with scratch_collection(app) as name:
        fill(app, name, [passage.as_json(str(passage.metadata["source"])) for passage in made])
        shares = []
        for text, sought in questions:
            shown = [hit.text for hit in ask(app, name, text, top_k=20, memory="off").passages]
            shares.append((share(shown[:DEPTH], sought), share(within(shown), sought)))
    five, budget = np.mean(shares, axis=0)
    return float(five), float(budget)


def within(texts: Sequence[str]) -> list[str]:
    lengths = np.cumsum([len(text) for text in texts])
    return [text for text, length in zip(texts, lengths, strict=True) if length <= BUDGET_CHARACTERS]


def share(texts: Sequence[str], sought: Sequence[str]) -> float:
    bodies = [strip_text(text) for text in texts]
    return sum(any(one in body for body in bodies) for one in sought) / len(sought)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--passages", type=int, default=600)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS))
    arguments = parser.parse_args()
    with application(embedder=CachingEncoder) as (app, _):
        for name in arguments.sets:
            chosen, asked = subset(arguments.data / name, arguments.questions, arguments.passages)
            read = documents(name, chosen)
            everything = strip_text(" ".join(block.text for one in read for block in one.blocks))
            lost = sum(one not in everything for _, sought in asked for one in sought)
            print(
                f"{name}: {len(asked)} questions, {len(read)} documents, {lost} pieces of evidence not in them",
                flush=True,
            )
            for variant in arguments.variants:
                size, overlap, lead = variant.split("/")
                made = [
                    passage
                    for one in read
                    for passage in chunks.passages(one, size=int(size), overlap=int(overlap), lead=cast(Lead, lead))
                ]
                five, budget = measure_evidence(app, made, asked)
                print(
                    f"| {name} | {size} | {overlap} | {lead} | {len(made)} | {five:.3f} | {budget:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()

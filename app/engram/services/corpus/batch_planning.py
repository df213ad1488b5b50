"""Planning a batch of staged passages: analysed, and embedded where nothing equal is stored; no SQL is open."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.core.auth.reader_names import normalise_readers
from engram.core.text.sizes import BATCH_CHARACTERS, BATCH_ROWS, BATCH_TOKENS, count_fitting
from engram.core.text.temporal import time_constraint
from engram.providers.language import Language, PassageText, SentenceAnalysis, choose_languages, terms
from engram.providers.llm import Llm
from engram.services.corpus.passage_drafts import (
    PassageDraft,
    collect_surfaces,
    collect_time_expressions,
    count_rows,
    draft_of,
    hash_content,
    replace_sentences,
)
from engram.services.corpus.sentence_times import TimeExtraction, TimesByRules
from engram.services.encoders.encoder import Encoder
from engram.storage.corpus import collections, graph_writer, passages, staged_lines
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.graph_writer import TimeRow
from engram.storage.corpus.reader_sets import Readers
from engram.storage.database import Database
from engram.storage.jobs.jobs import Job
from engram.telemetry.stages import stage

Vectors = dict[str, NDArray[np.float32]]


@dataclass(slots=True)
class BatchPlan:
    """A batch, analysed and with everything it needs embedded, and the state of things it was planned against.

    Attributes:
        space: the collection's embedding space.
        lines: numbers of the staged lines, in order.
        versions: external id -> passage and hash of its content, of those that are stored.
        drafts: passages that are new or have another content.
        metadata_only: passage with the content that is stored -> its metadata and its document's source.
        readers: external id -> readers, of lines that name any.
        terms: external id -> lexical terms with their counts.
        texts: text -> vector, (d,), of all that is embedded for this batch.
        names: normalised name -> as it is written, of names that are new.
        times: time expression -> its row, of expressions that are new.
        by_rules: sentences that were dated by rules because the LLM failed.
        unknown_languages: languages of drafts that the encoder does not know.
    """

    space: int
    lines: list[int]
    versions: dict[str, tuple[int, bytes]]
    drafts: list[PassageDraft]
    metadata_only: dict[int, tuple[dict[str, Any], str | None]]
    readers: dict[str, Readers | None]
    terms: dict[str, Counter[str]] = field(default_factory=dict)
    texts: Vectors = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    times: dict[str, TimeRow] = field(default_factory=dict)
    by_rules: TimesByRules = field(default_factory=TimesByRules)
    unknown_languages: list[str] = field(default_factory=list)


class BatchPlanner:
    """Plans batches of ingest jobs."""

    def __init__(
        self,
        database: Database,
        encoder: Encoder,
        language: Language,
        *,
        batch_size: int,
        time_llm: Llm | None,
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._language = language
        self._batch_size = batch_size
        self._times = None if time_llm is None else TimeExtraction(time_llm)

    def plan(self, job: Job, after_line: int, *, limit: int | None = None) -> BatchPlan | None:
        """The next batch after ``after_line``, analysed and embedded; None if no lines are left."""
        collection_id = job.collection_id
        with self._database.read() as reader:
            staged = _cut_before_repeat(
                staged_lines.list_next(
                    reader, collection_id, job.id, after_line, limit or self._batch_size, BATCH_CHARACTERS
                )
            )
            versions = passages.versions(reader, collection_id, [body["id"] for _, body in staged])
            if not staged:
                return None
            collection = collections.load_by_id(reader, collection_id)
        staged = [(line, body | {"language": body.get("language") or collection.language}) for line, body in staged]
        self._encoder.check(collection)
        with stage("draft"):
            return self._draft_plan(collection, staged, versions, whole=limit is not None)

    def _draft_plan(
        self,
        collection: Collection,
        staged: list[tuple[int, dict[str, Any]]],
        versions: dict[str, tuple[int, bytes]],
        *,
        whole: bool,
    ) -> BatchPlan:
        hashes = {line: hash_content(body) for line, body in staged}
        if not whole:
            staged = self._cut_to_tokens(staged, hashes, versions)
        changed = [(line, body) for line, body in staged if versions.get(body["id"], (0, b""))[1] != hashes[line]]
        languages = {
            line: language for (line, _), language in zip(changed, _languages(changed, collection), strict=True)
        }
        read = self._language.analyse_passages([_passage(body, languages[line]) for line, body in changed])
        analyses = {line: sentences for (line, _), sentences in zip(changed, read, strict=True)}
        if not whole:  # what is planned anew has to be the same lines
            staged = _cut_to_batch(staged, analyses)
        plan = BatchPlan(
            space=collection.space,
            lines=[line for line, _ in staged],
            versions=versions,
            drafts=[
                draft_of(line, body, hashes[line], analyses[line], collection.key_building, languages[line])
                for line, body in staged
                if line in analyses
            ],
            metadata_only={
                versions[body["id"]][0]: (body["metadata"], body.get("document"))
                for line, body in staged
                if line not in analyses
            },
            readers={body["id"]: _readers(body) for _, body in staged if "readers" in body},
        )
        if self._times is not None:
            plan.drafts = [
                replace_sentences(draft, self._times.date_sentences(draft.sentences, plan.by_rules))
                for draft in plan.drafts
            ]
        plan.terms = {draft.external_id: Counter(terms(draft.key_text, draft.language)) for draft in plan.drafts}
        self._embed(collection, plan)
        return plan

    def _cut_to_tokens(
        self,
        staged: list[tuple[int, dict[str, Any]]],
        hashes: Mapping[int, bytes],
        versions: Mapping[str, tuple[int, bytes]],
    ) -> list[tuple[int, dict[str, Any]]]:
        """The longest head that takes the encoder a few seconds at most; unchanged passages take none."""
        tokens = self._encoder.count_tokens([body["text"] for _, body in staged])
        # A passage is embedded whole, and sentence by sentence.
        sizes = (
            0 if versions.get(body["id"], (0, b""))[1] == hashes[line] else 2 * size
            for (line, body), size in zip(staged, tokens, strict=True)
        )
        return staged[: count_fitting(sizes, BATCH_TOKENS)]

    def _embed(self, collection: Collection, plan: BatchPlan) -> None:
        """Embed what is not stored yet: passages, new sentences, new time expressions; not names, see ``names``."""
        with self._database.read() as reader:
            stored = passages.list_sentences(reader, collection.id, [known[0] for known in plan.versions.values()])
            surfaces = collect_surfaces(plan.drafts)
            known = graph_writer.find_known_names(reader, collection.id, surfaces)
            expressions = collect_time_expressions(plan.drafts)
            dated = graph_writer.find_known_times(reader, collection.id, expressions)
        stored_counts = Counter((sentence.passage_id, sentence.text) for sentence in stored)
        sentences = {
            text
            for draft in plan.drafts
            for text, times in Counter(sentence.text for sentence in draft.sentences).items()
            if times > stored_counts[plan.versions.get(draft.external_id, (0,))[0], text]
        }
        plan.names = {name: surface for name, surface in surfaces.items() if name not in known}
        times = sorted(expressions - dated)
        keys = [draft.key_text for draft in plan.drafts]
        texts = list(dict.fromkeys([*keys, *sorted(sentences), *times]))
        plan.texts = dict(zip(texts, self._encoder.embed(collection, texts), strict=True))
        languages = sorted({draft.language for draft in plan.drafts})
        plan.unknown_languages = self._encoder.find_unknown_languages(collection, languages)
        for text in times:
            span = time_constraint(text)
            plan.times[text] = TimeRow(
                text, span.start if span else None, span.end if span else None, plan.texts[text]
            )


def _readers(body: Mapping[str, Any]) -> Readers | None:
    return None if body["readers"] is None else normalise_readers(body["readers"])


def _cut_before_repeat(staged: Sequence[tuple[int, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
    """The longest head in which no passage comes twice, so that the later line of a repeat wins."""
    seen: set[str] = set()
    head: list[tuple[int, dict[str, Any]]] = []
    for line, body in staged:
        if body["id"] in seen:
            break
        seen.add(body["id"])
        head.append((line, body))
    return head


def _cut_to_batch(
    staged: Sequence[tuple[int, dict[str, Any]]], analyses: Mapping[int, Sequence[SentenceAnalysis]]
) -> list[tuple[int, dict[str, Any]]]:
    """The longest head that is not too much to write at once; of unchanged passages nothing is written."""
    return list(staged[: count_fitting((count_rows(analyses.get(line, ())) for line, _ in staged), BATCH_ROWS)])


def _languages(changed: Sequence[tuple[int, Mapping[str, Any]]], collection: Collection) -> list[str]:
    """The language of each of these passages, as it came with it or as it is recognised."""
    unknown = [(line, body) for line, body in changed if body["language"] is None]
    texts = [f"{body['title'] or ''} {body['text']}" for _, body in unknown]
    recognised = dict(
        zip((line for line, _ in unknown), choose_languages(texts, list(collection.languages)), strict=True)
    )
    return [body["language"] or recognised[line] for line, body in changed]


def _passage(body: Mapping[str, Any], language: str) -> PassageText:
    sentences = tuple(body["sentences"]) if body["sentences"] else None
    return PassageText(body["title"], body["text"], sentences, language)

"""Building the graph from staged passages: analyse and embed with no SQL open, then write a batch at once."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.core.auth.reader_names import normalise_readers
from engram.core.text.sizes import BATCH_CHARACTERS, BATCH_ROWS, BATCH_TOKENS, count_fitting
from engram.core.text.temporal import time_constraint
from engram.providers.language import ANALYSER, Language, PassageText, SentenceAnalysis, choose_languages, terms
from engram.providers.llm import Llm
from engram.services.corpus.document_replacement import DocumentReplacement
from engram.services.corpus.kind_measurement import KindService
from engram.services.corpus.passage_drafts import (
    PassageDraft,
    collect_surfaces,
    collect_time_expressions,
    count_rows,
    draft_of,
    hash_content,
    normalise_names,
    replace_sentences,
)
from engram.services.corpus.passage_observer import (
    LostSentences,
    ObservedBatch,
    PassageObserver,
    PlacedSentences,
    TextChange,
)
from engram.services.corpus.sentence_times import TimeExtraction, TimesByRules
from engram.services.encoders.encoder import Encoder
from engram.services.jobs.work import Work
from engram.services.passage_keys.rekey import Rebase
from engram.storage.corpus import (
    collections,
    documents,
    graph_writer,
    lexical_index,
    passages,
    reader_sets,
    staged_documents,
    staged_lines,
)
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.graph_writer import SentenceRow, TimeRow
from engram.storage.corpus.lexical_index import TermCounts
from engram.storage.corpus.passages import PassageRow, StoredSentence
from engram.storage.corpus.reader_sets import Readers
from engram.storage.database import Database, Writer
from engram.storage.jobs.jobs import Job
from engram.storage.maintenance import staged_embeddings
from engram.telemetry.stages import stage

MAX_REPLANS = 5
Vectors = dict[str, NDArray[np.float32]]


class _StaleError(Exception):
    """The graph changed between planning a batch and writing it."""


@dataclass(slots=True)
class _Plan:
    """A batch, analysed and with everything it needs embedded, and the state of things it was planned against."""

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
    observed: list[ObservedBatch] = field(default_factory=list)


class IndexService:
    """Turns staged passages into graph: does ingest jobs."""

    def __init__(
        self,
        database: Database,
        encoder: Encoder,
        language: Language,
        kinds: KindService,
        *,
        batch_size: int,
        observers: Sequence[PassageObserver],
        time_llm: Llm | None = None,
        rebase: Rebase | None = None,
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._language = language
        self._kinds = kinds
        self._observers = observers
        self._replacement = DocumentReplacement(database, observers)
        self._batch_size = batch_size
        self._times = None if time_llm is None else TimeExtraction(time_llm)
        self._rebase = rebase

    def run(self, work: Work) -> None:
        """Write batch after batch, the encoder working on the next one while Postgres takes this one.

        A job that ends before its end keeps what it has ingested.

        Raises:
            EmbeddingSpaceMismatchError: the collection's vectors are of another encoder.
        """
        job = work.job
        self._replacement.prepare(job, work.must_stop)
        self._kinds.measure_waiting(job)
        with ThreadPoolExecutor(1, thread_name_prefix="plan") as ahead:
            planned = ahead.submit(copy_context().run, self._plan, job, 0)
            while not work.must_stop():
                plan = planned.result()
                if plan is None:
                    self._kinds.measure(job.collection_id)
                    with self._database.write() as writer:
                        documents.end_writing(writer, job.collection_id, job.id)
                        work.finish(writer)
                    return
                if work.should_yield():  # before the next batch is begun, which would be for nothing
                    self._write(work, plan)
                    return
                planned = ahead.submit(copy_context().run, self._plan, job, plan.lines[-1])
                self._write(work, plan)

    def let_go(self, writer: Writer, job: Job) -> None:
        """Forget the documents and lines that it did not come to."""
        staged_documents.take(writer, job.collection_id, job.id)
        staged_lines.let_go(writer, job.collection_id, job.id)

    def _write(self, work: Work, plan: _Plan) -> None:
        """Write a batch, planned anew as often as the graph changed meanwhile."""
        current: _Plan | None = plan
        for _ in range(MAX_REPLANS):
            if current is None:
                return
            try:
                with stage("write"), self._database.write() as writer:
                    self._write_plan(writer, work, current)
            except _StaleError:
                current = self._plan(work.job, plan.lines[0] - 1, limit=len(plan.lines))
            else:
                for observed in current.observed:
                    observed.committed()
                return
        raise _StaleError(f"the graph changed under {MAX_REPLANS} plans in a row")

    def _plan(self, job: Job, after_line: int, *, limit: int | None = None) -> _Plan | None:
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
    ) -> _Plan:
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
        plan = _Plan(
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
        if plan.drafts:
            plan.observed = [observer.prepare(collection, plan.drafts) for observer in self._observers]
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

    def _embed(self, collection: Collection, plan: _Plan) -> None:
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
        spoken = sorted({draft.language for draft in plan.drafts})
        plan.unknown_languages = self._encoder.find_unknown_languages(collection, spoken)
        for text in times:
            span = time_constraint(text)
            plan.times[text] = TimeRow(
                text, span.start if span else None, span.end if span else None, plan.texts[text]
            )

    def _write_plan(self, writer: Writer, work: Work, plan: _Plan) -> None:
        """Write a batch."""
        collection_id = work.job.collection_id
        if collections.lock_graph_in(writer, collection_id) not in {plan.space, None}:
            raise _StaleError
        ids = [draft.external_id for draft in plan.drafts]
        if passages.versions(writer, collection_id, [*plan.versions, *ids]) != plan.versions:
            raise _StaleError
        named = {draft.document for draft in plan.drafts} | {source for _, source in plan.metadata_only.values()}
        sources = documents.add_missing(writer, collection_id, {source for source in named if source is not None})
        placed = {
            passage: (metadata, None if source is None else sources[source])
            for passage, (metadata, source) in plan.metadata_only.items()
        }
        changed = passages.set_metadata(writer, collection_id, placed) if placed else set()
        changed |= _set_readers(
            writer,
            collection_id,
            plan,
            {name: passage for name, (passage, _) in plan.versions.items() if passage in plan.metadata_only},
        )
        updated = len(changed)
        unchanged = len(plan.metadata_only) - updated
        created = sum(external_id not in plan.versions for external_id in ids)
        if plan.drafts:
            self._write_drafts(writer, collection_id, plan, created, sources)
        staged_lines.take(writer, collection_id, work.job.id, plan.lines)
        work.advance(writer, created=created, updated=updated + len(plan.drafts) - created, unchanged=unchanged)
        if plan.by_rules.sentences:
            work.warn(writer, "time-by-rules", plan.by_rules.sentences, plan.by_rules.detail)
        if plan.unknown_languages:
            count = sum(draft.language in plan.unknown_languages for draft in plan.drafts)
            work.warn(writer, "unknown-language", count, _describe_unknown(plan.unknown_languages))

    def _write_drafts(
        self, writer: Writer, collection_id: int, plan: _Plan, created: int, sources: Mapping[str, int]
    ) -> None:
        entities = graph_writer.insert_entities(writer, collection_id, plan.names)
        graph_writer.insert_times(writer, collection_id, list(plan.times.values()))
        _count_languages(writer, collection_id, plan)
        placed = passages.upsert(
            writer,
            collection_id,
            [
                PassageRow(
                    d.external_id,
                    d.title,
                    d.text,
                    d.language,
                    d.metadata,
                    d.content_hash,
                    plan.texts[d.key_text],
                    None if d.document is None else sources[d.document],
                )
                for d in plan.drafts
            ],
        )
        _set_readers(writer, collection_id, plan, placed)  # before rows are written that carry the passage's
        sentences = passages.list_sentences(writer, collection_id, placed.values())
        stored = _group_by_text(sentences)
        moved: dict[int, tuple[int, str | None]] = {}
        fresh: list[SentenceRow] = []
        fresh_entities: list[tuple[str, ...]] = []
        fresh_places: list[tuple[str, int]] = []
        ids: dict[tuple[str, int], int] = {}
        links: dict[int, list[str]] = {}
        for draft in plan.drafts:
            passage = placed[draft.external_id]
            for position, sentence in enumerate(draft.sentences):
                equal_sentences = stored.get((passage, sentence.text))
                if equal_sentences:
                    kept_id = equal_sentences.pop(0)
                    ids[draft.external_id, position] = kept_id
                    moved[kept_id] = (position, sentence.time_expression)
                    links[kept_id] = normalise_names(sentence.entities)
                    continue
                vector = plan.texts.get(sentence.text)
                if vector is None:
                    raise _StaleError
                fresh.append(SentenceRow(passage, position, sentence.text, sentence.time_expression, vector))
                fresh_entities.append(sentence.entities)
                fresh_places.append((draft.external_id, position))
        removed = [sentence for left in stored.values() for sentence in left]
        changed = sorted({passage for (passage, _), left in stored.items() if left})
        lost = LostSentences(removed, _changes(plan, placed, sentences, changed))
        for observed in plan.observed:
            observed.before(writer, lost)
        orphan_entities, orphan_times = graph_writer.delete_sentences(writer, collection_id, removed)
        orphan_times += graph_writer.move_sentences(writer, collection_id, moved)
        inserted = graph_writer.insert_sentences(writer, collection_id, fresh)
        ids.update(zip(fresh_places, inserted, strict=True))
        links.update(
            (sentence, normalise_names(names)) for sentence, names in zip(inserted, fresh_entities, strict=True)
        )
        orphan_entities += graph_writer.set_links(writer, collection_id, links)
        for observed in plan.observed:
            observed.after(writer, lost, PlacedSentences(placed, ids))
        removed_count = graph_writer.delete_orphans(writer, collection_id, orphan_entities, orphan_times)
        if graph_writer.find_known_names(writer, collection_id, collect_surfaces(plan.drafts)) != set(
            collect_surfaces(plan.drafts)
        ):
            raise _StaleError
        expressions = collect_time_expressions(plan.drafts)
        if graph_writer.find_known_times(writer, collection_id, expressions) != expressions:
            raise _StaleError
        length = lexical_index.index(
            writer,
            collection_id,
            [TermCounts(placed[external_id], frequencies) for external_id, frequencies in plan.terms.items()],
            ANALYSER,
        )
        collections.add_counts(
            writer,
            collection_id,
            passages=created,
            sentences=len(fresh) - len(removed),
            entities=entities - removed_count,
            lexical_length=length,
        )
        known_passages = [placed[draft.external_id] for draft in plan.drafts if draft.external_id in plan.versions]
        if known_passages:
            self._rekey_passages(writer, collection_id, known_passages)

    def _rekey_passages(self, writer: Writer, collection_id: int, passages: Sequence[int]) -> None:
        """Have what rests on these passages' keys follow them."""
        staged_embeddings.forget_passages(writer, collection_id, passages)
        if self._rebase is not None:
            self._rebase(writer, collection_id, passages)


def _readers(body: Mapping[str, Any]) -> Readers | None:
    return None if body["readers"] is None else normalise_readers(body["readers"])


def _set_readers(writer: Writer, collection_id: int, plan: _Plan, placed: Mapping[str, int]) -> set[int]:
    """Give passages the readers that their lines name; the passages that had others."""
    if not placed:
        return set()
    passages_by_readers: dict[Readers | None, list[int]] = defaultdict(list)
    for external_id, passage in placed.items():
        if external_id in plan.readers:
            passages_by_readers[plan.readers[external_id]].append(passage)
    if reader_sets.is_bound(writer, collection_id):
        for external_id in placed.keys() - plan.readers.keys() - plan.versions.keys():
            if lists := reader_sets.list_of_siblings(writer, collection_id, external_id):
                # Part of a document that not everyone may read is for those who may read all of it.
                shared = set.intersection(*map(set, lists))
                passages_by_readers[tuple(sorted(shared))].append(placed[external_id])
    sets = reader_sets.make(writer, collection_id, [one for one in passages_by_readers if one is not None])
    return {
        passage
        for readers, given in passages_by_readers.items()
        for passage in reader_sets.assign(writer, collection_id, None if readers is None else sets[readers], given)
    }


def _changes(
    plan: _Plan, placed: Mapping[str, int], before: Sequence[StoredSentence], changed: Sequence[int]
) -> dict[int, TextChange]:
    """Return the texts of these passages before and after."""
    texts_before: dict[int, list[str]] = defaultdict(list)
    for sentence in before:
        texts_before[sentence.passage_id].append(sentence.text)
    text_after = {placed[draft.external_id]: f"{draft.title or ''}\n{draft.text}" for draft in plan.drafts}
    return {passage: TextChange(" ".join(texts_before[passage]), text_after[passage]) for passage in changed}


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


def _describe_unknown(languages: Sequence[str]) -> str:
    return f"the encoder does not know {', '.join(languages)}: such passages are found by their words only"


def _count_languages(writer: Writer, collection_id: int, plan: _Plan) -> None:
    """Count the languages of the batch, in place of those that its passages had; before they are written."""
    languages = Counter(draft.language for draft in plan.drafts)
    replaced = [plan.versions[draft.external_id][0] for draft in plan.drafts if draft.external_id in plan.versions]
    languages.subtract(passages.count_languages(writer, collection_id, replaced))
    collections.add_languages(writer, collection_id, languages)


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


def _group_by_text(sentences: Sequence[StoredSentence]) -> dict[tuple[int, str], list[int]]:
    stored: dict[tuple[int, str], list[int]] = defaultdict(list)
    for sentence in sentences:
        stored[sentence.passage_id, sentence.text].append(sentence.id)
    return stored

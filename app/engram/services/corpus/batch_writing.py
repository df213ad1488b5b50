"""Writing a planned batch of passages, all of it in one transaction."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from engram.core.text.document_matching import match_revisions
from engram.providers.language import ANALYSER
from engram.services.corpus.batch_planning import BatchPlan
from engram.services.corpus.passage_drafts import collect_surfaces, collect_time_expressions, normalise_names
from engram.services.corpus.passage_observer import PassageObserver, TextChange
from engram.services.corpus.passage_return import take_returning
from engram.services.corpus.rekey import Rebase
from engram.services.jobs.work import Work
from engram.storage.corpus import (
    collections,
    documents,
    graph_writer,
    lexical_index,
    passages,
    reader_sets,
    removed_passages,
    staged_lines,
)
from engram.storage.corpus.graph_writer import SentenceRow
from engram.storage.corpus.lexical_index import TermCounts
from engram.storage.corpus.passages import PassageRow, ReturningPassage, StoredSentence
from engram.storage.corpus.reader_sets import Readers
from engram.storage.database import Writer
from engram.storage.maintenance import staged_embeddings

Replay = Callable[[Writer, int, Sequence[int]], None]
"""Makes learned states of sentences, in id order, anew from the log, under ``collections.lock_learning``."""


class StaleBatchError(Exception):
    """The graph changed between planning a batch and writing it."""


class BatchWriter:
    """Writes planned batches of ingest jobs.

    Args:
        rebase: has what verdicts taught of passage keys follow keys that change.
        replay_sentences: has what verdicts taught of sentences follow texts that are revised, and gives it to those
            of passages that return.
        observers: called when passages lose sentences.
    """

    def __init__(
        self, rebase: Rebase | None, replay_sentences: Replay, observers: Sequence[PassageObserver]
    ) -> None:
        self._rebase = rebase
        self._replay_sentences = replay_sentences
        self._observers = observers

    def write(self, writer: Writer, work: Work, plan: BatchPlan) -> None:
        """Write a batch.

        Raises:
            StaleBatchError: the graph changed since it was planned.
        """
        collection_id = work.job.collection_id
        if collections.lock_graph_in(writer, collection_id) not in {plan.space, None}:
            raise StaleBatchError
        ids = [draft.external_id for draft in plan.drafts]
        if passages.versions(writer, collection_id, [*plan.versions, *ids]) != plan.versions:
            raise StaleBatchError
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
            known = self._write_drafts(writer, collection_id, plan, created, sources)
            self._rekey_passages(writer, collection_id, known)
        staged_lines.take(writer, collection_id, work.job.id, plan.lines)
        work.advance(writer, created=created, updated=updated + len(plan.drafts) - created, unchanged=unchanged)
        if plan.by_rules.sentences:
            work.warn(writer, "time-by-rules", plan.by_rules.sentences, plan.by_rules.detail)
        if plan.unknown_languages:
            count = sum(draft.language in plan.unknown_languages for draft in plan.drafts)
            work.warn(writer, "unknown-language", count, _describe_unknown(plan.unknown_languages))

    def _write_drafts(
        self, writer: Writer, collection_id: int, plan: BatchPlan, created: int, sources: Mapping[str, int]
    ) -> list[int]:
        """Write passages with their sentences, names, times and terms.

        Returns:
            Passages that were there before, or returned: verdicts may have taught something about their keys.
        """
        entities = graph_writer.insert_entities(writer, collection_id, plan.names)
        graph_writer.insert_times(writer, collection_id, list(plan.times.values()))
        _count_languages(writer, collection_id, plan)
        new = [draft for draft in plan.drafts if draft.external_id not in plan.versions]
        returning = take_returning(writer, collection_id, new)
        placed = passages.upsert(writer, collection_id, _passage_rows(plan, sources, returning))
        _set_readers(writer, collection_id, plan, placed)  # before rows are written that carry the passage's
        added, removed_entities = self._write_sentences(writer, collection_id, plan, placed, returning)
        _check_names_and_times(writer, collection_id, plan)
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
            sentences=added,
            entities=entities - removed_entities,
            lexical_length=length,
        )
        return [placed[one] for one in placed if one in plan.versions or one in returning]

    def _rekey_passages(self, writer: Writer, collection_id: int, changed: Sequence[int]) -> None:
        """Have what rests on these passages' keys follow them."""
        if changed:
            staged_embeddings.forget_passages(writer, collection_id, changed)
            if self._rebase is not None:
                self._rebase(writer, collection_id, changed)

    def _write_sentences(
        self,
        writer: Writer,
        collection_id: int,
        plan: BatchPlan,
        placed: Mapping[str, int],
        returning: Mapping[str, ReturningPassage],
    ) -> tuple[int, int]:
        """Write sentences with their names and times, and remove those that are gone.

        Returns:
            How many sentences there are more than before, and how many names that nothing names any more were
            removed.
        """
        stored = passages.list_sentences(writer, collection_id, placed.values())
        matched = _match_sentences(plan, placed, stored, returning)
        taught = documents.find_taught(writer, collection_id, matched.removed) if matched.removed else set()
        _match_revised(matched, [sentence for sentence in stored if sentence.id in taught])
        changes = _changes(plan, placed, stored, matched.shrunk)
        with ExitStack() as observed:
            for observer in self._observers if changes else ():
                observed.enter_context(observer.change(writer, collection_id, changes))
            # Before a sentence is locked: who applies verdicts locks them under it.
            if matched.revised or returning:
                collections.lock_learning(writer, collection_id, exclusive=True)
            orphan_entities, orphan_times = graph_writer.delete_sentences(writer, collection_id, matched.removed)
            orphan_times += graph_writer.move_sentences(writer, collection_id, matched.moved)
            if matched.revised:
                self._revise_sentences(writer, collection_id, matched)
            inserted = graph_writer.insert_sentences(writer, collection_id, [one.row for one in matched.fresh])
            returned = sorted(one.row.id for one in matched.fresh if one.row.id is not None)
            if returned:
                removed_passages.mark_returned(writer, collection_id, returned)
                self._replay_sentences(writer, collection_id, returned)
            links = matched.links | {
                sentence: normalise_names(one.names) for sentence, one in zip(inserted, matched.fresh, strict=True)
            }
            orphan_entities += graph_writer.set_links(writer, collection_id, links)
        removed_entities = graph_writer.delete_orphans(writer, collection_id, orphan_entities, orphan_times)
        return len(matched.fresh) - len(matched.removed), removed_entities

    def _revise_sentences(self, writer: Writer, collection_id: int, matched: "_MatchedSentences") -> None:
        """Give judged sentences their new texts, and have what was learned of them follow."""
        revised = sorted(matched.revised)
        graph_writer.revise_sentences(writer, collection_id, {one: matched.revised[one] for one in revised})
        staged_embeddings.forget_sentences(writer, collection_id, revised)
        self._replay_sentences(writer, collection_id, revised)


@dataclass(frozen=True, slots=True)
class _FreshSentence:
    """A sentence to insert, and its names."""

    row: SentenceRow
    names: tuple[str, ...]


@dataclass(slots=True)
class _MatchedSentences:
    """Sentences of a batch beside those that are stored: an equal one of the same passage is kept.

    Attributes:
        moved: sentence that is kept -> its position and time expression.
        links: sentence that is kept -> its normalised names.
        revised: sentence that is kept with another text -> its row, and how alike the texts are.
        fresh: sentences to insert.
        removed: stored sentences that no passage has any more.
        shrunk: passages that they belong to, in id order.
    """

    moved: dict[int, tuple[int, str | None]] = field(default_factory=dict)
    links: dict[int, list[str]] = field(default_factory=dict)
    revised: dict[int, tuple[SentenceRow, float]] = field(default_factory=dict)
    fresh: list[_FreshSentence] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    shrunk: list[int] = field(default_factory=list)


def _match_sentences(
    plan: BatchPlan,
    placed: Mapping[str, int],
    stored: Sequence[StoredSentence],
    returning: Mapping[str, ReturningPassage],
) -> _MatchedSentences:
    """Match the sentences of drafts with stored ones by passage and text, each stored one at most once.

    Raises:
        StaleBatchError: a sentence that was stored when the batch was planned is gone.
    """
    matched = _MatchedSentences()
    stored_by_text = _group_by_text(stored)
    for draft in plan.drafts:
        passage = placed[draft.external_id]
        returned = returning.get(draft.external_id)
        for position, sentence in enumerate(draft.sentences):
            if equal_sentences := stored_by_text.get((passage, sentence.text)):
                equal_sentence = equal_sentences.pop(0)
                matched.moved[equal_sentence] = (position, sentence.time_expression)
                matched.links[equal_sentence] = normalise_names(sentence.entities)
                continue
            vector = plan.texts.get(sentence.text)
            if vector is None:
                raise StaleBatchError
            known = None if returned is None else returned.sentences[position]
            row = SentenceRow(passage, position, sentence.text, sentence.time_expression, vector, known)
            matched.fresh.append(_FreshSentence(row, sentence.entities))
    matched.removed = [sentence for ids in stored_by_text.values() for sentence in ids]
    matched.shrunk = sorted({passage for (passage, _), ids in stored_by_text.items() if ids})
    return matched


def _match_revised(matched: _MatchedSentences, taught: Sequence[StoredSentence]) -> None:
    """Keep sentences that verdicts taught something about and whose passage has them with a revised text.

    Args:
        taught: of the removed sentences.
    """
    by_passage: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for sentence in taught:
        by_passage[sentence.passage_id][sentence.id] = sentence.text
    revisions: dict[int, int] = {}
    for passage, texts in by_passage.items():
        places = [at for at, one in enumerate(matched.fresh) if one.row.passage_id == passage]
        revised = match_revisions(texts, [matched.fresh[at].row.text for at in places])
        for sentence_id, (at, likeness) in revised.items():
            fresh = matched.fresh[places[at]]
            revisions[places[at]] = sentence_id
            matched.revised[sentence_id] = (fresh.row, likeness)
            matched.moved[sentence_id] = (fresh.row.position, fresh.row.time_expression)
            matched.links[sentence_id] = normalise_names(fresh.names)
    matched.fresh = [one for at, one in enumerate(matched.fresh) if at not in revisions]
    matched.removed = [one for one in matched.removed if one not in matched.revised]


def _check_names_and_times(writer: Writer, collection_id: int, plan: BatchPlan) -> None:
    """Check that all names and times of the batch are stored.

    Raises:
        StaleBatchError: one that was stored when the batch was planned is gone.
    """
    names = set(collect_surfaces(plan.drafts))
    if graph_writer.find_known_names(writer, collection_id, names) != names:
        raise StaleBatchError
    expressions = collect_time_expressions(plan.drafts)
    if graph_writer.find_known_times(writer, collection_id, expressions) != expressions:
        raise StaleBatchError


def _passage_rows(
    plan: BatchPlan, sources: Mapping[str, int], returning: Mapping[str, ReturningPassage]
) -> list[PassageRow]:
    return [
        PassageRow(
            draft.external_id,
            draft.title,
            draft.text,
            draft.language,
            draft.metadata,
            draft.content_hash,
            plan.texts[draft.key_text],
            None if draft.document is None else sources[draft.document],
            returning.get(draft.external_id),
        )
        for draft in plan.drafts
    ]


def _set_readers(writer: Writer, collection_id: int, plan: BatchPlan, placed: Mapping[str, int]) -> set[int]:
    """Give passages the readers that their lines name; the passages that had others."""
    if not placed:
        return set()
    passages_by_readers: dict[Readers | None, list[int]] = defaultdict(list)
    for external_id, passage in placed.items():
        if external_id in plan.readers:
            passages_by_readers[plan.readers[external_id]].append(passage)
    if reader_sets.is_bound(writer, collection_id):
        documents_by_id = {draft.external_id: draft.document for draft in plan.drafts}
        for external_id in placed.keys() - plan.readers.keys() - plan.versions.keys():
            source = documents_by_id.get(external_id)
            if lists := reader_sets.list_of_siblings(writer, collection_id, external_id, source):
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
    plan: BatchPlan, placed: Mapping[str, int], before: Sequence[StoredSentence], changed: Sequence[int]
) -> dict[int, TextChange]:
    """Return the texts of these passages before and after."""
    texts_before: dict[int, list[str]] = defaultdict(list)
    for sentence in before:
        texts_before[sentence.passage_id].append(sentence.text)
    text_after = {placed[draft.external_id]: f"{draft.title or ''}\n{draft.text}" for draft in plan.drafts}
    return {passage: TextChange(" ".join(texts_before[passage]), text_after[passage]) for passage in changed}


def _describe_unknown(languages: Sequence[str]) -> str:
    return f"the encoder does not know {', '.join(languages)}: such passages are found by their words only"


def _count_languages(writer: Writer, collection_id: int, plan: BatchPlan) -> None:
    """Count the languages of the batch, in place of those that its passages had; before they are written."""
    languages = Counter(draft.language for draft in plan.drafts)
    replaced = [plan.versions[draft.external_id][0] for draft in plan.drafts if draft.external_id in plan.versions]
    languages.subtract(passages.count_languages(writer, collection_id, replaced))
    collections.add_languages(writer, collection_id, languages)


def _group_by_text(sentences: Sequence[StoredSentence]) -> dict[tuple[int, str], list[int]]:
    stored: dict[tuple[int, str], list[int]] = defaultdict(list)
    for sentence in sentences:
        stored[sentence.passage_id, sentence.text].append(sentence.id)
    return stored

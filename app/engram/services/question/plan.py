"""Step 2: plan the query, before the graph is read: names and times, embeddings, and what statements look for."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from engram.context import tenancy
from engram.context.errors import InvalidRequestError, LlmError, LlmNotConfiguredError
from engram.core.passage_keys import query_vector
from engram.core.ranking import bm25
from engram.core.ranking.profiles import Profile
from engram.core.text.temporal import find_time_expressions
from engram.providers.language import (
    Correction,
    Language,
    QuestionAnalysis,
    QuestionTerms,
    correct_question,
    normalise_entity,
    question_terms,
    read_question,
)
from engram.providers.llm import Llm
from engram.providers.ranking_prior import RankingPrior
from engram.services.encoders.encoder import EmbeddedTexts, Encoder
from engram.services.question.caches import CachedGraph, NearestLookup, VisibleLanguages, VocabularyCache
from engram.services.question.query import Fallback, HopStopRule, Query, create_query_id
from engram.services.question.retriever import Retriever, Retrievers
from engram.storage.corpus import lexical_index, reader_sets
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database, Reader
from engram.storage.question import passages_by_key
from engram.storage.question.metadata_filter import compile_filter
from engram.storage.question.query_focus import Focus, GraphLimits, Vector
from engram.telemetry.stages import milliseconds, stage

MOST_EXACT = 5_000
"""Passages that a caller sees, or a filter leaves, up to which they are searched exactly, index or none."""
ROWS_PER_SEARCH = 2_500
"""Passages that are compared in the time in which an index finds the nearest hundred, where all are seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """One query, analysed and embedded.

    Attributes:
        query_id: of the answer.
        question: the text of the query without its typing errors.
        corrections: of these.
        embedded: its vectors.
        profile: the constants that it is retrieved by.
        retriever: makes hops and ranks passages where a wing brings the profile.
        focus: what all its statements look for, and where.
        max_hops: hops at most.
        stop_rule: what may end the hops early.
        mentions: normalised name -> the name as the question writes it.
        possible: normalised name -> words of the question that are a name if an entity bears it and few passages
            name it, the longest first; empty once they were looked up.
        unknown: of the mentions, the names that no entity bears -> embedding, (d,).
        constraint: the time that the question names, or that the caller gave.
        language: of the question, as an ISO 639 code; that of its collection where its words do not tell. None: the
            collection has several.
        terms: what is matched word for word: term -> weight > 0.
        reading_share: share of these that are of one reading, in (0, 1]; 1 unless the question was read in several
            languages.
        unrelated_cosine: cosine of texts that have nothing to do with each other, see ``cosine_scale``.
        question_generation: of the question encoder that verdicts taught, 0 for none; None: it is not asked.
        collapses: whether duplicates of a better passage are left out.
        reranked: passage -> a reranker's log odds; empty if it gave none; None: it was not asked.
    """

    query_id: UUID
    query: Query
    question: str
    corrections: Sequence[Correction]
    embedded: EmbeddedTexts
    profile: Profile
    retriever: Retriever | None
    focus: Focus
    max_hops: int
    stop_rule: HopStopRule
    mentions: Mapping[str, str]
    possible: Mapping[str, str]
    unknown: Mapping[str, Vector]
    constraint: str | None
    language: str | None
    terms: Mapping[str, float]
    reading_share: float
    unrelated_cosine: float
    analyse_ms: float
    embed_ms: float
    warnings: tuple[Fallback, ...] = ()
    collapses: bool = False
    question_generation: int | None = None
    reranked: Mapping[int, float] | None = None

    @property
    def collection(self) -> Collection:
        """Collection to search, as it was when the request came in."""
        return self.query.scope.collection


@dataclass(frozen=True, slots=True)
class _ReadQuestion:
    """Words of a question, as ``QueryPlan`` has them, and its names and time.

    Attributes:
        text: without typing errors.
        expansions: words of each expansion -> how often they stand there.
    """

    text: str
    corrections: Sequence[Correction]
    terms: QuestionTerms
    analysis: QuestionAnalysis
    constraint: str | None
    expansions: Sequence[Counter[str]]
    warnings: tuple[Fallback, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Shared state of the steps of one search while they read one snapshot.

    Attributes:
        prior: shipped weights, from which the collection starts.
        keys: finds the passages nearest to the question among the keys that the process keeps.
        graph: what the process has read of the collection's graph.
    """

    reader: Reader
    plan: QueryPlan
    prior: RankingPrior
    keys: NearestLookup
    graph: CachedGraph


class QuestionEncoder(Protocol):
    """Encoder of questions that a collection's verdicts taught (a wing); its vectors are compared with passages.

    Generations of it follow each other. A plan is made by the one that this process last saw serve, and again if
    the search's snapshot has another one.
    """

    def find_generation(self, collection_id: int) -> int:
        """Return the generation that this process last saw serve; 0: none. It asks nobody."""
        ...

    def embed(self, collection: Collection, generation: int, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Embed questions by a generation that serves, unit vectors (n, d).

        None if it is 0, or cannot be had any more. No transaction is open.
        """
        ...


@dataclass(frozen=True, slots=True)
class QueryPlanner:
    """Makes plans.

    Attributes:
        llm: may judge between hops (stop_rule "llm").
        time_llm: looks for times in place of rules.
        question_encoder: makes the vectors of questions that passages are compared with; None: ``encoder`` does.
        retrievers: retrieval by the profiles of wings.
    """

    database: Database
    languages: VisibleLanguages
    encoder: Encoder
    language: Language
    limits: GraphLimits
    llm: Llm | None = None
    time_llm: Llm | None = None
    question_encoder: QuestionEncoder | None = None
    retrievers: Retrievers = field(default_factory=Retrievers)
    vocabularies: VocabularyCache = field(default_factory=VocabularyCache)

    def plan(
        self,
        query: Query,
        profile: Profile | None = None,
        question_generation: int | None = None,
        like: QueryPlan | None = None,
    ) -> QueryPlan:
        """Plan the query, and have few passages that the caller sees or the filter leaves searched exactly.

        Args:
            profile: constants in place of those that the query names.
            question_generation: of the taught question encoder; None: the one that last served.
            like: plan of the same question for another collection, whose vectors are taken over if they fit.

        Raises:
            InvalidRequestError: the query bounds hops that its strategy does not make, or needs a sufficiency that
                its strategy or profile does not compute; or the wing of its profile is off; or the question has too
                many tokens.
            LlmNotConfiguredError: ``stop_rule`` is "llm" and no endpoint is configured.
            EmbeddingSpaceMismatchError: the collection's vectors are of another encoder.
        """
        query = self._check(query)
        retriever = self.retrievers.find(query.profile)
        profile = profile or self.retrievers.find_profile(query.profile)
        began = time.perf_counter()
        with stage("analyse"):
            read = self._read_question(query)
        analysed = time.perf_counter()
        embedded = self._embed_texts(query, read, like)
        generation = self._choose_generation(query, question_generation)
        focus = self._build_focus(query, read, profile, embedded, generation)
        plan = QueryPlan(
            query_id=query.id or create_query_id(),
            query=query,
            question=read.text,
            corrections=read.corrections,
            embedded=embedded,
            profile=profile,
            retriever=retriever,
            focus=focus,
            max_hops=query.max_hops or profile.max_hops,
            stop_rule=query.stop_rule or ("coverage" if query.strategy == "graph" and profile.recalls else "none"),
            mentions={normalise_entity(mention): mention for mention in read.analysis.entities},
            possible={normalise_entity(mention): mention for mention in read.analysis.possible},
            unknown={},
            constraint=read.constraint,
            language=read.terms.language,
            terms=bm25.expand_query(read.terms.counts, read.expansions),
            reading_share=read.terms.size / max(read.terms.counts.total(), 1),
            unrelated_cosine=self.encoder.measure_unrelated_cosine(query.scope.collection),
            analyse_ms=milliseconds(began, analysed),
            embed_ms=milliseconds(analysed, time.perf_counter()),
            warnings=read.warnings,
            collapses=profile.collapses if query.collapse_duplicates is None else query.collapse_duplicates,
            question_generation=generation,
        )
        return self._narrow(plan)

    def plan_again(self, plan: QueryPlan, collection: Collection, question_generation: int) -> QueryPlan:
        """Plan the same question for the collection as it is now.

        Args:
            question_generation: of the taught question encoder that serves now.

        Raises:
            EmbeddingSpaceMismatchError: its vectors are of another encoder.
        """
        query = replace(plan.query, id=plan.query_id, scope=replace(plan.query.scope, collection=collection))
        again = self.plan(query, plan.profile, question_generation)
        return replace(again, stop_rule=plan.stop_rule, warnings=plan.warnings)

    def embed_mentions(self, plan: QueryPlan, unknown: Sequence[str]) -> QueryPlan:
        """Return the plan with the embeddings of these names.

        Few need any: most names that a question mentions are names of entities, and one embedding takes as long as
        the walk.
        """
        began = time.perf_counter()
        with stage("embed"):
            vectors = self.encoder.embed(plan.collection, [plan.mentions[name] for name in unknown])
        return replace(
            plan,
            unknown={**plan.unknown, **dict(zip(unknown, vectors, strict=True))},
            embed_ms=plan.embed_ms + milliseconds(began, time.perf_counter()),
        )

    def _check(self, query: Query) -> Query:
        """Refuse what cannot be asked; the query with the languages of the passages that its caller sees."""
        collection = self.languages.restrict(query.scope.collection)
        self.encoder.check(collection)
        self.encoder.check_question(query.text, [expansion.text for expansion in query.expansions])
        self._check_options(query)
        return replace(query, scope=replace(query.scope, collection=collection))

    def _ranks_by_features(self, query: Query) -> bool:
        return query.strategy == "graph" and self.retrievers.find(query.profile) is None

    def _read_question(self, query: Query) -> _ReadQuestion:
        """Correct the question and read its words, names and time."""
        languages = query.scope.collection.languages
        is_wing_profile = self.retrievers.find(query.profile) is not None
        text, corrections = (query.text, ()) if is_wing_profile else self._correct(query)
        terms = read_question(text, languages)
        usual = max(languages, key=lambda code: languages[code], default=None)
        analysis = QuestionAnalysis((), None)  # without a walk neither names nor times are used
        if query.strategy == "graph":
            analysis = self.language.analyse_question(text, terms.language or usual)
        constraint, warnings = self._choose_time(query, text, analysis)
        expansions = [question_terms(expansion.text, languages) for expansion in query.expansions]
        return _ReadQuestion(text, corrections, terms, analysis, constraint, expansions, warnings)

    def _build_focus(
        self,
        query: Query,
        read: _ReadQuestion,
        profile: Profile,
        embedded: EmbeddedTexts,
        generation: int | None,
    ) -> Focus:
        """Build what all statements of the query look for, and where."""
        vectors, beside = embedded.vectors
        # A search by keys alone has nothing else to learn by, so it reads all that keys have.
        policy = profile.policy if query.strategy == "graph" else replace(profile.policy, evolved_keys=True)
        constraint = read.constraint
        intervals = find_time_expressions(constraint) if constraint and self._ranks_by_features(query) else ()
        return Focus(
            query.scope.collection,
            vectors[0],
            limits=self.limits,
            time_vector=beside[-1] if constraint else None,
            use_memory=query.memory == "read",
            policy=policy,
            filter=compile_filter(query.filter),
            among=query.among,
            without=query.without,
            intervals=tuple(intervals),
            key_vector=self._embed_for_passages(query, read.text, generation, vectors[0], vectors[1:]),
        )

    def _embed_texts(self, query: Query, read: _ReadQuestion, like: QueryPlan | None) -> EmbeddedTexts:
        """Embed the question, its expansions and its time, unless ``like`` has the same vectors."""
        collection = query.scope.collection
        # Expansions only where keys are compared by vectors.
        units = [] if query.strategy == "lexical" else [expansion.text for expansion in query.expansions]
        questions, compared = [read.text, *units], [read.constraint] if read.constraint else []
        key = (collection.encoder, *questions, None, *compared)
        if like is not None and like.embedded.key == key:
            return like.embedded
        with stage("embed"):
            return EmbeddedTexts(key, self.encoder.embed_both(collection, questions, compared))

    def _correct(self, query: Query) -> tuple[str, Sequence[Correction]]:
        """Return the question without typing errors, and these."""
        collection = query.scope.collection

        @contextmanager
        def open_words() -> Iterator[lexical_index.CollectionWords]:
            with self.database.read() as reader:
                yield lexical_index.CollectionWords(reader, collection.id)

        vocabulary = self.vocabularies.open(collection)
        encoder = self.encoder
        return correct_question(
            query.text, collection.languages, open_words, vocabulary, encoder.is_one_token, encoder.count_tokens
        )

    def _choose_generation(self, query: Query, generation: int | None) -> int | None:
        """Return the generation of the taught question encoder to embed by; None if it is not asked.

        The ranking of strategy ``graph`` is fitted to the encoder as it is.
        """
        if self.question_encoder is None or query.memory != "read" or query.strategy == "graph":
            return None
        return (
            self.question_encoder.find_generation(query.scope.collection.id) if generation is None else generation
        )

    def _embed_for_passages(
        self, query: Query, question: str, generation: int | None, vector: Vector, expansions: Vector
    ) -> Vector | None:
        """Return what passage keys are compared with, (d,); None for the question's own vector.

        Args:
            question: without typing errors.
            generation: of the taught question encoder; None: it is not asked.
            vector: of the question, (d,).
            expansions: vectors of its expansions, (n, d).
        """
        taught = None
        if self.question_encoder is not None and generation is not None:
            with stage("embed") if generation else nullcontext():  # generation 0 embeds nothing
                taught = self.question_encoder.embed(query.scope.collection, generation, [question])
        own = vector if taught is None else taught[0]
        if len(expansions):
            return query_vector.expand_query(own, expansions)
        return None if taught is None else own

    def _narrow(self, plan: QueryPlan) -> QueryPlan:
        """Have few passages searched exactly, those that the caller sees or the filter leaves.

        More that the caller sees too, if they are few of all. An index would find others, and drop them. Row
        security keeps callers who do not see all from the index of metadata, so their filters choose nothing.
        """
        focus, collection = plan.focus, plan.collection
        sees_all = tenancy.get_visibility().readers is None
        if "passage" not in collection.indexed or (sees_all and (focus.filter is None or focus.among is not None)):
            return plan
        with self.database.read() as reader:
            if sees_all and focus.filter is not None:
                few = passages_by_key.list_few_matching(reader, collection, focus.filter, MOST_EXACT)
            else:
                few = reader_sets.list_visible(reader, collection.id, MOST_EXACT)
            if few is None:
                by_readers = not sees_all and reader_sets.sees_small_share(reader, collection, ROWS_PER_SEARCH)
                return replace(plan, focus=replace(focus, by_readers=by_readers))
        among = few if focus.among is None else sorted(set(few).intersection(focus.among))
        return replace(plan, focus=replace(focus, among=among))

    def _check_options(self, query: Query) -> None:
        """Refuse options that do not go together."""
        features_rank = self._ranks_by_features(query)
        if query.strategy != "graph" and (query.max_hops is not None or query.stop_rule is not None):
            raise InvalidRequestError(
                f"Strategy {query.strategy!r} makes no hops: max_hops and stop_rule go with strategy 'graph'."
            )
        if query.stop_rule == "learned" and not features_rank:
            raise InvalidRequestError("stop_rule 'learned' goes with profile 'default'.")
        if query.min_sufficiency is not None and not features_rank:
            raise InvalidRequestError("min_sufficiency goes with strategy 'graph' and profile 'default'.")
        if query.stop_rule == "llm" and self.llm is None:
            raise LlmNotConfiguredError("stop_rule 'llm' needs ENGRAM_LLM_BASE_URL to be set.")

    def _choose_time(
        self, query: Query, question: str, analysis: QuestionAnalysis
    ) -> tuple[str | None, tuple[Fallback, ...]]:
        """Return the time constraint, and a warning if rules replaced the model.

        A given time is kept for verdicts.
        """
        if query.time_constraint is not None or query.strategy != "graph":
            return query.time_constraint or None, ()
        if self.time_llm is not None:
            try:
                return self.time_llm.extract_time_constraint(question), ()
            except LlmError as error:
                return analysis.time_expression, (Fallback("time-by-rules", error.detail),)
        return analysis.time_expression, ()

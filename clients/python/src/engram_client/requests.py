"""Generated from openapi.json by ``generate.py``."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union

Principal: TypeAlias = str


class AccessKeyIn(TypedDict):
    """
    A key to make.
    """

    days: NotRequired[float | None]
    """
    For how long it counts.
    """
    judge: NotRequired[str | None]
    """
    Whose its verdicts are; by default the principal's.
    """
    llm_tokens: NotRequired[int | None]
    """
    What a language model may read and write for it on a day (UTC).
    """
    name: str
    """
    Whose key it is. One principal may have several.
    """
    principals: NotRequired[list[Principal]]
    """
    What it is among the readers of passages, as `group:hr`; see docs/access.md.
    """
    scopes: dict[
        str,
        list[
            Literal[
                "query",
                "read",
                "ingest",
                "judge",
                "judge-as",
                "audit",
                "moderate",
                "vouch",
                "llm",
                "act-as",
                "admin",
            ]
        ],
    ]
    """
    What it allows, by collection; `*` stands for all of the tenant's, those to come included.
    """
    trusted: NotRequired[bool]
    """
    Whether that judge counts in full from its first verdict on; see docs/access.md.
    """


class AlignIn(TypedDict):
    """
    The graph whose names are to be joined where they mean the same.
    """

    collection: NotRequired[str]
    graph: NotRequired[str | None]
    """
    A graph of its own; null: the collection's.
    """
    preview: NotRequired[bool]
    """
    Only tell which.
    """


A: TypeAlias = str


class ArmIn(TypedDict):
    """
    Memory, profile and strategy of an answer.
    """

    memory: NotRequired[Literal["off", "read"]]
    """
    Whether learned state is read.
    """
    profile: NotRequired[Literal["paper", "default"]]
    """
    'paper': the published method, as far as docs/paper.md says; 'default': ours. Makes no difference to strategies other than 'graph'.
    """
    strategy: NotRequired[Literal["graph", "dense", "lexical", "hybrid"]]
    """
    'graph': walk the entity-sentence-passage graph. The others rank passages by their keys alone, with neither hops nor recall: 'dense' by cosine, 'lexical' by BM25, 'hybrid' by both, fused by reciprocal ranks. With memory 'read' a passage's key is its evolved one, if it has one.
    """


class BudgetIn(TypedDict):
    """
    Limits of a session's cost.
    """

    llm_calls: NotRequired[int]
    """
    Completions, repetitions included; 0: no LLM, rules alone.
    """
    passages: NotRequired[int]
    """
    Distinct passages that its rounds read.
    """
    rounds: NotRequired[int]
    """
    Rounds that retrieve; of planner 'agent' turns, of which it has 24 by default.
    """
    seconds: NotRequired[float]
    """
    Of work on it; waiting for a worker is free.
    """
    tokens: NotRequired[int]
    """
    Of prompts and completions, as far as the endpoint tells.
    """


PassageId: TypeAlias = str


PassageId1: TypeAlias = int


class CitedPassage(TypedDict):
    """
    A passage as a whole, by your id.
    """

    passage_id: PassageId | PassageId1


class CitedSentence(TypedDict):
    """
    A sentence by its id, as answers give it.
    """

    sentence_id: int | str


FileId: TypeAlias = str


class CleanupIn(TypedDict):
    """
    Files that a comparison named as stale or deleted.
    """

    file_ids: list[FileId]


CompareIn = TypedDict(
    "CompareIn",
    {
        "a": NotRequired[ArmIn],
        "as": NotRequired[list[A] | None],
        "b": NotRequired[ArmIn],
        "collection": NotRequired[str],
        "filter": NotRequired[dict[str, Any] | None],
        "max_hops": NotRequired[int | None],
        "stop_rule": NotRequired[Literal["none", "coverage", "learned", "llm"] | None],
        "time_constraint": NotRequired[str | None],
        "top_k": NotRequired[int],
    },
)


class ComparisonFilter(TypedDict):
    """
    A comparison of one metadata field with a value.
    """

    key: str
    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    value: str | bool | int | float | list[str | bool | int | float]


NameItem: TypeAlias = str


class ConditionIn(TypedDict):
    """
    A condition on the metadata of passages.
    """

    comparison_operator: Literal[
        "contains",
        "not contains",
        "start with",
        "end with",
        "is",
        "is not",
        "in",
        "not in",
        "empty",
        "not empty",
        "null",
        "not null",
        "=",
        "≠",
        ">",
        "<",
        "≥",
        "≤",
        "before",
        "after",
    ]
    name: str | list[NameItem]
    """
    The metadata field. Of several, one has to meet the condition; none, if it is a negative one.
    """
    value: NotRequired[str | bool | int | float | list[str | bool | int | float] | None]


class ContentPart(TypedDict):
    """
    A piece of a message. Only text is read; a warning names the other pieces.
    """

    text: NotRequired[str | None]
    """
    Needed in a piece of text.
    """
    type: str


class ContextIn(TypedDict):
    """
    Context that each passage gets from its document: the passages before and after it, or its section.
    """

    after: NotRequired[int]
    """
    Passages after it, at most.
    """
    before: NotRequired[int]
    """
    Passages before it, at most.
    """
    characters: NotRequired[int]
    """
    Of the passages around one, at most; nearer ones have room first.
    """
    section: NotRequired[bool]
    """
    Instead, the passages below the same heading on both sides of it; of a passage without one, those without.
    """


class CountIn(TypedDict):
    """
    Collection and graph whose predicates are counted.
    """

    collection: NotRequired[str]
    graph: NotRequired[str | None]
    """
    A graph of its own; null: the collection's.
    """


class DirectoryIn(TypedDict):
    """
    A directory to name.
    """

    name: str
    parent_id: NotRequired[str | None]


Reader: TypeAlias = str


class DocumentChangeIn(TypedDict):
    """
    Changes to a document besides its text; at least one field.
    """

    folder: NotRequired[str | None]
    """
    The folder that it is imported from now.
    """
    readers: NotRequired[list[Reader] | None]
    """
    Who may read its passages. Null: everyone who may query the collection. Empty: nobody but `admin`.
    """
    replaced_by: NotRequired[str | None]
    """
    Source of the document that replaces it. Null: none does, whatever texts state.
    """
    source: NotRequired[str | None]
    """
    Its new name. Ids of its passages that begin with the name, and `metadata.source`, follow.
    """
    valid_from: NotRequired[str | None]
    """
    Since when it holds. Null: that is not known.
    """


class DocumentIn(TypedDict):
    """
    A document that the body has whole. Passages of it that the body lacks are removed.
    """

    digest: NotRequired[str | None]
    """
    A hash of the file, by which you know it again.
    """
    folder: NotRequired[str | None]
    """
    The folder that it was read from.
    """
    missing: NotRequired[bool]
    """
    The importer no longer has it. It stays, unless another document of the body is its new version: a new one with most of its text, or with its digest.
    """
    notes: NotRequired[list[str]]
    """
    How it was read and what was left out.
    """
    pages: NotRequired[int | None]
    source: str
    """
    Its name, which its passages give as `document`.
    """
    titled_by_name: NotRequired[bool | None]
    """
    Whether the titles of all its passages are its file's name, or of none.
    """


ExpandIn = TypedDict(
    "ExpandIn",
    {
        "as": NotRequired[list[A] | None],
        "collection": NotRequired[str],
        "methods": list[
            Literal[
                "prf",
                "diver",
                "hyde",
                "decomposition",
                "facets",
                "contrastive",
                "specification",
                "rewriting",
                "synonyms",
                "step-back",
            ]
        ],
        "passages": NotRequired[int],
    },
)


class ExpansionIn(TypedDict):
    """
    A query expansion; passage keys evolve by those that a verdict validates.
    """

    method: str
    text: str


class ExperimentArmIn(TypedDict):
    """
    An arm: how a part of the units is served.
    """

    memory: NotRequired[Literal["off", "read"]]
    name: str
    percent: float
    """
    Of all units; nobody is asked by an arm of 0.
    """
    profile: NotRequired[Literal["paper", "default"]]
    strategy: NotRequired[Literal["graph", "dense", "lexical", "hybrid"]]


class ExperimentIn(TypedDict):
    """
    Arms that queries are given which say none themselves.
    """

    arms: list[ExperimentArmIn]
    """
    Percentages add up to 100 at most; what is left over goes to no arm.
    """


class ExplorationIn(TypedDict):
    """
    Exploration of low-ranked passages in answers.
    """

    seed: NotRequired[int | None]
    """
    With a seed, draws follow from it, the unit (without one the query's id) and the question's text, and can be made again; without one, from the query's id.
    """
    share: NotRequired[float | None]
    """
    Of the queries, in [0, 1].
    """
    slots: NotRequired[int | None]
    """
    Positions at the end of an answer, at most; never its first. By default 1.
    """


class FactIn(TypedDict):
    """
    A fact that a source states.
    """

    confidence: NotRequired[float]
    kind: NotRequired[Literal["entity", "date", "number", "text"]]
    """
    What the object is.
    """
    object: str
    predicate: str
    sentence: NotRequired[str | None]
    """
    How the source says it; by default the fact itself.
    """
    subject: str
    valid_from: NotRequired[str | None]
    """
    First day on which it holds.
    """
    valid_to: NotRequired[str | None]
    """
    First day on which it no longer holds.
    """


FactRevokeIn = TypedDict(
    "FactRevokeIn",
    {
        "all": NotRequired[bool],
        "by": NotRequired[str | None],
        "collection": NotRequired[str],
        "from": NotRequired[str | None],
        "graph": NotRequired[str | None],
        "judge": NotRequired[str | None],
        "kinds": NotRequired[list[Literal["confirm", "contradict", "supersede", "close", "merge"]]],
        "preview": NotRequired[bool],
        "to": NotRequired[str | None],
    },
)


Entity: TypeAlias = str


FactSearchIn = TypedDict(
    "FactSearchIn",
    {
        "as": NotRequired[list[A] | None],
        "as_of": NotRequired[str | None],
        "collection": NotRequired[str],
        "entities": NotRequired[list[Entity]],
        "entity_ids": NotRequired[list[int | str]],
        "graph": NotRequired[str | None],
        "include_closed": NotRequired[bool],
        "max_edges": NotRequired[int],
        "min_belief": NotRequired[float],
        "object": NotRequired[str | None],
        "predicate": NotRequired[str | None],
        "query": NotRequired[str | None],
        "subject": NotRequired[str | None],
        "token_budget": NotRequired[int],
        "top_k": NotRequired[int],
        "valid_on": NotRequired[str | None],
    },
)


SupportingPassage: TypeAlias = str


class GraphMergeIn(TypedDict):
    """
    A graph of facts that is merged into another one.
    """

    collection: NotRequired[str]
    into: NotRequired[str | None]
    """
    A graph of its own; null: the collection's.
    """
    judge: NotRequired[str | None]
    """
    Who merges; by default the access key's judge, another takes `judge-as`.
    """


Collection: TypeAlias = str


JointQueryIn = TypedDict(
    "JointQueryIn",
    {
        "arm": NotRequired[ArmIn],
        "as": NotRequired[list[A] | None],
        "collapse_duplicates": NotRequired[bool | None],
        "collection": NotRequired[str],
        "collections": NotRequired[list[Collection]],
        "context": NotRequired[ContextIn | None],
        "expansions": NotRequired[list[ExpansionIn]],
        "filter": NotRequired[dict[str, Any] | None],
        "include": NotRequired[list[Literal["sentences", "entities", "trace", "context", "sufficiency_level"]]],
        "max_hops": NotRequired[int | None],
        "min_sufficiency": NotRequired[float | Literal["auto"] | None],
        "stop_rule": NotRequired[Literal["none", "coverage", "learned", "llm"] | None],
        "time_constraint": NotRequired[str | None],
        "top_k": NotRequired[int],
        "trace_id": NotRequired[str | None],
        "unit": NotRequired[str | None],
    },
)


class JudgeIn(TypedDict):
    """
    Settings of a judge; an absent or null one is the default of every judge.
    """

    contested_share: NotRequired[float | None]
    """
    The same for verdicts that go against what other judges said of the sentence.
    """
    daily_share: NotRequired[float | None]
    """
    How much of the distance between a memory and its verdicts it may close in a day; 1: all of it.
    """
    daily_weight_verdicts: NotRequired[int | None]
    """
    Verdicts a day that may teach sufficiency and the trust in a reranker.
    """
    observation_noise_negative: NotRequired[float | None]
    """
    R_neg: unreliability of its rejections.
    """
    observation_noise_positive: NotRequired[float | None]
    """
    R_pos: unreliability of its support.
    """
    trusted: NotRequired[bool | None]
    """
    Whether it counts in full, whoever brings its verdicts.
    """


class ListedDocumentIn(TypedDict):
    """
    A document that a folder has.
    """

    digest: str | None
    """
    A hash of what you would upload: the file, and metadata if you have any. Null: the document is there but cannot be read; it stays as it is.
    """
    readers: NotRequired[list[Reader] | None]
    """
    Who may read it. Null: everyone who may query the collection. Empty: nobody but `admin`. Absent: they are not compared.
    """
    source: str


class ManifestEntryIn(TypedDict):
    """
    A file that the source has.
    """

    checksum: str
    """
    Another one after each change.
    """
    filename: str
    path: NotRequired[str]
    """
    Of its directory; empty: none.
    """


EarlierFolder: TypeAlias = str


class ManifestIn(TypedDict):
    """
    All documents that a folder has.
    """

    documents: list[ListedDocumentIn]
    """
    Each source once.
    """
    earlier_folders: NotRequired[list[EarlierFolder]]
    """
    What this folder was called before.
    """
    folder: str
    """
    Where the documents come from, as you name it in `folder` when you ingest them. Only documents of this folder are to be deleted.
    """


class MergeIn(TypedDict):
    """
    Entities that are one with another.
    """

    collection: NotRequired[str]
    entities: list[int | str]
    judge: NotRequired[str | None]
    """
    By default the access key's judge; another takes the scope `judge-as`.
    """


class MetadataConditionIn(TypedDict):
    """
    Conditions on the metadata of passages.
    """

    conditions: NotRequired[list[ConditionIn] | None]
    logical_operator: NotRequired[Literal["and", "or"] | None]


Document: TypeAlias = str


class OptionsIn(TypedDict):
    """
    Options of a planner; a planner with one path heeds ``without`` alone.
    """

    combine: NotRequired[Literal["vote", "synthesis"]]
    """
    'tree': several conclusions become one by a vote, weighed by ratings, or by the LLM.
    """
    coverage: NotRequired[float]
    """
    'rfm-rag': share of the question's triples that the pool has to cover for the session to end. Below it, the missing part is asked for.
    """
    depth: NotRequired[int]
    """
    'tree': steps from the question to a conclusion.
    """
    documents: NotRequired[list[Document]]
    """
    'agent': passages that go by, in this order; by default those that the question finds.
    """
    exploration: NotRequired[float]
    """
    'tree': how much what was seldom tried is favoured.
    """
    graph: NotRequired[str | None]
    """
    'agent': when the session ends, its facts are stated in the collection's graph of this name, to be searched and merged; takes the scopes `ingest` and `judge`.
    """
    insert_only: NotRequired[bool]
    """
    'agent': it may insert and search, but not update what it inserted.
    """
    rollouts: NotRequired[int]
    """
    'tree': ways to a conclusion that are tried.
    """
    seed: NotRequired[int]
    """
    'tree': of draws between equally promising states.
    """
    together: NotRequired[int]
    """
    'tree': rollouts that run side by side.
    """
    width: NotRequired[int]
    """
    'tree': actions tried from one state.
    """
    without: NotRequired[list[Literal["consolidation", "update", "extractor", "binding"]]]
    """
    Parts to leave out, to measure what they are worth. With an LLM 'consolidation': nothing is sifted; 'update': nothing is noted; 'extractor': neither. Of 'pool' 'binding': what is found is ranked by likeness alone.
    """


PassageCountIn = TypedDict(
    "PassageCountIn",
    {
        "as": NotRequired[list[A] | None],
        "by": NotRequired[str | None],
        "filter": NotRequired[dict[str, Any] | None],
        "limit": NotRequired[int],
    },
)


Id: TypeAlias = str
"""
Yours; the same id again replaces the passage.
"""


Id1: TypeAlias = int
"""
Yours; the same id again replaces the passage.
"""


Sentence: TypeAlias = str


class PassageIn(TypedDict):
    """
    A passage to ingest; the BEIR layout (``_id``, ``metadata.sentences``) is understood as well.
    """

    document: NotRequired[str | None]
    """
    The document that it is made of.
    """
    id: Id | Id1
    """
    Yours; the same id again replaces the passage.
    """
    language: NotRequired[str | None]
    """
    Of its text. Null: the collection's `language`, else as Engram recognises it.
    """
    metadata: NotRequired[dict[str, Any]]
    """
    Kept as given, its texts as Unicode composes them (NFC), up to 1000 values and 65536 bytes as JSON; queries can filter on it.
    """
    readers: NotRequired[list[Reader] | None]
    """
    Whom it is shown to, as `user:ana` or `group:hr`. Null: everyone who may query the collection. Empty: nobody but `admin`. Absent: as before; of a new passage, as null.
    """
    sentences: NotRequired[list[Sentence] | None]
    """
    The passage's sentences in order, together no longer than a text may be; without them Engram splits the text itself.
    """
    text: str
    title: NotRequired[str | None]


class PassagesIn(TypedDict):
    """
    Up to 1,000 passages in one JSON document.
    """

    collection: NotRequired[str | None]
    """
    The collection's name; absent: as the request's query says, else `default`.
    """
    documents: NotRequired[list[DocumentIn]]
    """
    Documents that the passages are the whole of.
    """
    passages: list[PassageIn]


class PredicateIn(TypedDict):
    """
    Whether a subject has one object at a time under a predicate.
    """

    collection: NotRequired[str]
    functional: bool | None
    """
    null: let counts say.
    """
    graph: NotRequired[str | None]
    """
    A graph of its own; null: the collection's.
    """


class PublishedIn(TypedDict):
    """
    Whether verdicts teach sentence memories and passage keys.
    """

    learn: bool
    """
    False: verdicts leave memories and keys as they are, and wait in the log until it is true.
    """


class PulledScoreIn(TypedDict):
    """
    A score of another product, as a pull last sent it.
    """

    digest: str
    """
    SHA-256 of everything that the rating says.
    """
    judge: str
    queries: list[str]
    """
    Queries that were rated.
    """
    rating: Literal["up", "down"] | None
    """
    Null: the score was deleted, and its rating revoked.
    """
    revision: int
    """
    How often it was sent.
    """
    score_id: str
    """
    The product's id of the score.
    """
    scored_at: str


class PulledScoresIn(TypedDict):
    """
    Scores to store in place of what was stored of them.
    """

    scores: list[PulledScoreIn]


QueryIn = TypedDict(
    "QueryIn",
    {
        "arm": NotRequired[ArmIn],
        "as": NotRequired[list[A] | None],
        "collapse_duplicates": NotRequired[bool | None],
        "collection": NotRequired[str],
        "context": NotRequired[ContextIn | None],
        "expansions": NotRequired[list[ExpansionIn]],
        "filter": NotRequired[dict[str, Any] | None],
        "include": NotRequired[list[Literal["sentences", "entities", "trace", "context", "sufficiency_level"]]],
        "max_hops": NotRequired[int | None],
        "min_sufficiency": NotRequired[float | Literal["auto"] | None],
        "stop_rule": NotRequired[Literal["none", "coverage", "learned", "llm"] | None],
        "time_constraint": NotRequired[str | None],
        "top_k": NotRequired[int],
        "trace_id": NotRequired[str | None],
        "unit": NotRequired[str | None],
    },
)


PassageId2: TypeAlias = str


PassageId3: TypeAlias = int


class QuotedSentence(TypedDict):
    """
    A sentence by your id of its passage and its text.
    """

    passage_id: PassageId2 | PassageId3
    text: str


class RankingOptionsIn(TypedDict):
    """
    Options of the ranking. `hybrid_search` is refused: the collection weighs words and vectors itself.
    """

    ranker: NotRequired[Literal["auto", "none", "default-2024-11-15"]]
    """
    `none`: by the encoder alone, without what was learned.
    """
    score_threshold: NotRequired[float]
    """
    Only passages with at least this score.
    """


class ReadersIn(TypedDict):
    """
    The readers of a passage.
    """

    readers: list[Reader] | None
    """
    As `user:ana` or `group:hr`. Null: everyone who may query the collection. Empty: nobody but `admin`.
    """


class ReadingBudgetIn(TypedDict):
    """
    Most that reading a text by the language model may cost; the rest is not read.
    """

    llm_calls: NotRequired[int]
    """
    Completions, repetitions included; a text takes two a piece.
    """
    seconds: NotRequired[float]
    tokens: NotRequired[int]
    """
    Of prompts and completions, as far as the endpoint tells.
    """


class ReembedIn(TypedDict):
    """
    Encoder to move a collection to.
    """

    model: NotRequired[str | None]
    """
    One that the service runs, by name; by default that which the collection is not of.
    """


class RekeyIn(TypedDict):
    """
    Parts of a passage to make keys of.
    """

    key_building: Literal["full", "title", "abstract", "keywords"]
    """
    'full': title and text; 'title': the title, of a passage without one its first sentence; 'abstract': the title and the first three sentences; 'keywords': the twenty terms that tell most of the passage.
    """


class ReplayIn(TypedDict):
    """
    Moment of a replay, and the name of the new collection.
    """

    into: NotRequired[str | None]
    """
    The name of the new collection; by default the collection's and the moment.
    """
    until: str
    """
    What was learned by then; not yet to come.
    """


class RetrievalSettingIn(TypedDict):
    """
    Bounds on the answer.
    """

    score_threshold: NotRequired[float | None]
    """
    Only passages with at least this score.
    """
    top_k: int
    """
    Passages wanted.
    """


class RetryIn(TypedDict):
    """
    Filter of the parked verdicts to retry: all of a collection, or those of a judge.
    """

    collection: NotRequired[str]
    judge: NotRequired[str | None]
    """
    Only this judge's.
    """


class RevisionIn(TypedDict):
    """
    A judge's word on a fact.
    """

    action: Literal["confirm", "contradict", "supersede", "close"]
    by: NotRequired[int | str | None]
    """
    Of supersede: the fact that comes after.
    """
    confidence: NotRequired[float]
    fact_id: int | str
    reason: NotRequired[str | None]
    until: NotRequired[str | None]
    """
    Of supersede and close: first day it no longer holds.
    """


RevokeIn = TypedDict(
    "RevokeIn",
    {
        "all": NotRequired[bool],
        "collection": NotRequired[str],
        "from": NotRequired[str | None],
        "judge": NotRequired[str | None],
        "to": NotRequired[str | None],
    },
)


class RollbackIn(TypedDict):
    """
    The generation to serve.
    """

    generation: int
    """
    A generation of the collection, earlier or later than the serving one; 0: base keys.
    """


class RotateIn(TypedDict):
    """
    Rotation of an access key.
    """

    grace_seconds: NotRequired[float]
    """
    For how long the old one counts beside the new one.
    """


QueryItem: TypeAlias = str


class SentenceById(TypedDict):
    """
    A sentence by its id, as answers give it.
    """

    examined: NotRequired[float]
    """
    Of a rejected sentence: with what probability it was looked at, as where it was shown and merely not clicked. Divides what the rejection says.
    """
    sentence_id: int | str


PassageId4: TypeAlias = str


PassageId5: TypeAlias = int


class SentenceByText(TypedDict):
    """
    A sentence by your id of its passage and its text.
    """

    examined: NotRequired[float]
    """
    Of a rejected sentence: with what probability it was looked at, as where it was shown and merely not clicked. Divides what the rejection says.
    """
    passage_id: PassageId4 | PassageId5
    text: str


SessionFeedbackIn = TypedDict(
    "SessionFeedbackIn",
    {
        "as": NotRequired[list[A] | None],
        "collection": NotRequired[str | None],
        "complete": NotRequired[bool],
        "confidence": NotRequired[float],
        "expansions": NotRequired[list[ExpansionIn]],
        "generation_score": NotRequired[float | None],
        "generation_success": NotRequired[bool | None],
        "judge": NotRequired[str | None],
        "missed": NotRequired[list[int | str | SentenceById | SentenceByText]],
        "none_helped": NotRequired[bool],
        "rejected": NotRequired[list[int | str | SentenceById | SentenceByText]],
        "retrieval_success": NotRequired[bool | None],
        "supporting": NotRequired[list[int | str | SentenceById | SentenceByText]],
        "supporting_passages": NotRequired[list[SupportingPassage]],
        "wait": NotRequired[bool],
    },
)


class SplitIn(TypedDict):
    """
    Collection of the entity.
    """

    collection: NotRequired[str]


class StopIn(TypedDict):
    """
    Rule that may stop a session before its budget does.
    """

    rule: NotRequired[Literal["planner", "sufficiency", "covered", "published", "llm", "rounds"]]
    """
    'planner': its planner's own rule, or sufficiency. 'sufficiency': the learned probability alone, from `threshold` on. 'covered': the pool names every content word of the question. 'published': RFM-RAG's classifier of the pool, of planner 'rfm-rag' alone. 'llm': the LLM says that the pool answers the question. 'rounds': nothing.
    """
    threshold: NotRequired[float | None]
    """
    Sufficiency from which on a session stops; by default 0.9, for 'published' 0.5.
    """


class SyncManifestIn(TypedDict):
    """
    All files that the source has.
    """

    manifest: list[ManifestEntryIn]


class TextDocument(TypedDict):
    """
    A text as an object; other fields are ignored.
    """

    text: str


class TuningIn(TypedDict):
    """
    Whether a collection is tuned, which generation is withdrawn, and which one serves.
    """

    enabled: NotRequired[bool | None]
    """
    False: none is learned by itself, and none serves.
    """
    serving: NotRequired[int | None]
    """
    The generation to serve until the next is accepted; 0: none.
    """
    withdraw: NotRequired[int | None]
    """
    The generation whose adapter is removed for good. A job learns anew if tuning is on.
    """


AnswerIn = TypedDict(
    "AnswerIn",
    {
        "arm": NotRequired[ArmIn],
        "as": NotRequired[list[A] | None],
        "collapse_duplicates": NotRequired[bool | None],
        "collection": NotRequired[str],
        "context": NotRequired[ContextIn | None],
        "expansions": NotRequired[list[ExpansionIn]],
        "filter": NotRequired[dict[str, Any] | None],
        "include": NotRequired[list[Literal["sentences", "entities", "trace", "context", "sufficiency_level"]]],
        "max_hops": NotRequired[int | None],
        "min_sufficiency": NotRequired[float | Literal["auto"] | None],
        "stop_rule": NotRequired[Literal["none", "coverage", "learned", "llm"] | None],
        "time_constraint": NotRequired[str | None],
        "top_k": NotRequired[int],
        "trace_id": NotRequired[str | None],
        "unit": NotRequired[str | None],
    },
)


class BatchIn(TypedDict):
    """
    Several questions in one request.
    """

    queries: list[QueryIn]


class ChatMessage(TypedDict):
    """
    Message of a chat; fields that Engram does not use are ignored.
    """

    content: NotRequired[str | list[ContentPart] | None]
    role: Literal["system", "developer", "user", "assistant", "tool"]


class CollectionPatch(TypedDict):
    """
    Changes of how a collection serves; an absent field stays, null clears.
    """

    corpus_kind: NotRequired[Literal["encyclopedic", "general"] | None]
    """
    Which ranking weights it has, if you know better than its titles and questions tell. Null: they do.
    """
    experiment: NotRequired[ExperimentIn | None]
    """
    Replaces the arms as a whole. Null: none.
    """
    exploration: NotRequired[ExplorationIn | None]
    """
    Null: none.
    """
    language: NotRequired[str | None]
    """
    The language of passages that come without one from now on. Null: theirs is recognised.
    """
    link_template: NotRequired[str | None]
    """
    Makes the link of each passage in answers: a URL of http or https with any of {source}, {heading} (the innermost), {page}, {title} and {id} behind the host. Values are URL-encoded. Null: there are no links.
    """
    newer_half_life_days: NotRequired[float | None]
    """
    After so many days half of its texts hold no more: where profile `default` ranks for a question about now, the odds of a passage halve with each. A passage without a date counts as of median age. Null: age does not count.
    """
    published: NotRequired[PublishedIn | None]
    """
    Null: verdicts teach sentence memories and passage keys.
    """
    serving: NotRequired[Literal["live", "shadow"] | None]
    """
    'live'; 'shadow': it learns, and serves without memory whatever a query says. Null: 'live'.
    """


class FactsIn(TypedDict):
    """
    Statement of a source: facts, or a text that the language model reads, which takes the scope `llm`.
    """

    budget: NotRequired[ReadingBudgetIn]
    collection: NotRequired[str]
    facts: NotRequired[list[FactIn]]
    graph: NotRequired[str | None]
    """
    A graph of its own; null: the collection's.
    """
    text: NotRequired[str | None]
    title: NotRequired[str | None]
    """
    What the text is about.
    """


FeedbackIn = TypedDict(
    "FeedbackIn",
    {
        "as": NotRequired[list[A] | None],
        "cited": NotRequired[list[int | str | CitedSentence | QuotedSentence | CitedPassage]],
        "collection": NotRequired[str],
        "complete": NotRequired[bool],
        "confidence": NotRequired[float],
        "expansions": NotRequired[list[ExpansionIn]],
        "generation_score": NotRequired[float | None],
        "generation_success": NotRequired[bool | None],
        "judge": NotRequired[str | None],
        "missed": NotRequired[list[int | str | SentenceById | SentenceByText]],
        "none_helped": NotRequired[bool],
        "rating": NotRequired[Literal["up", "down"] | None],
        "reason": NotRequired[str | None],
        "rejected": NotRequired[list[int | str | SentenceById | SentenceByText]],
        "retrieval_success": NotRequired[bool | None],
        "supporting": NotRequired[list[int | str | SentenceById | SentenceByText]],
        "supporting_passages": NotRequired[list[SupportingPassage]],
        "wait": NotRequired[bool],
    },
)


RerankIn = TypedDict(
    "RerankIn",
    {
        "as": NotRequired[list[A] | None],
        "documents": list[str | TextDocument],
        "model": str,
        "query": str,
        "return_documents": NotRequired[bool | None],
        "top_n": NotRequired[int | None],
    },
)


RetrievalIn = TypedDict(
    "RetrievalIn",
    {
        "as": NotRequired[list[A] | None],
        "knowledge_id": str,
        "metadata_condition": NotRequired[MetadataConditionIn | None],
        "query": str,
        "retrieval_setting": RetrievalSettingIn,
    },
)


ReviseIn = TypedDict(
    "ReviseIn",
    {
        "as": NotRequired[list[A] | None],
        "collection": NotRequired[str],
        "graph": NotRequired[str | None],
        "instruction": NotRequired[str | None],
        "judge": NotRequired[str | None],
        "revisions": NotRequired[list[RevisionIn]],
    },
)


RoundIn = TypedDict(
    "RoundIn",
    {
        "as": NotRequired[list[A] | None],
        "collection": NotRequired[str | None],
        "evidence": NotRequired[list[int | str | SentenceById | SentenceByText]],
        "question": NotRequired[str | None],
        "wait": NotRequired[bool],
    },
)


SessionIn = TypedDict(
    "SessionIn",
    {
        "answer": NotRequired[bool],
        "arm": NotRequired[ArmIn | None],
        "as": NotRequired[list[A] | None],
        "budget": NotRequired[BudgetIn],
        "collection": NotRequired[str],
        "filter": NotRequired[dict[str, Any] | None],
        "learn": NotRequired[bool],
        "options": NotRequired[OptionsIn | None],
        "planner": NotRequired[Literal["auto", "pool", "socratic", "tree", "agent", "rfm-rag", "caller"]],
        "stop": NotRequired[StopIn],
        "top_k": NotRequired[int],
        "trace_id": NotRequired[str | None],
        "unit": NotRequired[str | None],
        "wait": NotRequired[bool],
    },
)


ChatIn = TypedDict(
    "ChatIn",
    {
        "as": NotRequired[list[A] | None],
        "context": NotRequired[ContextIn | None],
        "messages": list[ChatMessage],
        "min_sufficiency": NotRequired[float | Literal["auto"] | None],
        "model": str,
        "stream": NotRequired[bool],
        "trace_id": NotRequired[str | None],
    },
)


Filters: TypeAlias = Union[ComparisonFilter, "CompoundFilter"]


class CompoundFilter(TypedDict):
    """
    Several filters: all have to hold, or any.
    """

    filters: list[Filters]
    type: Literal["and", "or"]


SearchIn = TypedDict(
    "SearchIn",
    {
        "as": NotRequired[list[A] | None],
        "filters": NotRequired[ComparisonFilter | CompoundFilter | None],
        "max_num_results": NotRequired[int],
        "query": str | list[QueryItem],
        "ranking_options": NotRequired[RankingOptionsIn | None],
    },
)

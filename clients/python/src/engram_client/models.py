"""Generated from openapi.json by ``generate.py``."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field


class AcceptedDocument(Struct):
    """
    A document that was converted, and the job that ingests its passages.
    """

    cancel_url: str
    """
    Path to `POST` to until the job is over.
    """
    collection: str
    job_id: str
    notes: list[str]
    """
    How it was read and what was left out, with its place: an encoding, hidden sheets.
    """
    passages: int
    """
    Passages made of it.
    """
    source: str
    """
    The document's name, which its passages cite as `metadata.source`; their ids begin with it.
    """
    status_url: str
    """
    Path below the service's address.
    """


class AcceptedJob(Struct):
    """
    Address of an accepted job.
    """

    cancel_url: str
    """
    Path to `POST` to until the job is over.
    """
    collection: str
    job_id: str
    status_url: str
    """
    Path below the service's address.
    """


class AcceptedSession(Struct):
    """
    The answer to a request whose rounds a worker does.
    """

    collection: str
    events_url: str
    """
    Path below the service's address.
    """
    session_id: str
    status_url: str
    """
    Path below the service's address.
    """


class AccessKeyOut(Struct):
    """
    A key as it is known: all but itself.
    """

    created_at: str
    ends_in: str
    """
    The key's last characters.
    """
    expires_at: str | None
    judge: str
    key_id: int
    llm_tokens: int | None
    name: str
    principals: list[str]
    """
    What it is among the readers of passages.
    """
    revoked_at: str | None
    scopes: dict[str, list[str]]
    """
    Collection, or `*` for all -> what is allowed.
    """
    tenant: str
    trusted: bool


class AccessKeysOut(Struct):
    """
    Keys in the order in which they were made.
    """

    keys: list[AccessKeyOut]
    next_after: int | None
    """
    Pass as after for the next page; null at the end.
    """


class AddedFileOut(Struct):
    """
    A file to upload.
    """

    filename: str
    path: str


class AddedTermOut(Struct):
    """
    By how much a term's frequency in the passage's lexical key was raised.
    """

    increment: float
    term: str


class ApiVersionOut(Struct):
    """
    The version of the protocol.
    """

    version: str


class AuditEntryOut(Struct):
    """
    One administrative act.
    """

    action: str
    begun_at: str
    body: str | None
    """
    The body, its first 2,000 characters.
    """
    client: str | None
    """
    The address it came from.
    """
    ended_at: str | None
    """
    Null while it goes on, or if its process was lost.
    """
    id: int
    principal: str
    """
    Who did it; of a command, `cli:` and the system's user.
    """
    request_id: str | None
    status: int | None
    """
    Of the answer: below 300 it was done.
    """
    target: str
    """
    The path, or what the command was given.
    """


class AuditLogOut(Struct):
    """
    Entries of the audit log, the latest first.
    """

    entries: list[AuditEntryOut]
    next_before: int | None
    """
    What to send as `before` for the next page; null at the end.
    """


class BackupOut(Struct):
    """
    A backup that was made before an erasure.
    """

    folder: str
    made_at: str


class ChangeOut(Struct):
    """
    Effect of the event on one state: a sentence's task or time memory, or its support of the question.
    """

    capped: bool
    """
    Whether a daily cap of the judge held the gain back.
    """
    channel: str
    """
    task, time or recall
    """
    gain: float
    """
    Kalman gain K in [0, 1).
    """
    observation_noise: float
    perplexity_after: float
    perplexity_before: float
    residual: float
    sentence_id: int
    target: int
    """
    1 supported, 0 rejected
    """


class ChangedDocument(Struct):
    """
    A document that was changed.
    """

    changed: int
    """
    Passages that had other readers before.
    """
    collection: str
    source: str


class ChannelOut(Struct):
    """
    A channel of a sentence's memory as it stands.
    """

    base_similarity: float | None
    """
    Cosine of what it began as with `query`; null without one.
    """
    channel: Literal["task", "time"]
    perplexity: float
    """
    1 where no verdict touched it.
    """
    similarity: float | None
    """
    Cosine of the memory as it stands with `query`; null without one.
    """
    update_count: int


class ChatReplyMessage(Struct):
    """
    The answer in words, its sources below it.
    """

    content: str
    role: Literal["assistant"] = "assistant"


class CleanedOut(Struct):
    """
    The files that were deleted or moved.
    """

    files: int
    """
    Documents that were deleted or moved.
    """
    status: bool = True


class ConclusionOut(Struct):
    """
    The answer in words; `cites` names sentences of the pool.
    """

    cites: list[int]
    sufficient: bool
    text: str


class ConstantsOut(Struct):
    """
    By which verdicts are applied.
    """

    contested_share: float
    """
    The same for verdicts that go against what other judges said of the sentence.
    """
    daily_share: float
    """
    How much of the distance between a memory and its verdicts it may close in a day; 1: all of it.
    """
    daily_weight_verdicts: int | None
    """
    Verdicts a day that may teach sufficiency and the trust in a reranker.
    """
    observation_noise_negative: float
    observation_noise_positive: float


class ContentOut(Struct):
    """
    The text of a passage.
    """

    text: str
    type: Literal["text"] = "text"


class CorrectionOut(Struct):
    """
    A word of the question that the collection does not have, and its word that was meant.
    """

    corrected: str
    typed: str


class CostOut(Struct):
    """
    Cost so far.
    """

    completion_tokens: int = 0
    llm_calls: int = 0
    passages: int = 0
    prompt_tokens: int = 0
    rounds: int = 0
    seconds: float = 0.0


class CreditOut(Struct):
    """
    Credit of a verdict for one unit and one passage.
    """

    gain: float
    """
    Alignment gain Δ (ERM, Eq. 5): a difference of cosines, can be negative.
    """
    passage_id: str
    unit_id: int
    weight: float
    """
    The unit's share among those that help the passage, in [0, 1]; 0 unless the gain is above 0.
    """


class CuratedOut(Struct):
    """
    Outcome of a round's sentences: kept, or dropped as repetitions of one kind.
    """

    contained: int = 0
    exact: int = 0
    kept: int = 0
    near: int = 0


class DeletedFileOut(Struct):
    """
    A document whose file is gone, or moved: a cleanup moves it.
    """

    file_id: str
    filename: str
    path: str


class DifferenceOut(Struct):
    """
    An arm's figure less the baseline's, with a 95% interval where the numbers give one.
    """

    high: float | None
    low: float | None
    value: float


class DirectoryOut(Struct):
    """
    A directory. It exists as long as files do that have it in their path.
    """

    id: str
    name: str
    parent_id: str | None


class DocumentMoveOut(Struct):
    """
    A document whose file is the same under another source.
    """

    before: str
    source: str
    titled_by_name: bool | None
    """
    As it was ingested with: false if the title of no passage is its file's name, which another reading would change.
    """


class DocumentOut(Struct):
    """
    A document of a collection.
    """

    dated_by: str | None
    """
    What tells it: `metadata`, `mail`, a `line` of its text, its `name` or `title`, or `hand`: a person.
    """
    digest: str | None
    """
    Hash of its file, as the importer gave it.
    """
    folder: str | None
    """
    The folder that it was imported from, for who may import; null: it came by itself.
    """
    imported_at: str
    """
    When it last came.
    """
    notes: list[str]
    """
    How it was read and what was left out.
    """
    pages: int | None
    passages: int
    """
    How many passages are made of it.
    """
    readers: list[list[str] | None] | None
    """
    Each list of readers of its passages, for who may import; null for others. Null in it is everyone, and an empty list nobody but `admin`.
    """
    replaced_by: str | None
    """
    Source of the document that replaces it; null: none, or none that you may read.
    """
    replaced_origin: str | None
    """
    What tells so: a `statement` of either document, their `title` and dates, or `hand`: a person, who may also have said that none does.
    """
    replaces: list[str]
    """
    Sources of the documents that it replaces.
    """
    source: str
    """
    Its name, which is unique in the collection.
    """
    status: str | None
    """
    `draft`, or `retired` if it holds no more; null: neither is stated.
    """
    valid_from: str | None
    """
    Since when it holds; null: nothing tells it.
    """
    valid_until: str | None
    """
    Its last day; null: none is stated.
    """


class DocumentsOut(Struct):
    """
    A page of documents, in the order of their sources.
    """

    collection: str
    documents: list[DocumentOut]
    next_after: str | None
    """
    Pass as after for the next page; null at the end.
    """


class EncoderOut(Struct):
    """
    The encoder of a collection's vectors.
    """

    dimension: int
    """
    Length of each vector.
    """
    fingerprint: str
    """
    SHA-256 of its weights, or of what a server makes of probes: vectors are comparable only if these are equal.
    """
    model: str


class EntityOut(Struct):
    """
    A mention in the question and the entity it was aligned to.
    """

    entity_id: int
    mention: str
    name: str
    similarity: float


class EntityRef(Struct):
    """
    An entity, by its id and as it was written first.
    """

    entity_id: int
    name: str


class ErasureOut(Struct):
    """
    Receipt of an erasure. It has no personal data.
    """

    anonymised: bool
    backups: list[BackupOut]
    """
    Backups that still have what was erased.
    """
    before: str | None
    digest: str | None
    """
    SHA-256 of salt and name, in hexadecimal, by which the name is found in an old backup.
    """
    erased_at: str
    id: str
    """
    Of the job that erased.
    """
    kind: Literal["query", "judge", "principal", "span"]
    queries: list[str]
    removed: dict[str, int]
    """
    Table -> rows that were removed or made anonymous.
    """
    salt: str | None
    """
    In hexadecimal.
    """
    since: str | None


class ErasuresOut(Struct):
    """
    The receipts of a collection, oldest first.
    """

    collection: str
    erasures: list[ErasureOut]


class EventOut(Struct):
    """
    An event of the log of facts.
    """

    event_id: int
    fact_id: int | None
    judge: str
    kind: str
    received_at: str
    revoked_at: str | None
    status: Literal["applied", "revoked"]


class ExpansionOut(Struct):
    """
    One piece of text that widens the question.
    """

    method: Literal[
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
    text: str


class ExperimentArmOut(Struct):
    """
    An arm of an experiment.
    """

    memory: Literal["off", "read"]
    name: str
    percent: float
    profile: Literal["paper", "default"]
    strategy: Literal["graph", "dense", "lexical", "hybrid"]


class ExperimentOut(Struct):
    """
    The arms that queries are given which say none themselves.
    """

    arms: list[ExperimentArmOut]


class ExplorationOut(Struct):
    """
    Exploration of low-ranked passages in answers.
    """

    seed: int | None
    share: float
    slots: int


class FactCauseOut(Struct):
    """
    Something that was said, and what it did to a fact.
    """

    at: str
    belief: float
    """
    After it.
    """
    by: str | None
    """
    The source or judge; null: a passage, or a judge who is not for the caller to know.
    """
    event_id: int | None
    gain: float
    kind: str
    """
    source, confirm, contradict, or change: a passage says something no more.
    """
    of_fact: int
    """
    The fact that it was said of: this one, or one that bears on it.
    """
    passage_id: str | None
    perplexity: float
    supports: bool
    text: str | None


class FactChangeOut(Struct):
    """
    Belief of a fact before and after.
    """

    after: float
    before: float
    fact_id: int


class FactOut(Struct):
    """
    A fact as it stands.
    """

    belief: float
    """
    From 0, surely wrong, to 1, surely right; below 0.5 it is doubted.
    """
    closed_at: str | None
    closed_reason: str | None
    doubted: bool
    fact_id: int
    held_until: str | None
    """
    The same, by what ended it since.
    """
    learned_at: str
    object: str
    object_entity_id: int | None
    object_kind: str
    perplexity: float
    """
    How little is known: 1 before anything was said.
    """
    predicate: str
    subject: EntityRef
    superseded_by: int | None
    valid_from: str | None
    valid_to: str | None
    """
    First day on which it no longer holds, by itself.
    """


class FactRevokeOut(Struct):
    """
    Result of a revocation. Revoking its event makes all of it count again.
    """

    believed: int
    """
    Of them, those that are doubted no more.
    """
    changed: list[FactChangeOut]
    """
    Those that move most.
    """
    collection: str
    doubted: int
    """
    Of them, those that are doubted by it.
    """
    event: EventOut | None
    """
    null for a preview, or if nothing matched.
    """
    facts: int
    """
    Facts of which something else is believed. A preview leaves out joins' effects.
    """
    kinds: dict[str, int]
    revoked: int
    """
    Events that count no more; of a preview, that would.
    """


class FactWarningOut(Struct):
    """
    A part of a text that was left out, because the language model failed it or the budget was spent.
    """

    detail: str
    """
    How the endpoint failed, or which budget was spent.
    """
    type: Literal["not-read"] = "not-read"


class FactsOut(Struct):
    """
    Result of a statement or a revision.
    """

    collection: str
    events: list[EventOut]
    facts: list[FactOut]
    """
    As they stand now; those that nobody states any more are left out.
    """
    warnings: list[FactWarningOut] | None = None


class FeatureTraceOut(Struct):
    """
    A feature of a passage; value times weight is what it adds to the score.
    """

    value: float
    weight: float


class FigureOut(Struct):
    """
    The mean of a figure.
    """

    difference: DifferenceOut | None
    """
    From the baseline; null for the baseline itself, and where either has no such query.
    """
    mean: float | None
    """
    Null if no query has it.
    """
    n: int
    """
    Queries that have it.
    """


class FileCountsOut(Struct):
    """
    Passages of a collection; all of them can be found.
    """

    completed: int
    total: int
    cancelled: Literal[0] = 0
    failed: Literal[0] = 0
    in_progress: Literal[0] = 0


class FileOut(Struct):
    """
    A file whose passages a job ingests.
    """

    cancel_url: str
    """
    Path to `POST` to until the job is over.
    """
    collection: str
    filename: str
    id: str
    job_id: str
    meta: dict[str, Any]
    """
    Name, size in bytes and hash of the file.
    """
    notes: list[str]
    """
    How it was read and what was left out, with its place: an encoding, hidden sheets.
    """
    passages: int
    """
    Passages made of it.
    """
    source: str
    """
    The document's name, which its passages cite as `metadata.source`; their ids begin with it.
    """
    status_url: str
    """
    Path below the service's address.
    """


class FileStatusOut(Struct):
    """
    The progress of a file.
    """

    status: str
    """
    `pending`, `completed` or `failed`.
    """
    error: str | None = None
    """
    Why it failed.
    """


class FoundFileOut(Struct):
    """
    A passage.
    """

    attributes: dict[str, str | float | bool]
    """
    The passage's metadata, with `document`, `heading`, `page`, `link` and `language` of its source where they have no such fields. A list or an object is written as JSON, and null is left out.
    """
    content: list[ContentOut]
    file_id: str
    """
    The `passage_id`.
    """
    filename: str
    """
    The passage's document: its title, or its id, if it names none.
    """
    score: float


class GainOut(Struct):
    """
    Mean gain of a group of held-out questions: nDCG@10 with the adapter less nDCG@10 without.
    """

    error: float | None
    """
    Its standard error, over needs; null: unknown.
    """
    mean: float
    needs: int
    """
    Groups of these questions that share evidence.
    """
    questions: int


class GapOut(Struct):
    """
    Missing part of the pool; the triple has unknowns as ?1, ?2 and, for the answer, ?.
    """

    text: str
    triple: list[str] | None


class GenerationOut(Struct):
    """
    One evolution of a collection's keys.
    """

    active: bool
    """
    Whether what it took in counts: false once rolled back.
    """
    created_at: str
    events: int
    """
    Verdicts it took in.
    """
    number: int
    parent: int
    """
    The generation it went on from; 0: base keys.
    """
    passages: int
    """
    Passages whose keys it composed.
    """
    reason: str
    """
    saturated: several batches of verdicts in a row brought nothing better; pending: 64 verdicts waited; requested: by POST /collections/{name}/evolve.
    """
    rules: dict[str, Any]
    """
    The constants its keys were composed with.
    """


class GenerationsOut(Struct):
    """
    A page of generations, the latest first.
    """

    collection: str
    generations: list[GenerationOut]
    next_before: int | None
    """
    Pass as before for the next page; null at the end.
    """


class GraphMergeOut(Struct):
    """
    Result of a merge: the counts of new rows.
    """

    collection: str
    event: EventOut
    facts: int
    """
    Facts that the sentences say.
    """
    joins: int
    """
    Entities that are one there, and now here.
    """
    sentences: int
    verdicts: int


class Health(Struct):
    """
    The process answers.
    """

    status: str


class IgnoredFileOut(Struct):
    """
    A file that makes no document.
    """

    reason: str
    source: str


class IndexRecallOut(Struct):
    """
    Measured recall of a vector index.
    """

    breadth: int
    """
    How broadly it is searched for that (`hnsw.ef_search`).
    """
    configured: int
    """
    How broadly all indexes were searched when it was measured.
    """
    measured_at: str
    recall: float
    """
    Share of the ten nearest that it finds.
    """
    rows: int
    """
    How many the collection held then.
    """


class IssuedAccessKey(Struct):
    """
    A key that was made.
    """

    created_at: str
    ends_in: str
    """
    The key's last characters.
    """
    expires_at: str | None
    judge: str
    key: str
    """
    The key itself, which is shown this once and stored nowhere.
    """
    key_id: int
    llm_tokens: int | None
    name: str
    principals: list[str]
    """
    What it is among the readers of passages.
    """
    revoked_at: str | None
    scopes: dict[str, list[str]]
    """
    Collection, or `*` for all -> what is allowed.
    """
    tenant: str
    trusted: bool


JsonValue: TypeAlias = Any


class KeyCauseOut(Struct):
    """
    A verdict that brought a unit of a key; its credit is gain times weight.
    """

    applied_at: str
    feedback_id: int
    gain: float
    judge: str
    question: str
    weight: float


class KeyEffectOut(Struct):
    """
    Effect of a verdict's expansions.
    """

    credit_count: int
    credits: list[CreditOut]
    """
    The 200 that count most, the most first.
    """
    gain: float
    """
    The highest alignment gain of its credits; 0 if none is above 0, or not validated.
    """
    gate: Literal["retrieval", "generation", "none"]
    """
    What validated them; 'none': they were not, and teach nothing.
    """
    generation: int | None
    """
    The evolution that took it in; null while it waits.
    """
    status: Literal["taken in", "waiting", "rolled back"] | None
    """
    Null if not validated.
    """


class KeyUnitTraceOut(Struct):
    """
    A unit of an evolved key.
    """

    event_count: int
    events: list[KeyCauseOut]
    """
    The 10 verdicts that credit it most, of event_count.
    """
    method: str
    share: float
    """
    Of what the key adds to its base, in (0, 1].
    """
    text: str
    unit_id: int


class KeysOut(Struct):
    """
    Standing of a collection's passage keys, and the verdicts that wait for the next evolution.
    """

    batch_events: int
    """
    Of these, in the batch that is not full yet.
    """
    batch_gain: float
    """
    The highest alignment gain in that batch.
    """
    best_gain: float
    """
    The highest alignment gain of any full batch since the last evolution.
    """
    collection: str
    due: str | None
    """
    Why an evolution is due: saturated or pending; null if none is.
    """
    generation: int
    """
    The serving generation; 0: base keys.
    """
    stale_batches: int
    """
    Batches in a row that brought nothing better.
    """
    waiting: int
    """
    Validated verdicts that no evolution took in yet.
    """


class KnowledgeFileOut(Struct):
    """
    A file of a knowledge base.
    """

    filename: str
    id: str
    meta: dict[str, Any]
    """
    Path and hash of the file.
    """


class KnowledgeFilesOut(Struct):
    """
    The files that a sync tool brought.
    """

    items: list[KnowledgeFileOut]
    total: int


class KnowledgeOut(Struct):
    """
    A collection as a knowledge base.
    """

    description: str
    id: str
    name: str


class LaterOut(Struct):
    """
    Events after a need was last not met.
    """

    answered_at: str | None
    """
    When it was asked again and answered; null: it was not.
    """
    documents: list[str]
    """
    That came or changed in between, and that this answer shows passages of; of a passage without a document its id.
    """
    feedback_id: int | None
    """
    The last verdict since then, on a query of the need, that names what helped; null: none does.
    """
    query_id: str | None
    """
    Of the query that was answered.
    """


class LeftOut(Struct):
    """
    A state as it stands, and as it would stand without the verdict.
    """

    channel: Literal["task", "time", "recall"]
    likeness: float
    """
    Cosine of the memory with the verdict's question; of 'recall', how surely it supports it.
    """
    passage_id: str
    perplexity: float
    sentence_id: int
    text: str
    title: str | None
    without_likeness: float
    without_perplexity: float


class LineError(Struct):
    """
    A line that was not ingested; the first line is 1.
    """

    line: int
    reason: str


class ListedSessionOut(Struct):
    """
    A session in a list; `GET /sessions/{session_id}` has what it found.
    """

    cost: CostOut
    covered: float | None
    created_at: str
    finished_at: str | None
    planner: Literal["auto", "pool", "socratic", "tree", "agent", "rfm-rag", "caller"]
    question: str
    rounds: int
    session_id: str
    status: Literal["running", "stopped", "cancelled", "failed"]
    stop_reason: (
        Literal[
            "sufficiency",
            "covered",
            "found",
            "answered",
            "sufficient",
            "not_found",
            "no_gap",
            "nothing_new",
            "asked",
            "rounds",
            "llm_calls",
            "tokens",
            "seconds",
            "passages",
            "cancelled",
            "failed",
            "erased",
        ]
        | None
    )
    sufficiency: float | None


class MemoryPartOut(Struct):
    """
    Memory that an arm read.
    """

    key_generation: int
    """
    The generation of passage keys that was searched; 0: base keys.
    """
    moved: int
    """
    Selected sentences whose memories a verdict had moved.
    """
    recalled: int
    """
    Sentences that verdicts on past questions brought in.
    """


class ModelOut(Struct):
    """
    A collection, as a model.
    """

    created: int
    """
    When the collection was made, as Unix time in seconds.
    """
    id: str
    object: Literal["model"] = "model"
    owned_by: Literal["engram"] = "engram"


class ModelsOut(Struct):
    """
    The collections that may be asked.
    """

    data: list[ModelOut]
    object: Literal["list"] = "list"


class ModifiedFileOut(Struct):
    """
    A file to upload in place of a document.
    """

    filename: str
    path: str
    stale_file_id: str


class MomentOut(Struct):
    """
    Counts after a verdict was applied.
    """

    at: str
    perplexity: float | None
    """
    The mean of these memories'; null where none was moved.
    """
    states: int
    """
    Memories that they had moved.
    """
    verdicts: int
    """
    That were applied by then.
    """


class MoveOut(Struct):
    """
    Effect of a verdict on one channel.
    """

    channel: Literal["task", "time", "recall"]
    gain: float
    perplexity_after: float
    perplexity_before: float
    residual: float
    similarity_after: float
    """
    The same after the verdict.
    """
    similarity_before: float
    """
    Cosine of the memory with the verdict's question, as it was then; of 'recall', the support.
    """
    similarity_now: float | None
    """
    The same of the memory as it stands; null for 'recall'.
    """
    target: int
    """
    1: the verdict supports the sentence, 0: it does not.
    """


class MovedOut(Struct):
    """
    A channel of a sentence's memory as its last verdict left it.
    """

    channel: Literal["task", "time"]
    feedback_id: int
    """
    The verdict that moved it last.
    """
    moved_at: str
    passage_id: str
    perplexity: float
    sentence_id: int
    text: str
    title: str | None
    update_count: int


class NamedSentenceOut(Struct):
    """
    A sentence that a verdict names.
    """

    likeness: float
    """
    How alike it is to the text that was judged, in (0, 1]; less than 1 if it was revised since.
    """
    passage_id: str | None
    """
    Null, as its title and text, if it was deleted since or the key may not read the collection.
    """
    role: Literal["supported", "missed", "rejected", "likely"]
    """
    likely: it stands for a passage that helped as a whole.
    """
    sentence_id: int
    text: str | None
    title: str | None


class NoteOut(Struct):
    """
    A line of the working memory; `cites` names sentences of the pool.
    """

    cites: list[int]
    kind: Literal["binding", "fact", "contradiction", "answer"]
    round: int
    text: str


class PassageGroupOut(Struct):
    """
    Passages that have the same value of the field.
    """

    passages: int
    value: JsonValue
    """
    A passage with a list is counted for each of its elements.
    """


class PassageInfluenceOut(Struct):
    """
    Influence of one verdict on a passage's score: the score less its value without the verdict.

    Exact with one hop; with several, as far as the same entities and candidates are reached without the verdict.
    What it did to evolved keys is told apart.
    """

    applied_at: str
    feedback_id: int
    judge: str
    memory: float
    """
    By the memories of sentences.
    """
    question: str
    recall: float
    """
    By the supports of past questions.
    """
    score: float
    """
    By all of the following together, which need not be their sum.
    """


class PassageSourceOut(Struct):
    """
    The source of a passage.
    """

    document: str
    """
    Source of its document; of a passage without one `metadata.source`, its title, or its id.
    """
    heading: list[str]
    """
    The headings above it, outermost first, from `metadata.heading`.
    """
    language: str
    """
    Of its text, as it was given or recognised.
    """
    link: str | None
    """
    Where people read it, by the collection's `link_template`; null without a template, or if the passage lacks a value that the template needs.
    """
    page: int | None
    """
    Its page or slide, from 1.
    """
    replaced_by: str | None
    """
    Source of the document that replaces its own; null: none, or none that you may read.
    """
    valid_from: str | None
    """
    Since when its document holds; null: nothing tells it.
    """
    valid_until: str | None
    """
    Its document's last day; null: none is stated.
    """


class PastOut(Struct):
    """
    Origin of a copy.
    """

    of: str
    """
    The collection's name at the time.
    """
    until: str


class PathOut(Struct):
    """
    Facts that lead from an entity to another or to something else, in order.
    """

    fact_ids: list[int]
    score: float
    start: str


class PredicateOut(Struct):
    """
    A predicate, and by what its facts compete.
    """

    declared: bool | None
    functional: bool
    predicate: str
    single: int
    """
    Of them, with one object at a time.
    """
    subjects: int
    """
    When it was last counted.
    """


class PredicatesOut(Struct):
    """
    Predicates in their order.
    """

    collection: str
    predicates: list[PredicateOut]


class PreviewOut(Struct):
    """
    Effects of revoking a verdict.
    """

    collection: str
    cut: bool
    """
    Whether there are more states than are shown.
    """
    feedback_id: int
    judge: str
    models: list[str]
    """
    Models whose weights would lose what it taught: sufficiency, reranker, round, or a wing's own.
    """
    states: list[LeftOut]
    status: str
    """
    pending, applied, parked or revoked; only what is applied has changed anything.
    """


class Problem(Struct):
    """
    An RFC 9457 problem document.
    """

    detail: str
    """
    What is wrong with this request.
    """
    status: int
    """
    The HTTP status.
    """
    title: str
    """
    The kind of problem in words.
    """
    type: str
    """
    Stable identifier of the kind of problem.
    """
    errors: list[dict[str, Any]] | None = None
    """
    For an invalid request: where each value is and what is wrong with it.
    """
    request_id: str | None = None
    """
    By which the service's log knows the request, as in the X-Request-ID header.
    """


class ProposedOut(Struct):
    """
    A name that means an entity.
    """

    entity_id: int
    means: str
    means_id: int
    name: str
    similarity: float
    way: Literal["alias", "similarity"]


class PublishedOut(Struct):
    """
    Whether verdicts teach sentence memories and passage keys.
    """

    learn: bool


class PulledScoreOut(Struct):
    """
    A score of another product, as a pull last sent it.
    """

    digest: str
    judge: str
    queries: list[str]
    rating: Literal["up", "down"] | None
    """
    Null: the score was deleted, and its rating revoked.
    """
    revision: int
    score_id: str
    scored_at: str


class PulledScoresOut(Struct):
    """
    Scores of a source, in order of their ids.
    """

    collection: str
    next_after: str | None
    """
    Pass as after for the next page; null at the end.
    """
    scores: list[PulledScoreOut]
    source: str


class QueryExpansionOut(Struct):
    """
    An expansion that a question came with.
    """

    method: str
    text: str


class QuestionSupportOut(Struct):
    """
    Support of a past question by the sentence.
    """

    complete: bool
    """
    Whether the last verdict claimed to name all evidence.
    """
    perplexity: float
    question: str
    question_id: int
    support: float
    update_count: int


class QuotaOut(Struct):
    """
    Quota of a tenant and its use.
    """

    kind: Literal[
        "passages",
        "jobs",
        "queries",
        "verdicts",
        "llm_tokens",
        "judges",
        "collections",
        "keys",
        "sessions",
        "facts",
    ]
    limit: int | None
    """
    Null: any number, and then days are not counted.
    """
    used: int
    """
    Passages, collections, keys and judges that it has, jobs open; of the others, those of today (UTC).
    """


class QuotasOut(Struct):
    """
    A tenant's quotas.
    """

    quotas: list[QuotaOut]
    tenant: str


class RankedDocument(Struct):
    """
    A text that was sent.
    """

    text: str


class ReaderExplanationOut(Struct):
    """
    Whether somebody sees a passage, and why.
    """

    asked: list[str]
    matched: list[str]
    """
    Readers of the passage that the somebody is.
    """
    passage_id: str
    readers: list[str] | None
    """
    Of the passage. Null: everyone who may query the collection.
    """
    reason: str
    visible: bool


class ReadersOut(Struct):
    """
    The readers of a passage from now on.
    """

    collection: str
    readers: list[str] | None
    """
    Null: everyone who may query the collection.
    """


class ReadinessOut(Struct):
    """
    State of the servers that the process depends on, and of the backlog.
    """

    disk_free_bytes: int | None
    """
    Of the embedded Postgres's disk; null of another Postgres.
    """
    encoder: str
    language: str
    llm: str
    migrations: Literal["current", "newer"]
    """
    'newer': a later version has migrated the database.
    """
    oldest_job_seconds: float | None
    """
    The same of jobs, from when they might have been begun.
    """
    oldest_verdict_seconds: float | None
    """
    How long the oldest verdict that waits has waited; null where none waits.
    """
    postgres: str
    redis: str
    replica: Literal["none", "ok", "stale", "unreachable", "not a replica"]
    """
    Where READ_DATABASE_URL stands; while that is not 'ok', queries are read on the primary.
    """
    replica_lag_seconds: float | None
    """
    All that was committed longer ago is on the replica; null where that is not known.
    """
    status: str
    """
    'degraded' without Redis or a worker, with a backlog of minutes, with little disk left, or where the replica cannot be read on.
    """
    workers: int | None
    """
    Workers that beat lately; null without Redis, where they beat.
    """


class RecallOut(Struct):
    """
    A sentence that a verdict on a past question brought in.
    """

    contrasts: list[Literal["figures", "figure", "names", "name", "negation", "time"]]
    """
    What makes the two questions different: other figures or names, a figure or a name that only one has, negation, or a date against the present.
    """
    learned_from: int
    """
    Judged questions of the collection that taught what past questions are worth; 0: nothing is judged, and the probability is a prior.
    """
    nearness: float
    """
    Nearness of the two questions in standard units of the collection; 0 is the mean.
    """
    others: int
    """
    Judged questions near this one that other passages answered.
    """
    past_question: str | None
    """
    Null to whom what others asked is not to be shown.
    """
    perplexity: float
    recall_probability: float
    """
    Probability that the sentence is evidence, by this recall, in [0, 1].
    """
    same_need: float
    """
    Probability that the sentence's passage is evidence, by all past questions near this one.
    """
    sentence_id: int
    similarity: float
    """
    Cosine of the two questions.
    """
    support: float
    supporters: int
    """
    Judged questions near this one that this passage answered.
    """
    words: float
    """
    Cosine of the words of the two questions, weighted by rarity, in [0, 1].
    """


class RecordOut(Struct):
    """
    A passage.
    """

    content: str
    metadata: dict[str, Any]
    """
    The passage's own, with `document`, `heading`, `page`, `link` and `language` of its source where they have no such fields, and `query_id` and `passage_id` for a verdict. `document_id` is both, with a colon between them: the one field that Dify keeps with a message.
    """
    score: float
    title: str


class RejectionTraceOut(Struct):
    """
    A passage that judges rejected for this question, or for one with the same need.
    """

    influences: list[PassageInfluenceOut]
    """
    Their verdicts, at most 10, each of which can be revoked.
    """
    influences_cut: bool
    """
    Whether there may be more.
    """
    judges: int | None
    """
    How many say so; null where the log of nearby questions is too long to be read.
    """
    passage_id: str
    probability: float
    """
    That it is no evidence, by the rejections, in [0, 1].
    """
    rank: int | None
    """
    In the answer, from 1; null where it is not shown.
    """
    score: float
    """
    What the rejections change of its score; 0 where a support is more probable, or where it would not have been found.
    """
    title: str | None


class ReplayOut(Struct):
    """
    Source and moment of a replay.
    """

    into: str
    """
    The collection that it makes.
    """
    until: str


class RerankMetaOut(Struct):
    """
    Details that Cohere's clients read.
    """

    api_version: ApiVersionOut


class RerankedOut(Struct):
    """
    A text by its place in the request.
    """

    index: int
    passage_id: str | None
    """
    The passage of the collection that has this text; null: none has.
    """
    relevance_score: float
    source: PassageSourceOut | None
    """
    Where this passage comes from.
    """
    document: RankedDocument | None = None
    """
    Null where the texts were not wanted back.
    """


class RetryOut(Struct):
    """
    Result of retrying many verdicts.
    """

    collection: str
    retried: int
    """
    Verdicts that were parked and wait again.
    """


class RevocationOut(Struct):
    """
    Filter of the verdicts that a job revokes; without one, all that were accepted before it.
    """

    from_: str | None = field(name="from", default=None)
    judge: str | None = None
    to: str | None = None


class SearchPageOut(Struct):
    """
    The passages, best first.
    """

    data: list[FoundFileOut]
    query_id: str
    """
    For `POST /feedback`: not in OpenAI's shape.
    """
    search_query: list[str]
    has_more: bool = False
    next_page: None | None = None
    object: Literal["vector_store.search_results.page"] = "vector_store.search_results.page"


class SentenceEventOut(Struct):
    """
    A verdict that counts, and what it did to the sentence.
    """

    applied_at: str
    feedback_id: int
    judge: str
    moves: list[MoveOut]
    query_id: str
    question: str
    sequence: int
    """
    Its place in the order in which verdicts were applied.
    """


class SentenceInfluenceOut(Struct):
    """
    Influence of one verdict on a selected sentence: each number less its value without the verdict.
    """

    applied_at: str
    feedback_id: int
    judge: str
    question: str
    recall_probability: float
    """
    Of the sentence, by what the verdict did to supports of past questions.
    """
    score: float
    """
    Of the sentence in its hop, by what the verdict did to memories.
    """


class SentenceMemoryOut(Struct):
    """
    Memory of a sentence, and the verdicts behind it.
    """

    channels: list[ChannelOut]
    """
    'time' only of a sentence that speaks of a time.
    """
    collection: str
    history: list[SentenceEventOut]
    """
    In the order in which verdicts were applied.
    """
    next_after: int | None
    """
    Pass as after for the next page; null at the end.
    """
    passage_id: str
    position: int
    sentence_id: int
    support_count: int
    supports: list[QuestionSupportOut]
    """
    At most 100, those it supports most surely.
    """
    text: str
    title: str | None


class SentenceOut(Struct):
    """
    A sentence of an answered passage.
    """

    hops: list[int]
    position: int
    score: float | None
    """
    Its best score in any hop or its recall probability; null if no hop selected it.
    """
    sentence_id: int
    text: str


class SentenceTraceOut(Struct):
    """
    Every factor of a selected sentence's score: activation x semantic x task x time, over their sum.
    """

    activated_by: list[str]
    activation: float
    passage_id: str
    recall_probability: float
    score: float
    semantic: float
    sentence_id: int
    task_factor: float
    task_perplexity: float
    text: str
    time_factor: float
    time_perplexity: float
    influences: list[SentenceInfluenceOut] | None = None
    """
    The verdicts that moved it, at most 10, the strongest first.
    """
    influences_cut: bool = False
    """
    Whether there may be more.
    """


class SessionFeedbackOut(Struct):
    """
    An accepted verdict on a session, as its own question heard it.
    """

    applied_at: str | None
    changes: list[ChangeOut] | None
    """
    What it changed; null where nobody waited for it.
    """
    collection: str
    complete_at: int | None
    """
    The round after which the pool held all passages that a complete verdict supports; null: none, or the verdict does not say.
    """
    effect: str | None
    """
    In words, what the next answer to the question shows of it, or why nothing; null until it is applied, or where nobody waited for it.
    """
    error: str | None
    """
    Why the last try to apply it failed, or what it waits for.
    """
    feedback_id: int
    feedback_ids: list[int]
    """
    All verdicts that it became, this one first; for revoking.
    """
    judge: str
    keys: KeyEffectOut | None
    """
    What its expansions came to; null where it carried none, or nobody waited for it.
    """
    query_id: str
    received_at: str
    revoked_at: str | None
    session_id: str
    status: str
    """
    pending, applied, parked or revoked
    """


class SessionPassageOut(Struct):
    """
    A passage that the session read; `evidence`: its sentences in the pool.
    """

    evidence: list[int]
    metadata: dict[str, Any]
    passage_id: str
    source: PassageSourceOut
    text: str
    title: str | None


class SessionWarningOut(Struct):
    """
    Failure of the LLM in a round, and the substitute for it.
    """

    detail: str
    round: int
    type: str


class SessionsOut(Struct):
    """
    A page of a collection's sessions, the latest first.
    """

    collection: str
    next_before: str | None
    """
    Pass as before for the next page; null at the end.
    """
    sessions: list[ListedSessionOut]


class ShownTextOut(Struct):
    """
    The text of a passage that an answer showed.
    """

    changed: bool
    """
    Whether the passage has another text now. Then verdicts on this answer cannot name it.
    """
    passage_id: str
    sha256: str
    """
    Of the text in UTF-8, as hexadecimal digits.
    """


class SourceOut(Struct):
    """
    A verdict behind a unit of a passage's expansion memory.
    """

    feedback_id: int
    gain: float
    """
    Alignment gain: how much nearer the unit brings the passage's base key to the question.
    """
    generation: int | None
    """
    The evolution that took it in; null while it waits.
    """
    judge: str
    query_id: str
    question: str
    status: Literal["taken in", "waiting", "rolled back"]
    weight: float
    """
    The unit's share among those of the same verdict that help.
    """


class StandingOut(Struct):
    """
    Standing of a judge: its agreement with established judges, and its weight if it is not trusted.
    """

    agreed: int
    disagreed: int
    mean: float
    """
    Of the belief in its agreement, a Beta distribution that begins as 1 in 5.
    """
    weight: float
    """
    1 from a mean of 0.75 on: then it counts as every other judge.
    """


class StepsOut(Struct):
    """
    Steps that bring the collection in step with the folder. Documents that are in step are not named.
    """

    changed: list[str]
    """
    Sources of the same digest, but another folder or other readers: `PATCH /documents/{source}`.
    """
    delete: list[str]
    """
    Sources that the folder no longer has: `DELETE /documents/{source}`, after the uploads.
    """
    folders: list[str]
    """
    Other folders of which at least half the documents are listed, by source or digest. Is one an earlier name of this folder? Then ask again with it among `earlier_folders`.
    """
    moved: list[DocumentMoveOut]
    """
    Documents that have another source now: `PATCH /documents/{before}` gives it to them.
    """
    upload: list[str]
    """
    Sources that are new, or whose digest is another one: ingest these.
    """


class StoredScoresOut(Struct):
    """
    The number of scores that were stored.
    """

    collection: str
    source: str
    stored: int


class StoredSentenceOut(Struct):
    """
    A sentence of a stored passage.
    """

    position: int
    sentence_id: int
    text: str


class SufficiencyInfluenceOut(Struct):
    """
    Influence of one verdict on a probability of sufficiency.
    """

    applied_at: str
    feedback_id: int
    judge: str
    probability: float
    """
    As it is, less what it were without the verdict.
    """
    question: str


class SufficiencyLevelOut(Struct):
    """
    The level below which an answer is withheld, and what it rests on.
    """

    confirmed: int
    """
    Answers of this collection that verdicts called sufficient.
    """
    source: Literal["prior", "passages", "verdicts"]
    """
    'passages': questions made from the collection's passages and asked without them. 'verdicts': these, and answers that verdicts called sufficient. 'prior': nothing is measured yet; right answers of the data sets that the shipped weights were fitted to.
    """
    value: float


class SufficiencyOut(Struct):
    """
    Derivation of the probability of sufficiency.
    """

    events: int
    """
    Verdicts in the weights.
    """
    features: dict[str, FeatureTraceOut]
    """
    By name (docs/ranking.md). None where nothing was found.
    """
    model: float
    """
    By the features: 1 / (1 + exp(-sum of value times weight)).
    """
    probability: float
    """
    The highest of model, vouched and remembered, as undenied leaves them.
    """
    vouched: float
    """
    By verdicts on nearby past questions that claimed to name all evidence, in [0, 1].
    """
    influences: list[SufficiencyInfluenceOut] | None = None
    """
    At most 10 of them, the strongest first; where the query asked for a trace.
    """
    influences_cut: bool = False
    """
    Whether there are more.
    """
    judgements: list[SufficiencyInfluenceOut] | None = None
    """
    At most 10 verdicts that undenied follows from, with their influence on the probability; where the query asked for a trace.
    """
    remembered: float = 0.0
    """
    Lower bound by verdicts on nearby past questions: how sufficient those answers were whose evidence is among the first five again, in [0, 1].
    """
    undenied: float = 1.0
    """
    The share that judges of earlier answers to the same question leave, in (0, 1]; of model, before its calibration.
    """


class SuggestionsOut(Struct):
    """
    Names and titles that begin with a prefix, those that most sentences have first.
    """

    collection: str
    suggestions: list[str]


class SurroundingPassageOut(Struct):
    """
    A passage that stands beside an answered one.
    """

    passage_id: str
    sentences: list[SentenceOut]
    """
    Empty unless the query includes `sentences`.
    """
    source: PassageSourceOut
    text: str
    title: str | None


class SyncDiffOut(Struct):
    """
    The steps that bring the knowledge base in step with the source.
    """

    added: list[AddedFileOut]
    deleted: list[DeletedFileOut]
    """
    Documents that a cleanup deletes, or moves to another path.
    """
    directory_map: dict[str, str]
    """
    Path of each directory -> its id.
    """
    ignored: list[IgnoredFileOut]
    """
    Files that make no document, and why.
    """
    mkdir: list[str]
    """
    Empty: directories need not be made.
    """
    modified: list[ModifiedFileOut]
    """
    Files to upload in place of documents. What was learned of unchanged sentences stays.
    """
    rmdir: list[str]
    """
    Empty: directories need not be removed.
    """
    unmodified_count: int


class TenantRemoval(Struct):
    """
    A tenant that is being removed.
    """

    tenant: str


class TimingsOut(Struct):
    """
    Durations by stage, in milliseconds.
    """

    analyse_ms: float
    embed_ms: float
    search_ms: float
    total_ms: float


class TracedQueryOut(Struct):
    """
    A query of a trace.
    """

    created_at: str
    query: str
    query_id: str


class UnitOut(Struct):
    """
    A unit of a passage's expansion memory.
    """

    event_count: int
    events: list[SourceOut]
    """
    The 20 latest verdicts behind it, the latest first.
    """
    in_key: bool
    """
    Whether the serving key is composed of it, among others.
    """
    method: str
    score: float | None
    """
    Gain times weight, summed over the verdicts that count, those that wait included; null for a unit of the key that the memory let go for better ones, which wait.
    """
    terms: list[AddedTermOut]
    """
    What it adds to the serving lexical key: the 50 most raised.
    """
    text: str
    unit_id: int


class UnmetNeedOut(Struct):
    """
    A need that was not met.
    """

    denials: int
    """
    Verdicts that call their answers not enough, or thumbs down.
    """
    documents: list[str]
    """
    Nearest to the last of them; those that you may read.
    """
    first_at: str
    last_at: str
    last_query_id: str
    later: LaterOut
    people: int
    """
    Principals who asked them.
    """
    queries: int
    """
    That were not answered.
    """
    question: str
    """
    Its most frequent wording.
    """
    sufficiency: float | None
    """
    The mean of their answers; null where features did not rank.
    """
    wordings: list[str]
    """
    Up to four others.
    """


class VectorStoreOut(Struct):
    """
    A collection, as a vector store.
    """

    created_at: int
    """
    Unix time in seconds.
    """
    file_counts: FileCountsOut
    id: str
    name: str
    expires_at: None | None = None
    last_active_at: None | None = None
    metadata: dict[str, str] | None = None
    """
    Always empty.
    """
    object: Literal["vector_store"] = "vector_store"
    status: Literal["completed"] = "completed"
    usage_bytes: Literal[0] = 0
    """
    Always 0: it is not measured.
    """


class VectorStoresOut(Struct):
    """
    Collections in the order of their names.
    """

    data: list[VectorStoreOut]
    first_id: str | None
    has_more: bool
    last_id: str | None
    object: Literal["list"] = "list"


class VersionTraceOut(Struct):
    """
    The version of a text that the question was taken to be about.
    """

    asked: Literal["last", "then", "previous", "changes"]
    """
    The last one that holds, the one of a time that the question names, the one before, or the two last ones.
    """
    moved: int
    """
    Passages that have another place for it.
    """


class WarningOut(Struct):
    """
    A step that the LLM endpoint failed and that was done without it, or what was not read of a question.
    """

    detail: str
    """
    How the endpoint failed, or what was left out.
    """
    type: Literal[
        "sufficiency-not-judged",
        "not-reranked",
        "time-by-rules",
        "not-answered",
        "not-restated",
        "not-widened",
        "planned-by-rules",
        "sifted-by-rules",
        "noted-by-rules",
        "not-read",
        "updated-by-rules",
        "question-shortened",
        "parts-not-read",
    ]


class WhoOut(Struct):
    """
    Identity of a request.
    """

    judge: str | None
    """
    Whose its verdicts are; null: whom each names.
    """
    llm_tokens: int | None
    name: str
    principals: list[str]
    """
    What you are among the readers of passages.
    """
    scopes: dict[str, list[str]]
    tenant: str
    trusted: bool
    wings: list[str]
    """
    Wings that are on. Routes of another wing answer 404.
    """


class AlignOut(Struct):
    """
    Names that mean the same.
    """

    collection: str
    joined: int
    """
    How many; of a preview, how many would be.
    """
    joins: list[ProposedOut]
    """
    The first 1000.
    """


class ArmLiftOut(Struct):
    """
    Results of one arm.
    """

    arm: str | None
    """
    Null: queries that no arm was given to, for whatever reason.
    """
    evidence_recall: FigureOut
    """
    Of the passages that the verdict supports or calls missed, the share that was in the answer.
    """
    generation_success: FigureOut
    """
    The verdict's word, else whether its score reaches 0.5.
    """
    hops: FigureOut
    """
    Of all queries, judged or not.
    """
    judged: int
    """
    Queries that a verdict counts for: of several, the one applied last.
    """
    median_total_ms: float | None
    """
    Of all queries.
    """
    queries: int
    reciprocal_rank: FigureOut
    """
    Of the first of these passages; 0 if none was in the answer.
    """
    retrieval_success: FigureOut
    """
    The verdict's word, else whether a passage that it supports was in the answer.
    """
    unjudged: int
    """
    Queries that no verdict was ever accepted for: nothing is known of them, and they need not be like the judged ones.
    """


class ChatChoice(Struct):
    """
    There is one.
    """

    message: ChatReplyMessage
    finish_reason: Literal["stop"] = "stop"
    index: Literal[0] = 0


class CitationOut(Struct):
    """
    A sentence that the answer rests on.
    """

    passage_id: str
    sentence_id: int
    source: PassageSourceOut
    text: str


class CollectionOut(Struct):
    """
    A collection and what it holds.
    """

    corpus_kind: Literal["encyclopedic", "general"]
    """
    Which ranking weights it has: 'encyclopedic' where passages are titled after the things they describe, else 'general'.
    """
    encoder: EncoderOut
    """
    What its vectors are made with. A process that runs another one refuses what would embed text.
    """
    entity_count: int
    experiment: ExperimentOut | None
    exploration: ExplorationOut | None
    fixed_kind: Literal["encyclopedic", "general"] | None
    """
    The kind that was set; null: by what was measured.
    """
    index_recall: dict[str, IndexRecallOut]
    """
    What these indexes find, by table, as workers measure it; one that finds too little is searched more broadly.
    """
    indexed: list[str]
    """
    Its tables that are searched by a vector index (passage, entity, question); the others are searched exactly.
    """
    key_building: Literal["full", "title", "abstract", "keywords"]
    """
    What the keys are made of by which passages are found.
    """
    kind_source: Literal["setting", "questions", "titles", "default"]
    """
    What decided on that: 'setting': somebody set it; 'questions': question_share; 'titles': title_share; 'default': nothing was measured yet.
    """
    language: str | None
    """
    The language of passages that come without one; null: theirs is recognised.
    """
    languages: dict[str, int]
    """
    How many of its passages have each language. A question is read in its own, and in those that one passage in a hundred has.
    """
    link_template: str | None
    """
    Template of the links to its passages; null: they have none.
    """
    name: str
    newer_half_life_days: float | None
    """
    Days after which half of its texts hold no more; null: age does not count.
    """
    passage_count: int
    past: PastOut | None
    """
    Of a copy that `engram replay` made: of what, and as of when.
    """
    published: PublishedOut | None
    """
    Null: verdicts teach sentence memories and passage keys.
    """
    question_count: int
    """
    Different questions that were looked at for that, of the latest 300.
    """
    question_share: float | None
    """
    Share of its questions with a candidate titled after something that they name. From one third on it is taken for encyclopedic, up to one tenth for general; in between title_share decides. Measured from 30 different questions on, until the first verdict. Null: too few were asked.
    """
    sentence_count: int
    serving: Literal["live", "shadow"]
    """
    'shadow': it learns, and serves without memory.
    """
    title_share: float | None
    """
    Share of its passages titled after what they describe, in [0, 1]; from one half on it is taken for encyclopedic. Measured after each ingest until the first verdict. Null: not measured yet.
    """


class CollectionsOut(Struct):
    """
    A page of collections, in name order.
    """

    collections: list[CollectionOut]
    next_after: str | None
    """
    Pass as after for the next page; null at the end.
    """
    out_of_reach: list[str]
    """
    Names of those in other databases whose API did not answer.
    """


class ComparedPassageOut(Struct):
    """
    A passage among the first of either arm.
    """

    passage_id: str
    rank_a: int | None
    """
    May lie beyond top_k; null where the arm did not rank it.
    """
    rank_b: int | None
    score_a: float | None
    """
    Scores of different profiles and strategies do not compare.
    """
    score_b: float | None
    source: PassageSourceOut
    text: str
    title: str | None


class DuplicateOut(Struct):
    """
    A passage that the answer leaves out, since another one has nearly its text.
    """

    metadata: dict[str, Any]
    passage_id: str
    source: PassageSourceOut
    title: str | None


class EvidenceOut(Struct):
    """
    A sentence of the pool, verbatim, with its citation: found when, by which query, filling which gap.
    """

    gap: str | None
    passage_id: str
    query: str | None
    """
    Null: the caller brought it, or an agent kept it of a document that went by.
    """
    round: int
    score: float | None
    sentence_id: int
    source: PassageSourceOut
    text: str


class EvolveOut(Struct):
    """
    Result of an evolution.
    """

    changed: bool
    """
    False where nothing waited that moves a key.
    """
    collection: str
    generation: GenerationOut | None
    """
    The new generation; null where nothing changed.
    """
    serving: int
    """
    The serving generation; 0: base keys.
    """


class ExpandOut(Struct):
    """
    Expansions of a question in the order of the methods; a method without new text has no entry.
    """

    collection: str
    expansions: list[ExpansionOut]
    query: str
    warnings: list[WarningOut] | None = None
    """
    Methods that the endpoint failed; if it failed all, the answer is 502.
    """


class FactCitationOut(Struct):
    """
    Source of a fact: a statement, with the passage that it came from.
    """

    learned_at: str
    passage_id: str | None
    source: PassageSourceOut | None
    """
    Where the passage comes from; null: there is none.
    """
    stated_by: str
    """
    Who stated it.
    """
    text: str
    withdrawn_at: str | None
    """
    Since when it says so no more: its passage was changed.
    """


class FactDetail(Struct):
    """
    A fact, who says it, and what moved it.
    """

    belief: float
    """
    From 0, surely wrong, to 1, surely right; below 0.5 it is doubted.
    """
    closed_at: str | None
    closed_reason: str | None
    doubted: bool
    fact_id: int
    held_until: str | None
    """
    The same, by what ended it since.
    """
    history: list[FactCauseOut]
    learned_at: str
    object: str
    object_entity_id: int | None
    object_kind: str
    perplexity: float
    """
    How little is known: 1 before anything was said.
    """
    predicate: str
    sources: list[FactCitationOut]
    subject: EntityRef
    superseded_by: int | None
    valid_from: str | None
    valid_to: str | None
    """
    First day on which it no longer holds, by itself.
    """


class FactEntityOut(Struct):
    """
    An entity with the facts around it.
    """

    entity_id: int
    facts: list[FactOut]
    merged: list[EntityRef]
    name: str
    stands_for: EntityRef | None
    """
    The entity that it was merged into.
    """


class FactSearchOut(Struct):
    """
    Paths, their facts, and these as text; citations are numbered from 1.
    """

    citations: list[FactCitationOut]
    collection: str
    facts: list[FactOut]
    paths: list[PathOut]
    starts: list[EntityRef]
    text: str
    """
    The facts, a line for each subject; a number in brackets is a citation's.
    """
    tokens: int
    """
    Of the text, about as many as a language model counts.
    """


class FeedbackDetail(Struct):
    """
    An event with the verdict as it was resolved.
    """

    applied_at: str | None
    changes: list[ChangeOut] | None
    """
    What it changed; null where nobody waited for it.
    """
    collection: str
    effect: str | None
    """
    In words, what the next answer to the question shows of it, or why nothing; null until it is applied, or where nobody waited for it.
    """
    error: str | None
    """
    Why the last try to apply it failed, or what it waits for.
    """
    feedback_id: int
    judge: str
    keys: KeyEffectOut | None
    """
    What its expansions came to; null where it carried none, or nobody waited for it.
    """
    query_id: str
    received_at: str
    revoked_at: str | None
    status: str
    """
    pending, applied, parked or revoked
    """
    verdict: dict[str, Any]


class FeedbackOut(Struct):
    """
    An accepted verdict and what became of it.
    """

    applied_at: str | None
    changes: list[ChangeOut] | None
    """
    What it changed; null where nobody waited for it.
    """
    collection: str
    effect: str | None
    """
    In words, what the next answer to the question shows of it, or why nothing; null until it is applied, or where nobody waited for it.
    """
    error: str | None
    """
    Why the last try to apply it failed, or what it waits for.
    """
    feedback_id: int
    judge: str
    keys: KeyEffectOut | None
    """
    What its expansions came to; null where it carried none, or nobody waited for it.
    """
    query_id: str
    received_at: str
    revoked_at: str | None
    status: str
    """
    pending, applied, parked or revoked
    """


class FiguresOut(Struct):
    """
    Figures of the held-out verdicts.
    """

    all: GainOut
    others: GainOut
    """
    Questions that share no passage with those learned from.
    """
    overlap: float | None
    """
    Share of their first five passages that unjudged questions keep; null: there are none.
    """
    recall: GainOut
    """
    Questions that share evidence with another judged one: gain in the share of those whose evidence their nearest judged questions vote for.
    """
    sharing: GainOut
    """
    Questions that share one.
    """


class GapsOut(Struct):
    """
    Needs that a collection did not meet, open ones first, and of these the most frequent.
    """

    collection: str
    gaps: list[UnmetNeedOut]
    level: float
    """
    Sufficiency below which a question was not answered.
    """
    queries: int
    """
    That were looked at, up to 1,000, the latest.
    """
    since: str


class HopOut(Struct):
    """
    One propagation round.
    """

    candidates: int
    coverage: float | None
    entities: dict[str, float]
    hop: int
    sentences: list[SentenceTraceOut]


class JobDetail(Struct):
    """
    A job, with the lines of an ingest that were rejected.
    """

    ahead: int | None
    """
    Of a queued job: how many of the collection's jobs are done before it; null: it does not wait.
    """
    cancel_requested_at: str | None
    """
    When its end was asked for; a job still running ends as soon as what is in hand is whole.
    """
    cancel_url: str | None
    """
    Path to `POST` to; null: nothing is left to cancel.
    """
    collection: str
    created: int
    created_at: str
    error: str | None
    """
    The last failure; a job still queued or running is tried again.
    """
    errors: list[LineError]
    """
    Rejected lines, a page of them.
    """
    finished_at: str | None
    job_id: str
    key_building: Literal["full", "title", "abstract", "keywords"] | None
    """
    Of a re-key job: what keys are made of once it has succeeded; null: another job.
    """
    kind: str
    """
    ingest, rekey, reembed, revocation, erasure or replay; a wing adds its own kinds, as session and tune
    """
    next_errors_after: int | None
    """
    Pass as errors_after for the next page; null at the end.
    """
    received: int
    rejected: int
    replay: ReplayOut | None
    """
    Of a job that brings back a past moment; null: another job.
    """
    result: dict[str, Any] | None
    """
    Of a replay that succeeded: what the collection holds; of a reembed: of which encoder it is. Of an ingest, warnings by type: time-by-rules counts the sentences whose time the LLM failed to find, unknown-language the passages in a language that the encoder does not know.
    """
    revocation: RevocationOut | None
    """
    Of a job that revokes verdicts; null: another job.
    """
    stage: str | None
    """
    What a job that has several stages is at.
    """
    status: str
    """
    receiving, queued, running, succeeded, failed or cancelled
    """
    unchanged: int
    updated: int
    updated_at: str
    waiting: int


class JobOut(Struct):
    """
    A job: what it is about, and how far it is.

    Counted are lines of an ingest, passages of a re-key job, verdicts of a revocation (`updated`: by it,
    `unchanged`: by others meanwhile), and what the stage of a replay is about: received = created + updated +
    unchanged + rejected + waiting. Of a job that failed or was cancelled, what was done by then stays done, but for
    the keys of a re-key job and the collection of a replay, which are there whole or not at all.
    """

    ahead: int | None
    """
    Of a queued job: how many of the collection's jobs are done before it; null: it does not wait.
    """
    cancel_requested_at: str | None
    """
    When its end was asked for; a job still running ends as soon as what is in hand is whole.
    """
    cancel_url: str | None
    """
    Path to `POST` to; null: nothing is left to cancel.
    """
    collection: str
    created: int
    created_at: str
    error: str | None
    """
    The last failure; a job still queued or running is tried again.
    """
    finished_at: str | None
    job_id: str
    key_building: Literal["full", "title", "abstract", "keywords"] | None
    """
    Of a re-key job: what keys are made of once it has succeeded; null: another job.
    """
    kind: str
    """
    ingest, rekey, reembed, revocation, erasure or replay; a wing adds its own kinds, as session and tune
    """
    received: int
    rejected: int
    replay: ReplayOut | None
    """
    Of a job that brings back a past moment; null: another job.
    """
    result: dict[str, Any] | None
    """
    Of a replay that succeeded: what the collection holds; of a reembed: of which encoder it is. Of an ingest, warnings by type: time-by-rules counts the sentences whose time the LLM failed to find, unknown-language the passages in a language that the encoder does not know.
    """
    revocation: RevocationOut | None
    """
    Of a job that revokes verdicts; null: another job.
    """
    stage: str | None
    """
    What a job that has several stages is at.
    """
    status: str
    """
    receiving, queued, running, succeeded, failed or cancelled
    """
    unchanged: int
    updated: int
    updated_at: str
    waiting: int


class JobsOut(Struct):
    """
    A page of a collection's jobs, the latest first.
    """

    collection: str
    jobs: list[JobOut]
    next_before: int | None
    """
    Pass as before for the next page; null at the end.
    """


class JudgeOut(Struct):
    """
    A judge, its verdicts, and how far they move what is learned.
    """

    applied: int
    constants: ConstantsOut
    judge: str
    parked: int
    pending: int
    revoked: int
    set: list[str]
    """
    Names of the settings that were set for this judge.
    """
    standing: StandingOut
    trusted: bool
    """
    Whether its verdicts count in full, whatever its standing: by its settings, or by the key that its latest verdict came with.
    """


class JudgesOut(Struct):
    """
    Judges in name order.
    """

    collection: str
    judges: list[JudgeOut]
    next_after: str | None
    """
    Pass as after for the next page; null at the end.
    """


class KeyOut(Struct):
    """
    A passage's key as it serves, and why.
    """

    collection: str
    cosine: float
    """
    Of the serving key and the base key.
    """
    displacement: float
    """
    Distance of the serving key from the base key, both of length 1.
    """
    displacement_bound: float
    """
    What the displacement cannot exceed.
    """
    evolved: bool
    generation: int
    """
    The collection's serving generation; 0: base keys.
    """
    key_building: Literal["full", "title", "abstract", "keywords"]
    """
    What the base key is made of.
    """
    key_generation: int | None
    """
    The latest evolution that took in evidence for this key; null for a base key.
    """
    passage_id: str
    term_count: int
    terms: list[AddedTermOut]
    """
    What the units add to the lexical key: the 50 most raised.
    """
    unit_count: int
    units: list[UnitOut]
    """
    The passage's expansion memory, best first.
    """


class KeyTraceOut(Struct):
    """
    The evolved key that a passage was found by.
    """

    base_similarity: float
    """
    The same of its base key.
    """
    similarity: float
    """
    Cosine of the key with the question, expansions included.
    """
    units: list[KeyUnitTraceOut]
    """
    What it is composed of, best first.
    """


class LearnedOut(Struct):
    """
    Learning of a collection by the counting verdicts.
    """

    collection: str
    course: list[MomentOut]
    """
    In order of time, at most 60 moments.
    """
    memories: list[MovedOut]
    """
    Those moved last, the latest first.
    """
    perplexity: float | None
    """
    The mean of these memories'; null where none was moved.
    """
    states: int
    """
    Memories that verdicts moved: a sentence's, and its time's.
    """
    verdicts: int


class LiftOut(Struct):
    """
    The arms of a collection, side by side.
    """

    arms: list[ArmLiftOut]
    """
    The experiment's in its order, then former ones that were asked by name, then queries without an arm. That last one was not drawn by chance if callers chose arms themselves.
    """
    baseline: str | None
    """
    The arm that the others are compared with; null: there is no arm.
    """
    collection: str
    from_: str | None = field(name="from")
    to: str | None


class ListedFeedbackOut(Struct):
    """
    A verdict in a list, with what it is on and what it names.
    """

    applied_at: str | None
    changes: list[ChangeOut] | None
    """
    What it changed; null where nobody waited for it.
    """
    collection: str
    effect: str | None
    """
    In words, what the next answer to the question shows of it, or why nothing; null until it is applied, or where nobody waited for it.
    """
    error: str | None
    """
    Why the last try to apply it failed, or what it waits for.
    """
    feedback_id: int
    judge: str
    keys: KeyEffectOut | None
    """
    What its expansions came to; null where it carried none, or nobody waited for it.
    """
    query_id: str
    question: str | None
    """
    Null if what others asked is not for the key to see.
    """
    rating: Literal["up", "down", "withdrawn"] | None
    """
    The thumb that it was made of; null if sentences were judged.
    """
    reason: str | None
    """
    The reason that came with the rating.
    """
    received_at: str
    revoked_at: str | None
    sentences: list[NamedSentenceOut]
    """
    At most 20, in the order of their ids.
    """
    sentences_cut: bool
    """
    Whether the verdict names more.
    """
    status: str
    """
    pending, applied, parked or revoked
    """
    supporting_passages: list[str]
    """
    Passages that helped as a whole.
    """


class ListedPassageOut(Struct):
    """
    A passage in a list.
    """

    document: str | None
    """
    Source of the document that it is made of; null: it came by itself.
    """
    id: str
    language: str
    metadata: dict[str, Any]
    readers: list[list[str] | None] | None
    """
    Its list of readers, as a document has several, for who may import; null for others. Null in it is everyone, and an empty list nobody but `admin`.
    """
    source: PassageSourceOut
    text: str
    title: str | None


class PassageContextOut(Struct):
    """
    Context of a passage in its document: passages whose ids end in the numbers before and after its own.

    What you may not read, or what has no room, ends its side.
    """

    after: list[SurroundingPassageOut]
    before: list[SurroundingPassageOut]
    """
    In reading order.
    """


class PassageCountOut(Struct):
    """
    Numbers of visible passages by the values of a field.
    """

    collection: str
    groups: list[PassageGroupOut]
    """
    The largest first.
    """
    more: bool
    """
    Whether there are further groups.
    """
    passages: int
    """
    That you see and the filter lets through.
    """
    without: int
    """
    Of them without the field, or with null or an empty list there.
    """


class PassageHit(Struct):
    """
    A ranked passage with the sentences that speak for it.
    """

    language: str
    """
    Of its text, as it was given or recognised.
    """
    metadata: dict[str, Any]
    passage_id: str
    score: float
    """
    What the answer is ordered by. Compare it within one answer only, but for strategy `dense`. Strategy `graph` with profile `default`: log odds that the passage is evidence, but for a constant of the question (any number); with `paper`: similarity of its key plus its selected sentences (any number). `dense`: cosine of its key and the question (-1 to 1), which compares across answers of one collection. `lexical`: BM25 (above 0). `hybrid`: sum of reciprocal ranks (above 0, at most 0.033).
    """
    sentences: list[SentenceOut]
    source: PassageSourceOut
    text: str
    title: str | None
    collection: str | None = None
    """
    Its own, if the query asked several.
    """
    context: PassageContextOut | None = None
    """
    Null if the query did not ask for it, and in stored answers.
    """
    duplicates: list[DuplicateOut] | None = None
    """
    Passages with nearly its text, which it stands for. A verdict that names one of them counts for it.
    """
    explored: bool = False
    """
    Whether it is there by chance, from below the passages wanted.
    """


class PassageOut(Struct):
    """
    A passage as it is stored.
    """

    id: str
    language: str
    """
    As it was given or recognised; by it words are analysed.
    """
    metadata: dict[str, Any]
    sentences: list[StoredSentenceOut]
    source: PassageSourceOut
    text: str
    title: str | None


class PassageTraceOut(Struct):
    """
    Why a returned passage has its score, and what memory did to it.
    """

    completes: str | None
    """
    Of the passages found first, the one that it adds most to: a passage_id. Null if to none.
    """
    features: dict[str, FeatureTraceOut]
    """
    Those that are not 0, by name (docs/ranking.md). None where features do not rank: with profile 'paper', and with strategies other than 'graph'.
    """
    influences: list[PassageInfluenceOut]
    """
    At most 10, the strongest first.
    """
    influences_cut: bool
    """
    Whether there may be more.
    """
    key: KeyTraceOut | None
    """
    Null where the passage has its base key.
    """
    passage_id: str
    rank: int
    rank_without_memory: int | None
    """
    Null where it would not have been among the candidates. The question is searched again for it.
    """
    recall: float
    """
    What recalled sentences add to the score.
    """
    score: float
    """
    The sum of value times weight over the features, and recall.
    """
    text_since: str
    """
    When its text became what it is. Verdicts applied before were on an earlier text.
    """


class PassagesOut(Struct):
    """
    A page of passages, in the order of their ids.
    """

    next_after: str | None
    """
    Pass as after for the next page; null at the end.
    """
    passages: list[ListedPassageOut]


class RecordsOut(Struct):
    """
    The passages, best first.
    """

    records: list[RecordOut]
    warnings: list[WarningOut] | None = None
    """
    What was not read of the question, or had to be done without: not in Dify's shape.
    """


class RerankOut(Struct):
    """
    The texts, best first.
    """

    id: str
    """
    The `query_id`, for `POST /feedback`.
    """
    meta: RerankMetaOut
    model: str
    results: list[RerankedOut]
    object: Literal["list"] = "list"


class RoundOut(Struct):
    """
    A round.
    """

    action: str
    """
    What was done, in the planner's word.
    """
    cost: CostOut
    covered: float | None
    created_at: str | None
    curated: CuratedOut
    gap: GapOut | None
    number: int
    queries: list[str]
    query_ids: list[str]
    """
    Of the queries; each is kept like any other.
    """
    said: dict[str, Any]
    """
    What else the planner says of it.
    """
    sub_question: str | None
    sufficiency: float | None
    warnings: list[SessionWarningOut]


class SessionOut(Struct):
    """
    A session whole.
    """

    answer: ConclusionOut | None
    budget: dict[str, float]
    collection: str
    cost: CostOut
    covered: float | None
    """
    Share of what the question names and asks for that the pool has.
    """
    created_at: str
    evidence: list[EvidenceOut]
    """
    The pool, in the order in which it came.
    """
    finished_at: str | None
    job_id: str | None
    notes: list[NoteOut]
    """
    The working memory.
    """
    passages: list[SessionPassageOut]
    """
    Best first.
    """
    plan: dict[str, Any]
    """
    The planner's own state.
    """
    planner: str
    question: str
    rounds: list[RoundOut]
    session_id: str
    status: Literal["running", "stopped", "cancelled", "failed"]
    stop_reason: (
        Literal[
            "sufficiency",
            "covered",
            "found",
            "answered",
            "sufficient",
            "not_found",
            "no_gap",
            "nothing_new",
            "asked",
            "rounds",
            "llm_calls",
            "tokens",
            "seconds",
            "passages",
            "cancelled",
            "failed",
            "erased",
        ]
        | None
    )
    sufficiency: float | None
    """
    Probability that the first five passages hold all the evidence; null where it ended not_found.
    """
    warnings: list[SessionWarningOut]


class SideOut(Struct):
    """
    Answer of one arm and how it came about.
    """

    hops: int
    memory: Literal["off", "read"]
    profile: Literal["paper", "default"]
    read: MemoryPartOut
    stop_reason: Literal["max_hops", "sufficient", "no_entities", "no_candidates", "no_hops"]
    strategy: Literal["graph", "dense", "lexical", "hybrid"]
    timings: TimingsOut
    warnings: list[WarningOut] | None = None
    """
    What the LLM endpoint failed, and was done without it.
    """


class TraceOut(Struct):
    """
    Trace of an answer.
    """

    entities: list[EntityOut]
    hops: list[HopOut]
    recalled: list[RecallOut]
    time_constraint: str | None
    collapsed: int | None = None
    """
    Candidates that were left out as duplicates of better ones; null where none would be.
    """
    corrections: list[CorrectionOut] | None = None
    """
    Words taken for typing errors, or searched for with a near one. Not kept.
    """
    language: str | None = None
    """
    Of the question; of its collection, if the question does not tell and that has one language.
    """
    lexical_terms: int = 0
    """
    Terms of the question and its expansions that are matched word for word.
    """
    passages: list[PassageTraceOut] | None = None
    """
    What memory did to each returned passage; null where the query did not ask for a trace.
    """
    rejected: list[RejectionTraceOut] | None = None
    """
    Passages that judges rejected for this question or one with the same need, the surest first; null where the query did not ask for a trace.
    """
    sufficiency: SufficiencyOut | None = None
    """
    Null with profile 'paper', and with strategies other than 'graph'.
    """
    versions: VersionTraceOut | None = None
    """
    Null where no passage has another version of its text.
    """


class TracedQueriesOut(Struct):
    """
    The queries of a trace, oldest first.
    """

    collection: str
    queries: list[TracedQueryOut]
    trace_id: str


class TuningGenerationOut(Struct):
    """
    One attempt to tune the question encoder.
    """

    accepted: bool
    borrowed: bool
    """
    Whether another collection's verdicts taught it.
    """
    created_at: str
    figures: FiguresOut | None
    """
    Null: nothing was learned.
    """
    lender: str | None
    """
    That collection; null if there is none, or you may not read it.
    """
    number: int
    question_count: int
    """
    Judged questions that it was learned from.
    """
    reason: str
    """
    The decision in words.
    """
    usable: bool
    """
    Whether it can serve: it was accepted, and not withdrawn since.
    """
    verdict_count: int
    """
    Verdicts behind these.
    """
    withdrawn_at: str | None
    """
    When its adapter was removed: on request, with a verdict, or for readers. Null: it was not.
    """


class TuningOut(Struct):
    """
    The state of a collection's tuning.
    """

    collection: str
    due_at: int | None
    """
    Judged questions at which the next attempt comes by itself; null: never.
    """
    enabled: bool
    """
    Whether the collection is tuned by itself, and a generation may serve.
    """
    generations: list[TuningGenerationOut]
    """
    The latest first.
    """
    judged_questions: int
    next_before: int | None
    """
    Pass it as `before` for earlier ones; null: there are none.
    """
    serving: int
    """
    The generation that serves; 0: the encoder as it is.
    """
    tunable: bool
    """
    Whether this service can tune the collection's encoder now.
    """


class ChatGrounds(Struct):
    """
    Basis of the answer, beyond OpenAI's shape; a verdict needs it.
    """

    citations: list[CitationOut]
    query_id: str
    """
    For `POST /feedback`.
    """
    question: str
    """
    As it was asked of the collection, where earlier messages had a say restated.
    """
    sufficiency: float | None
    sufficient: bool
    warnings: list[WarningOut]
    trace_id: str | None = None
    """
    By which scores find the query.
    """


class ChatOut(Struct):
    """
    A chat completion.
    """

    choices: list[ChatChoice]
    created: int
    """
    Unix time in seconds.
    """
    engram: ChatGrounds
    id: str
    model: str
    object: Literal["chat.completion"] = "chat.completion"


class CollectionAnswerOut(Struct):
    """
    Answer of one of several collections, beside its passages in the joint list.
    """

    arm: str | None
    collection: str
    entities: list[EntityOut] | None
    hops: int
    insufficient: bool
    memory: Literal["off", "read"]
    profile: Literal["paper", "default"]
    shadow: bool
    stop_reason: Literal["max_hops", "sufficient", "no_entities", "no_candidates", "no_hops"]
    strategy: Literal["graph", "dense", "lexical", "hybrid"]
    sufficiency: float | None
    sufficiency_level: SufficiencyLevelOut | None
    timings: TimingsOut
    trace: TraceOut | None
    warnings: list[WarningOut]


class CompareOut(Struct):
    """
    One question under two arms. It leaves no query behind that feedback could refer to.
    """

    a: SideOut
    b: SideOut
    collection: str
    passages: list[ComparedPassageOut]
    """
    The first top_k of either arm, by the better of their two ranks.
    """
    query: str
    top_k: int


class EpisodeOut(Struct):
    """
    An answered query, read again, with its trace.
    """

    collection: str
    created_at: str
    hops: int
    judged: int
    """
    Feedback events accepted for it.
    """
    memory: Literal["off", "read"]
    passages: list[PassageHit]
    profile: Literal["paper", "default"]
    query: str
    query_id: str
    shown_texts: list[ShownTextOut]
    """
    Which text each passage had when it was shown.
    """
    stop_reason: Literal["max_hops", "sufficient", "no_entities", "no_candidates", "no_hops"]
    stop_rule: Literal["none", "coverage", "learned", "llm"]
    timings: TimingsOut
    arm: str | None = None
    """
    The arm of the collection's experiment that answered; null: none was given.
    """
    collapse_duplicates: bool = False
    """
    Whether passages with nearly the text of a better one are left out.
    """
    collections: list[CollectionAnswerOut] | None = None
    """
    If the query asked several collections: how each answered. Then `collection` and what is not named here are the first one's, `sufficiency` is the highest, and `timings` are the longest.
    """
    entities: list[EntityOut] | None = None
    expanded: bool = False
    """
    Whether the question came with expansions.
    """
    expansions: list[QueryExpansionOut] | None = None
    """
    What the question came with, as a verdict takes it.
    """
    filter: dict[str, Any] | None = None
    """
    What passages' metadata had to meet.
    """
    insufficient: bool = False
    """
    Whether passages are withheld because sufficiency is below the query's min_sufficiency.
    """
    shadow: bool = False
    """
    Whether memory was off because the collection serves in shadow.
    """
    strategy: Literal["graph", "dense", "lexical", "hybrid"] = "graph"
    sufficiency: float | None = None
    """
    With what probability the first five passages hold all the evidence (docs/ranking.md); verdicts teach it. Null with profile 'paper', and with strategies other than 'graph'.
    """
    sufficiency_level: SufficiencyLevelOut | None = None
    """
    The level of min_sufficiency 'auto'. Null if the query did not ask for it.
    """
    trace: TraceOut | None = None
    trace_id: str | None = None
    """
    The trace that the query belongs to, as its caller named it.
    """
    warnings: list[WarningOut] | None = None
    """
    What the LLM endpoint failed, and was done without it. Not kept.
    """


class FeedbackPage(Struct):
    """
    Events in order of acceptance.
    """

    feedback: list[ListedFeedbackOut]
    next_after: int | None
    """
    Pass as after for the next page; null at the end.
    """
    next_before: int | None
    """
    The same for before, where that was given.
    """


class QueryOut(Struct):
    """
    The answer to a query; feedback refers to it by ``query_id``.
    """

    collection: str
    hops: int
    memory: Literal["off", "read"]
    passages: list[PassageHit]
    profile: Literal["paper", "default"]
    query: str
    query_id: str
    stop_reason: Literal["max_hops", "sufficient", "no_entities", "no_candidates", "no_hops"]
    stop_rule: Literal["none", "coverage", "learned", "llm"]
    timings: TimingsOut
    arm: str | None = None
    """
    The arm of the collection's experiment that answered; null: none was given.
    """
    collapse_duplicates: bool = False
    """
    Whether passages with nearly the text of a better one are left out.
    """
    collections: list[CollectionAnswerOut] | None = None
    """
    If the query asked several collections: how each answered. Then `collection` and what is not named here are the first one's, `sufficiency` is the highest, and `timings` are the longest.
    """
    entities: list[EntityOut] | None = None
    expanded: bool = False
    """
    Whether the question came with expansions.
    """
    insufficient: bool = False
    """
    Whether passages are withheld because sufficiency is below the query's min_sufficiency.
    """
    shadow: bool = False
    """
    Whether memory was off because the collection serves in shadow.
    """
    strategy: Literal["graph", "dense", "lexical", "hybrid"] = "graph"
    sufficiency: float | None = None
    """
    With what probability the first five passages hold all the evidence (docs/ranking.md); verdicts teach it. Null with profile 'paper', and with strategies other than 'graph'.
    """
    sufficiency_level: SufficiencyLevelOut | None = None
    """
    The level of min_sufficiency 'auto'. Null if the query did not ask for it.
    """
    trace: TraceOut | None = None
    trace_id: str | None = None
    """
    The trace that the query belongs to, as its caller named it.
    """
    warnings: list[WarningOut] | None = None
    """
    What the LLM endpoint failed, and was done without it. Not kept.
    """


class AnswerOut(Struct):
    """
    An answer in words with the sentences it cites, and the retrieval it rests on.
    """

    answer: str
    """
    Empty where the evidence gives no answer.
    """
    citations: list[CitationOut]
    retrieval: QueryOut
    sufficient: bool
    """
    Whether the model found the evidence sufficient.
    """
    warnings: list[WarningOut] | None = None
    """
    That the LLM endpoint failed to answer: there is what was retrieved.
    """


class BatchedOut(Struct):
    """
    Result of one question of a batch: its answer, or its error.
    """

    answer: QueryOut | None = None
    problem: Problem | None = None


class BatchOut(Struct):
    """
    An answer or a problem for each question, in their order.
    """

    answers: list[BatchedOut]

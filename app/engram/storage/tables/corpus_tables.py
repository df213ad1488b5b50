"""Tables of the corpus: passages, sentences, entities, times, and terms of the lexical index."""

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    ARRAY,
    REAL,
    TIMESTAMP,
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import build_timestamp_column, metadata, parent_key, tenant

collection = Table(
    "collection",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column(
        "tenant",
        Text,
        ForeignKey("tenant.name"),
        nullable=False,
        server_default=text("'local'"),
        comment="Whose it is.",
    ),
    Column("name", Text, nullable=False),
    Column("encoder_model", Text, nullable=False, comment="What its vectors are made with, by name."),
    Column(
        "encoder_fingerprint",
        Text,
        nullable=False,
        comment="And for certain: SHA-256 of the weights. Vectors of others mean nothing beside them.",
    ),
    Column("encoder_dimension", Integer, nullable=False, comment="Length of each of its vectors."),
    Column("passage_count", BigInteger, nullable=False, server_default=text("0")),
    Column("sentence_count", BigInteger, nullable=False, server_default=text("0")),
    Column("entity_count", BigInteger, nullable=False, server_default=text("0")),
    Column(
        "lexical_length",
        Float(53),
        nullable=False,
        server_default=text("0"),
        comment="Of all passages together, in terms: with passage_count the mean length that BM25 needs.",
    ),
    Column(
        "key_building", Text, nullable=False, server_default=text("'full'"), comment="What base keys are made of."
    ),
    Column("key_generation", BigInteger, nullable=False, server_default=text("0"), comment="0: base keys serve."),
    Column(
        "serving",
        Text,
        nullable=False,
        server_default=text("'live'"),
        comment="shadow: it learns, and serves without memory.",
    ),
    Column("experiment", JSONB, comment="Arms that queries are given by percentage."),
    Column("exploration", JSONB, comment="How answers make room for what is untried."),
    Column("past", JSONB, comment="Of a copy that a replay made: of which collection, as of when, by which job."),
    Column(
        "indexed",
        ARRAY(Text),
        nullable=False,
        server_default=text("'{}'"),
        comment="Tables that have a vector index of this collection's rows; others are searched exactly.",
    ),
    Column(
        "space",
        Integer,
        nullable=False,
        server_default=text("0"),
        comment="Counts its encoders: another number, other vectors.",
    ),
    Column(
        "index_recall",
        JSONB,
        nullable=False,
        server_default=text("'{}'"),
        comment="Of its vector indexes, by table: how much they find, and the breadth of search that it takes.",
    ),
    Column(
        "keys_version",
        Uuid,
        nullable=False,
        server_default=text("gen_random_uuid()"),
        comment="Another one with each change of its passages' base keys.",
    ),
    build_timestamp_column("created_at"),
    Column(
        "going_since",
        TIMESTAMP(timezone=True),
        comment="It was deleted: nobody finds it any more, and its rows go piece by piece.",
    ),
    Column(
        "title_share", REAL, comment="Share of its passages titled after what they describe; null until measured."
    ),
    Column("fixed_kind", Text, comment="The kind of corpus that somebody set; null: by what was measured."),
    Column(
        "passage_facts",
        Text,
        nullable=False,
        server_default=text("'auto'"),
        comment="Which passages facts are read from: on (all), off (none), auto (those about their title).",
    ),
    Column(
        "question_share",
        REAL,
        comment="Share of its questions that name what a candidate is titled after; null until enough were asked.",
    ),
    Column(
        "question_count",
        Integer,
        nullable=False,
        server_default=text("0"),
        comment="Different questions that question_share was looked for in.",
    ),
    CheckConstraint("passage_facts IN ('auto', 'on', 'off')", name="passage_facts"),
    CheckConstraint("fixed_kind IN ('encyclopedic', 'general')", name="fixed_kind"),
    CheckConstraint("key_building IN ('full', 'title', 'abstract', 'keywords')", name="key_building"),
    CheckConstraint("serving IN ('live', 'shadow')", name="serving"),
    CheckConstraint("encoder_dimension BETWEEN 1 AND 4096", name="encoder_dimension"),
    UniqueConstraint("tenant", "name"),
)

# Of no collection: several may have their vectors of one.
encoder = Table(
    "encoder",
    metadata,
    Column("fingerprint", Text, primary_key=True),
    Column("model", Text, nullable=False),
    Column("dimension", Integer, nullable=False),
    Column(
        "probes",
        LargeBinary,
        nullable=False,
        comment="Vectors of fixed texts, one after the other, float32 little-endian.",
    ),
    build_timestamp_column("created_at"),
    CheckConstraint("dimension BETWEEN 1 AND 4096", name="dimension"),
    comment="Encoders behind a server, which shows no weights: known by what they make of probes.",
)

passage = Table(
    "passage",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("external_id", Text, nullable=False),
    Column("title", Text),
    Column("text", Text, nullable=False),
    Column("metadata", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("content_hash", LargeBinary, nullable=False),
    Column("embedding", VECTOR(), info={"storage": "MAIN"}, nullable=False),
    build_timestamp_column("created_at"),
    build_timestamp_column("updated_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "external_id"),
    Index("passage_text_idx", "collection_id", text("hashtextextended(text, 0)")),
    Index(
        "passage_metadata_gin",
        "metadata",
        postgresql_using="gin",
        postgresql_ops={"metadata": "jsonb_path_ops"},
    ),
)

time_expression = Table(
    "time_expression",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("text", Text, nullable=False),
    Column("starts_on", Date),
    Column("ends_on", Date),
    Column("embedding", VECTOR(), info={"storage": "MAIN"}, nullable=False),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "text"),
)

sentence = Table(
    "sentence",
    metadata,
    tenant(),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("passage_id", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("time_expression_id", BigInteger),
    Column("embedding", VECTOR(), info={"storage": "MAIN"}, nullable=False),
    PrimaryKeyConstraint("collection_id", "id"),
    parent_key("passage", "passage_id"),
    ForeignKeyConstraint(
        ["collection_id", "time_expression_id"], ["time_expression.collection_id", "time_expression.id"]
    ),
    Index(None, "collection_id", "passage_id"),
    Index(None, "collection_id", "time_expression_id"),
)

entity = Table(
    "entity",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("name", Text, nullable=False, comment="Normalised: equal names meet here."),
    Column("surface", Text, nullable=False),
    Column("spelling", Text, nullable=False, comment="Names that differ in their spelling only meet here."),
    Column(
        "embedding",
        VECTOR(),
        info={"storage": "MAIN"},
        comment="Null until it is made, which is after the passages can be found.",
    ),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "name"),
    Index(None, "collection_id", "spelling"),
    Index("entity_waiting_idx", "collection_id", "id", postgresql_where=text("embedding IS NULL")),
)

entity_sentence = Table(
    "entity_sentence",
    metadata,
    tenant(),
    Column("entity_id", BigInteger, nullable=False),
    Column("sentence_id", BigInteger, nullable=False),
    Column("passage_id", BigInteger, nullable=False, comment="That of the sentence, so that none is looked up."),
    # Read from the index alone: which passages name an entity.
    PrimaryKeyConstraint("collection_id", "entity_id", "sentence_id", postgresql_include=["passage_id"]),
    parent_key("entity", "entity_id"),
    parent_key("sentence", "sentence_id"),
    Index(None, "collection_id", "sentence_id", "entity_id"),
    Index(None, "collection_id", "passage_id", "entity_id"),
    comment="M_ES of GAM-RAG, Eq. 1.",
)

lexical_term = Table(
    "lexical_term",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("term", Text, nullable=False),
    Column("passage_count", BigInteger, nullable=False, comment="How many passages hold it."),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "term"),
    CheckConstraint("passage_count >= 0", name="passage_count"),
    postgresql_with={"fillfactor": "70"},
)

lexical_posting = Table(
    "lexical_posting",
    metadata,
    tenant(),
    Column("term_id", BigInteger, nullable=False),
    Column("passage_id", BigInteger, nullable=False),
    Column("frequency", REAL, nullable=False, comment="How often the passage has the term; need not be whole."),
    Column("length", REAL, nullable=False, comment="The passage's length in terms, so that no row is looked up."),
    # Read from the index alone, which is why that holds the whole row.
    PrimaryKeyConstraint("collection_id", "term_id", "passage_id", postgresql_include=["frequency", "length"]),
    comment="No foreign keys: checking one costs more than the row. A posting is reached from its term only.",
)

lexical_passage = Table(
    "lexical_passage",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("passage_id", BigInteger, nullable=False),
    Column("analyser", Integer, nullable=False, comment="Version of the analysis that gave the terms."),
    Column("length", REAL, nullable=False),
    Column("term_ids", ARRAY(BigInteger), nullable=False, comment="Where the passage's postings are."),
    PrimaryKeyConstraint("collection_id", "passage_id"),
    # No cascade: a passage cannot leave while it is still counted.
    ForeignKeyConstraint(["collection_id", "passage_id"], ["passage.collection_id", "passage.id"]),
    comment="What takes a passage out of the lexical index again, exactly as it came.",
)

staged_embedding = Table(
    "staged_embedding",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("encoder", Text, nullable=False, comment="Its fingerprint."),
    Column("passage_id", BigInteger, comment="With none of these it is of a text that callers sent."),
    Column("sentence_id", BigInteger),
    Column("entity_id", BigInteger),
    Column("time_expression_id", BigInteger),
    Column(
        "digest",
        LargeBinary,
        comment="Of what it is of: a passage's content and what keys are made of, or a caller's text.",
    ),
    Column("embedding", VECTOR(), info={"storage": "MAIN"}, nullable=False),
    PrimaryKeyConstraint("collection_id", "id"),
    parent_key("passage", "passage_id"),
    parent_key("sentence", "sentence_id"),
    parent_key("entity", "entity_id"),
    parent_key("time_expression", "time_expression_id"),
    CheckConstraint("num_nonnulls(passage_id, sentence_id, entity_id, time_expression_id) <= 1", name="one"),
    CheckConstraint(
        "(digest IS NULL) = (num_nonnulls(sentence_id, entity_id, time_expression_id) = 1)", name="digest"
    ),
    *(
        Index(
            f"staged_embedding_{name}_idx",
            "collection_id",
            column,
            "encoder",
            unique=True,
            postgresql_where=text(condition),
        )
        for name, column, condition in (
            ("passage", "passage_id", "passage_id IS NOT NULL"),
            ("sentence", "sentence_id", "sentence_id IS NOT NULL"),
            ("entity", "entity_id", "entity_id IS NOT NULL"),
            ("time", "time_expression_id", "time_expression_id IS NOT NULL"),
            ("text", "digest", "digest IS NOT NULL AND passage_id IS NULL"),
        )
    ),
    comment="Vectors by encoders that the collection does not serve by: of the next one, or of the one before.",
)

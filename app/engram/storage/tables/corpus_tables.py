"""Tables of the corpus: documents, passages, sentences, entities, times, and terms of the lexical index."""

from sqlalchemy import (
    ARRAY,
    REAL,
    TIMESTAMP,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    Double,
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

from engram.storage.tables.table_base import (
    build_collection_column,
    build_half_vector_column,
    build_id_column,
    build_inherited_collection_column,
    build_parent_key,
    build_partial_index,
    build_reader_set_column,
    build_timestamp_column,
    build_vector_column,
    metadata,
    require,
)

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
        comment="The tenant that owns the collection.",
    ),
    require("name", Text),
    require("encoder_model", Text, comment="Name of the encoder that makes its vectors."),
    require(
        "encoder_fingerprint",
        Text,
        comment="SHA-256 of the encoder's weights; vectors of other weights cannot be compared with these.",
    ),
    require("encoder_dimension", Integer, comment="Length of each of its vectors."),
    require("passage_count", BigInteger, default="0"),
    require("sentence_count", BigInteger, default="0"),
    require("entity_count", BigInteger, default="0"),
    require(
        "lexical_length",
        Double,
        default="0",
        comment="Length of all passages in terms; BM25 divides it by passage_count.",
    ),
    require("key_building", Text, default="'full'", comment="The parts of a passage that its base key is made of."),
    require("key_generation", BigInteger, default="0", comment="The generation that serves; 0: base keys."),
    require(
        "serving", Text, default="'live'", comment="shadow: the collection learns, and answers without memory."
    ),
    require("languages", JSONB, default="'{}'", comment="How many of its passages have each language."),
    Column("language", Text, comment="The language of passages that come without one; null: theirs is recognised."),
    Column(
        "published", JSONB, comment="Whether verdicts teach its sentence memories and passage keys; null: they do."
    ),
    Column("experiment", JSONB, comment="Arms of the running experiment, each with its share of the queries."),
    Column(
        "exploration", JSONB, comment="Share of the queries that give positions to chance, and how many positions."
    ),
    Column("past", JSONB, comment="For a copy as of a past moment: its source, that moment, and the job."),
    require(
        "indexed",
        ARRAY(Text),
        default="'{}'",
        comment="Tables with a vector index of this collection's rows; the others are searched exactly.",
    ),
    require(
        "space", Integer, default="0", comment="Number of its vector space; a new encoder takes the next number."
    ),
    require(
        "index_recall",
        JSONB,
        default="'{}'",
        comment="Measured recall of its vector indexes, by table, and the search breadth that reaches it.",
    ),
    require(
        "keys_version",
        Uuid,
        default="gen_random_uuid()",
        comment="A new value after each change of its passages' base keys.",
    ),
    build_timestamp_column("created_at"),
    Column(
        "deleted_at",
        TIMESTAMP(timezone=True),
        comment="When it was hidden: it is deleted, and its rows are removed piece by piece, unless it moves.",
    ),
    Column(
        "move", JSONB, comment="Its move to or from another database, or where it lives now; null: it stays here."
    ),
    Column("title_share", REAL, comment="Share of passages titled after what they describe; null until measured."),
    Column("fixed_kind", Text, comment="The kind of corpus that somebody set; null: the measured kind."),
    Column(
        "question_share",
        REAL,
        comment="Share of questions that name a candidate's title; null until enough were asked.",
    ),
    require(
        "question_count", Integer, default="0", comment="Different questions that question_share was measured on."
    ),
    Column("link_template", Text, comment="Template of links to passages; null: they have none."),
    require("has_versions", Boolean, default="false", comment="Whether a document of it replaces another."),
    Column(
        "newer_half_life_days",
        REAL,
        comment="Days after which half of its texts hold no more; null: age does not count.",
    ),
    Column("level", JSONB, comment="Sufficiency below which answers are withheld, and what it was measured on."),
    CheckConstraint("fixed_kind IN ('encyclopedic', 'general')", name="fixed_kind"),
    CheckConstraint("key_building IN ('full', 'title', 'abstract', 'keywords')", name="key_building"),
    CheckConstraint("serving IN ('live', 'shadow')", name="serving"),
    CheckConstraint("encoder_dimension BETWEEN 1 AND 4096", name="encoder_dimension"),
    UniqueConstraint("tenant", "name"),
)

# It belongs to no collection: several collections may use one encoder.
encoder = Table(
    "encoder",
    metadata,
    Column("fingerprint", Text, primary_key=True),
    require("model", Text),
    require("dimension", Integer),
    require("probes", LargeBinary, comment="Vectors of fixed texts, one after the other, float32 little-endian."),
    build_timestamp_column("created_at"),
    CheckConstraint("dimension BETWEEN 1 AND 4096", name="dimension"),
    comment="Encoders behind a server that shows no weights; their vectors of fixed texts identify them.",
)

reader_set = Table(
    "reader_set",
    metadata,
    build_collection_column(),
    build_id_column(),
    require("digest", LargeBinary, comment="SHA-256 of the readers."),
    require("readers", ARRAY(Text), comment="Whom it lets read, in order; empty: nobody but `admin`."),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "digest"),
    Index("reader_set_readers_gin", "readers", postgresql_using="gin"),
    comment="Lists of readers that passages have; a list never changes, and a passage takes another one.",
)

document = Table(
    "document",
    metadata,
    build_collection_column(),
    build_id_column(),
    require("source", Text, comment="Its name, chosen by whoever imports it."),
    Column("folder", Text, comment="The folder that it was imported from; null: it came by itself."),
    Column("digest", Text, comment="Hash of the file, by which the importer knows it again."),
    Column("writing_job", Uuid, comment="Job that has yet to write passages of it; null: all are written."),
    Column("pages", Integer),
    require("notes", JSONB, default="'[]'", comment="How it was read and what was left out."),
    Column(
        "titled_by_name", Boolean, comment="Whether the titles of all passages are its file's name, or of none."
    ),
    build_timestamp_column("imported_at"),
    Column("valid_from", Date, comment="Since when it holds; null: nothing tells it."),
    Column("dated_by", Text, comment="What tells valid_from; hand: a person said it."),
    Column("valid_until", Date, comment="Its last day; null: none is stated."),
    Column("status", Text, comment="draft, or retired if it holds no more; null: neither."),
    Column("version_key", Text, comment="Its title without dates and versions; null: it has none."),
    Column("title", Text, comment="Title of its first passage."),
    require("word_sketch", ARRAY(BigInteger), default="'{}'", comment="Least hashes of its words, in order."),
    require("supersedes", ARRAY(Text), default="'{}'", comment="How it names documents that it replaces."),
    require("superseded_by", ARRAY(Text), default="'{}'", comment="How it names documents that replace it."),
    Column("replaced_by", BigInteger, comment="The document that replaces it; null: none, or it is the last."),
    Column("replaced_origin", Text, comment="What tells replaced_by; hand: a person said it, also that none does."),
    Column("version_chain", BigInteger, comment="The last document of its chain of versions; null: it has none."),
    require("version_steps", Integer, default="0", comment="Replacements from it to the last version."),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "source"),
    build_partial_index("document_replaced_idx", "collection_id", "replaced_by", where="replaced_by IS NOT NULL"),
    build_partial_index("document_writing_idx", "collection_id", "writing_job", where="writing_job IS NOT NULL"),
    comment="Documents that passages were made of.",
)

passage = Table(
    "passage",
    metadata,
    build_collection_column(),
    build_id_column(),
    Column("document_id", BigInteger, comment="The document that it was made of; null: it came by itself."),
    require("external_id", Text),
    Column("title", Text),
    require("text", Text),
    require("language", Text, comment="ISO 639 code; by it words are analysed and sentences split."),
    require("metadata", JSONB, default="'{}'"),
    require("content_hash", LargeBinary),
    build_half_vector_column("embedding"),
    build_timestamp_column("created_at"),
    build_timestamp_column("updated_at"),
    Column(
        "text_since",
        TIMESTAMP(timezone=True),
        nullable=False,
        server_default=text("now()"),
        comment="When its text became what it is; what was learned before belongs to an earlier text.",
    ),
    build_reader_set_column(),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "external_id"),
    # Readers first: else it seems as good as the primary key to who looks for ids.
    Index(None, "reader_set_id", "collection_id", "id"),
    # No cascade: the graph has to lose a passage first.
    ForeignKeyConstraint(["collection_id", "document_id"], ["document.collection_id", "document.id"]),
    build_partial_index("passage_document_idx", "collection_id", "document_id", where="document_id IS NOT NULL"),
    Index("passage_text_idx", "collection_id", text("hashtextextended(text, 0)")),
    Index(
        "passage_metadata_gin",
        "metadata",
        postgresql_using="gin",
        postgresql_ops={"metadata": "jsonb_path_ops"},
    ),
)

removed_passage = Table(
    "removed_passage",
    metadata,
    build_collection_column(),
    require("digest", LargeBinary, comment="SHA-256 of its document, content and sentences."),
    require("passage_id", BigInteger, comment="The id that it has again if it returns."),
    require("text_since", TIMESTAMP(timezone=True)),
    require("sentences", ARRAY(BigInteger), comment="Ids of its sentences in order; null: one does not return."),
    PrimaryKeyConstraint("collection_id", "digest", "passage_id"),
    comment="Removed passages that verdicts taught something about.",
)

time_expression = Table(
    "time_expression",
    metadata,
    build_collection_column(),
    build_id_column(),
    require("text", Text),
    Column("starts_on", Date),
    Column("ends_on", Date),
    build_half_vector_column("embedding"),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "text"),
)

sentence = Table(
    "sentence",
    metadata,
    build_inherited_collection_column(),
    build_id_column(),
    require("passage_id", BigInteger),
    require("position", Integer),
    require("text", Text),
    Column("time_expression_id", BigInteger),
    build_half_vector_column("embedding"),
    Column("revised_at", ARRAY(TIMESTAMP(timezone=True)), comment="When its text was revised; null: never."),
    Column(
        "revision_likeness",
        ARRAY(Double),
        comment="For each revision how alike the texts before and after it are, in (0, 1].",
    ),
    Column(
        "returned_at",
        TIMESTAMP(timezone=True),
        comment="When its removed passage last came again; verdicts applied in its absence taught nothing of it.",
    ),
    build_reader_set_column(),
    PrimaryKeyConstraint("collection_id", "id"),
    build_parent_key("passage", "passage_id"),
    ForeignKeyConstraint(
        ["collection_id", "time_expression_id"], ["time_expression.collection_id", "time_expression.id"]
    ),
    Index(None, "collection_id", "passage_id"),
    Index(None, "collection_id", "time_expression_id"),
)

entity = Table(
    "entity",
    metadata,
    build_collection_column(),
    build_id_column(),
    require("name", Text, comment="The normalised name; equal names are one entity."),
    require("surface", Text),
    require("spelling", Text, comment="Key that is equal for names that differ only in spelling."),
    build_half_vector_column(
        "embedding", nullable=True, comment="Null until a worker embeds the name after the ingest."
    ),
    PrimaryKeyConstraint("collection_id", "id"),
    # By the pattern operators, so that it also finds names by their beginnings.
    Index(None, "collection_id", "name", unique=True, postgresql_ops={"name": "text_pattern_ops"}),
    Index(None, "collection_id", "spelling"),
    build_partial_index("entity_waiting_idx", "collection_id", "id", where="embedding IS NULL"),
)

entity_sentence = Table(
    "entity_sentence",
    metadata,
    build_inherited_collection_column(),
    require("entity_id", BigInteger),
    require("sentence_id", BigInteger),
    require("passage_id", BigInteger, comment="The sentence's passage, so that no sentence is looked up for it."),
    build_reader_set_column(),
    # A query reads from the index alone which passages name an entity.
    PrimaryKeyConstraint(
        "collection_id", "entity_id", "sentence_id", postgresql_include=["passage_id", "reader_set_id"]
    ),
    build_parent_key("entity", "entity_id"),
    build_parent_key("sentence", "sentence_id"),
    Index(None, "collection_id", "sentence_id", "entity_id"),
    Index(None, "collection_id", "passage_id", "entity_id"),
    comment="The entities that each sentence mentions (M_ES of GAM-RAG, Eq. 1).",
)

lexical_term = Table(
    "lexical_term",
    metadata,
    build_collection_column(),
    build_id_column(),
    require("term", Text),
    require("passage_count", BigInteger, comment="Number of passages that hold the term."),
    PrimaryKeyConstraint("collection_id", "id"),
    Index(None, "collection_id", "term", unique=True, postgresql_ops={"term": "text_pattern_ops"}),
    CheckConstraint("passage_count >= 0", name="passage_count"),
    postgresql_with={"fillfactor": "70"},
)

lexical_posting = Table(
    "lexical_posting",
    metadata,
    build_inherited_collection_column(),
    require("term_id", BigInteger),
    require("passage_id", BigInteger),
    require("frequency", REAL, comment="How often the passage has the term; it need not be a whole number."),
    require("length", REAL, comment="The passage's length in terms, so that no passage is looked up for it."),
    build_reader_set_column(),
    # The index holds the whole row, since queries read it from the index alone.
    PrimaryKeyConstraint(
        "collection_id", "term_id", "passage_id", postgresql_include=["frequency", "length", "reader_set_id"]
    ),
    comment="Passages of each term. No foreign keys: checking one costs more than the row.",
)

lexical_passage = Table(
    "lexical_passage",
    metadata,
    build_collection_column(),
    require("passage_id", BigInteger),
    require("analyser", Integer, comment="Version of the analysis that gave the terms."),
    require("length", REAL),
    require("term_ids", ARRAY(BigInteger), comment="Terms under which the passage has postings."),
    PrimaryKeyConstraint("collection_id", "passage_id"),
    # No cascade: a passage cannot leave while the index still counts it.
    ForeignKeyConstraint(["collection_id", "passage_id"], ["passage.collection_id", "passage.id"]),
    comment="What a passage added to the lexical index, so that exactly this can be taken out again.",
)

staged_embedding = Table(
    "staged_embedding",
    metadata,
    build_collection_column(),
    build_id_column(),
    require("encoder", Text, comment="Fingerprint of the encoder."),
    Column("passage_id", BigInteger, comment="The embedded row; with no id the vector is of a caller's text."),
    Column("sentence_id", BigInteger),
    Column("entity_id", BigInteger),
    Column("time_expression_id", BigInteger),
    Column(
        "digest", LargeBinary, comment="Hash of the passage's content and key building, or of the caller's text."
    ),
    build_vector_column("embedding"),
    PrimaryKeyConstraint("collection_id", "id"),
    build_parent_key("passage", "passage_id"),
    build_parent_key("sentence", "sentence_id"),
    build_parent_key("entity", "entity_id"),
    build_parent_key("time_expression", "time_expression_id"),
    CheckConstraint("num_nonnulls(passage_id, sentence_id, entity_id, time_expression_id) <= 1", name="one"),
    CheckConstraint(
        "(digest IS NULL) = (num_nonnulls(sentence_id, entity_id, time_expression_id) = 1)", name="digest"
    ),
    *(
        build_partial_index(
            f"staged_embedding_{name}_idx", "collection_id", column, "encoder", where=condition, unique=True
        )
        for name, column, condition in (
            ("passage", "passage_id", "passage_id IS NOT NULL"),
            ("sentence", "sentence_id", "sentence_id IS NOT NULL"),
            ("entity", "entity_id", "entity_id IS NOT NULL"),
            ("time", "time_expression_id", "time_expression_id IS NOT NULL"),
            ("text", "digest", "digest IS NOT NULL AND passage_id IS NULL"),
        )
    ),
    comment="Vectors of an encoder that does not serve the collection: the next encoder, or the one before.",
)

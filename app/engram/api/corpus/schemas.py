"""Documents, passages and collections on the wire."""

from datetime import date, datetime
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StrictInt,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from engram.api.collection_schemas import CollectionOut
from engram.api.passage_source_schema import PassageSourceOut
from engram.api.problems import describe_mistake
from engram.api.schemas import (
    MAX_JSON_BYTES,
    MAX_VALUES,
    CollectionName,
    LanguageCode,
    MetadataFilter,
    Model,
    NumberedId,
    OnBehalfOf,
    ReaderNames,
    ResponseModel,
    Storable,
    Text,
    Whole,
    check_storable_json,
)
from engram.core.passage_keys.key_text import KeyBuilding
from engram.core.text.sizes import SENTENCE_CHARACTERS, SENTENCES, TEXT_CHARACTERS
from engram.core.text.spelling import compose
from engram.core.text.words import is_blank

MAX_PASSAGES = 1_000
MAX_NOTES = 1_000
SOURCE_CHARACTERS = 400
"""Ids of a document's passages begin with its source and end at 512 characters."""


Sentence = Annotated[Text, Field(max_length=SENTENCE_CHARACTERS)]
_SENTENCES = TypeAdapter(Annotated[list[Sentence], Field(max_length=SENTENCES)])
PASSAGE_EXAMPLE: dict[str, JsonValue] = {
    "id": "warsaw",
    "title": "Warsaw",
    "text": "Warsaw lies on the Vistula. Warsaw is the capital of Poland.",
    "metadata": {"topic": "cities"},
}


def normalise_source(source: str) -> str:
    """The source as Unicode composes it (NFC), so that a name is the same from all file systems."""
    return str(compose(source))


DocumentSource = Annotated[Text, Field(max_length=SOURCE_CHARACTERS), AfterValidator(normalise_source)]
"""The name of a document."""


class DocumentIn(Model):
    """A document that the body has whole. Passages of it that the body lacks are removed."""

    source: DocumentSource = Field(description="Its name, which its passages give as `document`.")
    missing: bool = Field(
        default=False,
        description="The importer no longer has it. It stays, unless another document of the body is its new "
        "version: a new one with most of its text, or with its digest.",
    )
    folder: Storable | None = Field(default=None, max_length=4_096, description="The folder that it was read from.")
    digest: Storable | None = Field(
        default=None, max_length=128, description="A hash of the file, by which you know it again."
    )
    pages: Annotated[StrictInt, Field(ge=0, le=2**31 - 1)] | None = None
    notes: list[Storable] = Field(
        default_factory=list, max_length=MAX_NOTES, description="How it was read and what was left out."
    )
    titled_by_name: bool | None = Field(
        default=None, description="Whether the titles of all its passages are its file's name, or of none."
    )

    def body(self) -> dict[str, Any]:
        """The document as the job keeps it."""
        return self.model_dump()


class PassageIn(Model):
    """A passage to ingest; the BEIR layout (``_id``, ``metadata.sentences``) is understood as well."""

    model_config = ConfigDict(populate_by_name=True, json_schema_extra={"examples": [PASSAGE_EXAMPLE]})

    id: NumberedId = Field(
        validation_alias=AliasChoices("id", "_id"), description="Yours; the same id again replaces the passage."
    )
    title: Storable | None = Field(default=None, max_length=2_000)
    text: Text = Field(max_length=TEXT_CHARACTERS)
    document: DocumentSource | None = Field(default=None, description="The document that it is made of.")
    language: LanguageCode | None = Field(
        default=None, description="Of its text. Null: the collection's `language`, else as Engram recognises it."
    )
    metadata: dict[str, Any] = Field(
        default_factory=dict,
        max_length=MAX_VALUES,
        description=(
            f"Kept as given, its texts as Unicode composes them (NFC), up to {MAX_VALUES} values and "
            f"{MAX_JSON_BYTES} bytes as JSON; queries can filter on it."
        ),
    )
    sentences: list[Sentence] | None = Field(
        default=None,
        min_length=1,
        max_length=SENTENCES,
        description=(
            "The passage's sentences in order, together no longer than a text may be; without them Engram splits "
            "the text itself."
        ),
    )

    readers: ReaderNames | None = Field(
        default=None,
        description=(
            "Whom it is shown to, as `user:ana` or `group:hr`. Null: everyone who may query the collection. Empty: "
            "nobody but `admin`. Absent: as before; of a new passage, as null."
        ),
    )

    @model_validator(mode="after")
    def _lift_sentences(self) -> Self:
        """``metadata.sentences`` of the BEIR layout are the passage's sentences."""
        lifted = self.metadata.get("sentences")
        if self.sentences is None and isinstance(lifted, list) and lifted:
            try:
                self.sentences = _SENTENCES.validate_python(lifted, strict=True)
            except ValidationError as error:
                raise ValueError(
                    f"metadata.sentences must be a list of sentences: {_describe_first_mistake(error)}"
                ) from error
            self.metadata = {key: value for key, value in self.metadata.items() if key != "sentences"}
        return self

    @model_validator(mode="after")
    def _bound_metadata(self) -> Self:
        """Bound the metadata without its sentences, which have bounds of their own."""
        self.metadata = compose(self.metadata)
        try:
            check_storable_json(self.metadata)
        except ValueError as error:
            raise ValueError(f"metadata {error}") from error
        return self

    @model_validator(mode="after")
    def _bound_sentences(self) -> Self:
        if sum(map(len, self.sentences or ())) > TEXT_CHARACTERS:
            raise ValueError(f"sentences must not be longer than {TEXT_CHARACTERS} characters together")
        return self

    def body(self) -> dict[str, Any]:
        """The passage as the job keeps it."""
        return {
            "id": self.id,
            "title": None if is_blank(self.title or "") else self.title,
            "text": self.text,
            "document": self.document,
            "language": self.language,
            "metadata": self.metadata,
            "sentences": self.sentences,
        } | ({"readers": self.readers} if "readers" in self.model_fields_set else {})


def _describe_first_mistake(error: ValidationError) -> str:
    mistake = error.errors(include_url=False)[0]
    return f"{'.'.join(str(at) for at in mistake['loc'])}: {describe_mistake(mistake)}"


class PassagesIn(Model):
    """Up to 1,000 passages in one JSON document."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"passages": [PASSAGE_EXAMPLE]}]})

    collection: CollectionName | None = Field(
        default=None, description="The collection's name; absent: as the request's query says, else `default`."
    )
    documents: list[DocumentIn] = Field(
        default_factory=list, max_length=MAX_PASSAGES, description="Documents that the passages are the whole of."
    )
    passages: list[PassageIn] = Field(min_length=1, max_length=MAX_PASSAGES)


class RekeyIn(Model):
    """Parts of a passage to make keys of."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"key_building": "abstract"}]})

    key_building: KeyBuilding = Field(
        description=(
            "'full': title and text; 'title': the title, of a passage without one its first sentence; 'abstract': "
            "the title and the first three sentences; 'keywords': the twenty terms that tell most of the passage."
        )
    )


class ReadersIn(Model):
    """The readers of a passage."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"readers": ["user:ana", "group:hr"]}]})

    readers: ReaderNames | None = Field(
        description="As `user:ana` or `group:hr`. Null: everyone who may query the collection. Empty: nobody but "
        "`admin`."
    )


class ReadersOut(BaseModel):
    """The readers of a passage from now on."""

    collection: str
    readers: list[str] | None = Field(description="Null: everyone who may query the collection.")


class ReaderExplanationOut(ResponseModel):
    """Whether somebody sees a passage, and why."""

    passage_id: str
    visible: bool
    readers: list[str] | None = Field(description="Of the passage. Null: everyone who may query the collection.")
    asked: list[str]
    matched: list[str] = Field(description="Readers of the passage that the somebody is.")
    reason: str


class PassageOut(BaseModel):
    """A passage as it is stored."""

    id: str
    title: str | None
    text: str
    language: str = Field(description="As it was given or recognised; by it words are analysed.")
    metadata: dict[str, Any]
    source: PassageSourceOut
    sentences: list["StoredSentenceOut"]


class StoredSentenceOut(ResponseModel):
    """A sentence of a stored passage."""

    sentence_id: int = Field(validation_alias="id")
    position: int
    text: str


class DocumentOut(ResponseModel):
    """A document of a collection."""

    source: str = Field(description="Its name, which is unique in the collection.")
    passages: int = Field(description="How many passages are made of it.")
    pages: int | None
    imported_at: datetime = Field(description="When it last came.")
    notes: list[str] = Field(description="How it was read and what was left out.")
    folder: str | None = Field(
        description="The folder that it was imported from, for who may import; null: it came by itself."
    )
    digest: str | None = Field(description="Hash of its file, as the importer gave it.")
    readers: list[list[str] | None] | None = Field(
        description="Each list of readers of its passages, for who may import; null for others. Null in it is "
        "everyone, and an empty list nobody but `admin`."
    )
    valid_from: date | None = Field(description="Since when it holds; null: nothing tells it.")
    valid_until: date | None = Field(description="Its last day; null: none is stated.")
    dated_by: str | None = Field(
        description="What tells it: `metadata`, `mail`, a `line` of its text, its `name` or `title`, or `hand`: a "
        "person."
    )
    status: str | None = Field(description="`draft`, or `retired` if it holds no more; null: neither is stated.")
    replaced_by: str | None = Field(
        description="Source of the document that replaces it; null: none, or none that you may read."
    )
    replaced_origin: str | None = Field(
        description="What tells so: a `statement` of either document, their `title` and dates, or `hand`: a "
        "person, who may also have said that none does."
    )
    replaces: list[str] = Field(description="Sources of the documents that it replaces.")


class DocumentsOut(BaseModel):
    """A page of documents, in the order of their sources."""

    collection: str
    documents: list[DocumentOut]
    next_after: str | None = Field(description="Pass as after for the next page; null at the end.")


class ListedPassageOut(ResponseModel):
    """A passage in a list."""

    id: str = Field(validation_alias="external_id")
    title: str | None
    text: str
    language: str
    metadata: dict[str, Any]
    document: str | None = Field(description="Source of the document that it is made of; null: it came by itself.")
    readers: list[list[str] | None] | None = Field(
        description="Its list of readers, as a document has several, for who may import; null for others. Null in "
        "it is everyone, and an empty list nobody but `admin`."
    )
    source: PassageSourceOut


class PassageCountIn(Model):
    """Passages to count, and the fields to count them by."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"by": "topic"}, {"by": "topic", "filter": {"year": {"$gte": 2024}}}]}
    )

    filter: MetadataFilter | None = None
    by: Text | None = Field(
        default=None, max_length=200, description="A field of the metadata's top level. Null: no groups."
    )
    limit: Annotated[StrictInt, Field(ge=1, le=1_000), Whole] = Field(default=20, description="Groups at most.")
    as_: OnBehalfOf = None


class PassageGroupOut(ResponseModel):
    """Passages that have the same value of the field."""

    value: JsonValue = Field(description="A passage with a list is counted for each of its elements.")
    passages: int


class PassageCountOut(ResponseModel):
    """Numbers of visible passages by the values of a field."""

    collection: str
    passages: int = Field(description="That you see and the filter lets through.")
    groups: list[PassageGroupOut] = Field(description="The largest first.")
    without: int = Field(description="Of them without the field, or with null or an empty list there.")
    more: bool = Field(description="Whether there are further groups.")


class PassagesOut(BaseModel):
    """A page of passages, in the order of their ids."""

    passages: list[ListedPassageOut]
    next_after: str | None = Field(description="Pass as after for the next page; null at the end.")


class CollectionsOut(BaseModel):
    """A page of collections, in name order."""

    collections: list[CollectionOut]
    out_of_reach: list[str] = Field(description="Names of those in other databases whose API did not answer.")
    next_after: str | None = Field(description="Pass as after for the next page; null at the end.")

"""Passages and collections on the wire."""

from typing import Annotated, Any, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from engram.api.collection_schemas import CollectionOut
from engram.api.passage_source_schema import PassageSourceOut
from engram.api.schemas import (
    MAX_JSON_BYTES,
    MAX_VALUES,
    CollectionName,
    LanguageCode,
    Model,
    NumberedId,
    ResponseModel,
    Storable,
    Text,
    check_storable_json,
)
from engram.core.passage_keys.key_text import KeyBuilding
from engram.core.text.sizes import SENTENCE_CHARACTERS, SENTENCES, TEXT_CHARACTERS

MAX_PASSAGES = 1_000


Sentence = Annotated[Text, Field(max_length=SENTENCE_CHARACTERS)]
_SENTENCES = TypeAdapter(Annotated[list[Sentence], Field(max_length=SENTENCES)])
PASSAGE_EXAMPLE: dict[str, JsonValue] = {
    "id": "warsaw",
    "title": "Warsaw",
    "text": "Warsaw lies on the Vistula. Warsaw is the capital of Poland.",
    "metadata": {"topic": "cities"},
}


class PassageIn(Model):
    """A passage to ingest; the BEIR layout (``_id``, ``metadata.sentences``) is understood as well."""

    model_config = ConfigDict(populate_by_name=True, json_schema_extra={"examples": [PASSAGE_EXAMPLE]})

    id: NumberedId = Field(
        validation_alias=AliasChoices("id", "_id"), description="Yours; the same id again replaces the passage."
    )
    title: Storable | None = Field(default=None, max_length=2_000)
    text: Text = Field(max_length=TEXT_CHARACTERS)
    language: LanguageCode | None = Field(
        default=None, description="Of its text. Null: the collection's `language`, else as Engram recognises it."
    )
    metadata: dict[str, Any] = Field(
        default_factory=dict,
        max_length=MAX_VALUES,
        description=(
            f"Kept as given, up to {MAX_VALUES} values and {MAX_JSON_BYTES} bytes as JSON; "
            "queries can filter on it."
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
            "title": self.title if self.title and self.title.strip() else None,
            "text": self.text,
            "language": self.language,
            "metadata": self.metadata,
            "sentences": self.sentences,
        }


def _describe_first_mistake(error: ValidationError) -> str:
    mistake = error.errors(include_url=False)[0]
    return f"{'.'.join(str(at) for at in mistake['loc'])}: {mistake['msg']}"


class PassagesIn(Model):
    """Up to 1,000 passages in one JSON document."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"passages": [PASSAGE_EXAMPLE]}]})

    collection: CollectionName | None = Field(
        default=None, description="The collection's name; absent: as the request's query says, else `default`."
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


class ListedPassageOut(ResponseModel):
    """A passage in a list."""

    id: str = Field(validation_alias="external_id")
    title: str | None
    text: str
    language: str
    metadata: dict[str, Any]
    source: PassageSourceOut


class PassagesOut(BaseModel):
    """A page of passages, in the order of their ids."""

    passages: list[ListedPassageOut]
    next_after: str | None = Field(description="Pass as after for the next page; null at the end.")


class CollectionsOut(BaseModel):
    """A page of collections, in name order."""

    collections: list[CollectionOut]
    next_after: str | None = Field(description="Pass as after for the next page; null at the end.")

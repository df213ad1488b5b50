"""Documents on the wire: changed, and compared with a folder."""

from datetime import date
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engram.api.corpus.schemas import DocumentSource
from engram.api.schemas import Model, ReaderNames, ResponseModel, Storable
from engram.core.auth.reader_names import normalise_readers
from engram.core.text.document_manifest import ListedDocument
from engram.services.corpus.document_service import DocumentChange

FOLDER_CHARACTERS = 4_096
MAX_DOCUMENTS = 50_000
READERS_TEXT = "Null: everyone who may query the collection. Empty: nobody but `admin`."

FolderName = Annotated[Storable, Field(min_length=1, max_length=FOLDER_CHARACTERS)]


class ListedDocumentIn(Model):
    """A document that a folder has."""

    source: DocumentSource
    digest: Storable | None = Field(
        min_length=1,
        max_length=128,
        description="A hash of what you would upload: the file, and metadata if you have any. Null: the document "
        "is there but cannot be read; it stays as it is.",
    )
    readers: ReaderNames | None = Field(
        default=None, description=f"Who may read it. {READERS_TEXT} Absent: they are not compared."
    )

    def read(self) -> ListedDocument:
        """The document as it is compared."""
        named = "readers" in self.model_fields_set
        readers = None if self.readers is None else normalise_readers(self.readers)
        return ListedDocument(self.source, self.digest, named, readers)


class ManifestIn(Model):
    """All documents that a folder has."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"folder": "drive:handbook", "documents": [{"source": "travel.md", "digest": "5f2a"}]}]
        }
    )

    folder: FolderName = Field(
        description="Where the documents come from, as you name it in `folder` when you ingest them. Only "
        "documents of this folder are to be deleted."
    )
    earlier_folders: list[FolderName] = Field(
        default_factory=list, max_length=100, description="What this folder was called before."
    )
    documents: list[ListedDocumentIn] = Field(max_length=MAX_DOCUMENTS, description="Each source once.")


class DocumentMoveOut(ResponseModel):
    """A document whose file is the same under another source."""

    before: str
    source: str
    titled_by_name: bool | None = Field(
        description="As it was ingested with: false if the title of no passage is its file's name, which another "
        "reading would change."
    )


class StepsOut(ResponseModel):
    """Steps that bring the collection in step with the folder. Documents that are in step are not named."""

    upload: list[str] = Field(description="Sources that are new, or whose digest is another one: ingest these.")
    moved: list[DocumentMoveOut] = Field(
        description="Documents that have another source now: `PATCH /documents/{before}` gives it to them."
    )
    changed: list[str] = Field(
        description="Sources of the same digest, but another folder or other readers: `PATCH /documents/{source}`."
    )
    delete: list[str] = Field(
        description="Sources that the folder no longer has: `DELETE /documents/{source}`, after the uploads."
    )
    folders: list[str] = Field(
        description="Other folders of which at least half the documents are listed, by source or digest. Is one an "
        "earlier name of this folder? Then ask again with it among `earlier_folders`."
    )


class DocumentChangeIn(Model):
    """Changes to a document besides its text; at least one field."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"readers": ["group:hr"]}]})

    source: DocumentSource | None = Field(
        default=None,
        description="Its new name. Ids of its passages that begin with the name, and `metadata.source`, follow.",
    )
    folder: FolderName | None = Field(default=None, description="The folder that it is imported from now.")
    readers: ReaderNames | None = Field(default=None, description=f"Who may read its passages. {READERS_TEXT}")
    valid_from: date | None = Field(default=None, description="Since when it holds. Null: that is not known.")
    replaced_by: DocumentSource | None = Field(
        default=None, description="Source of the document that replaces it. Null: none does, whatever texts state."
    )

    @model_validator(mode="after")
    def _check_change(self) -> Self:
        nullable = self.model_fields_set & {"readers", "valid_from", "replaced_by"}
        if self.source is None and self.folder is None and not nullable:
            raise ValueError("name a source, a folder, readers, valid_from or replaced_by")
        return self

    def read(self) -> DocumentChange:
        """The change."""
        readers = None if self.readers is None else normalise_readers(self.readers)
        return DocumentChange(
            source=self.source,
            folder=self.folder,
            sets_readers="readers" in self.model_fields_set,
            readers=readers,
            sets_date="valid_from" in self.model_fields_set,
            valid_from=self.valid_from,
            sets_successor="replaced_by" in self.model_fields_set,
            replaced_by=self.replaced_by,
        )


class ChangedDocument(BaseModel):
    """A document that was changed."""

    collection: str
    source: str
    changed: int = Field(description="Passages that had other readers before.")

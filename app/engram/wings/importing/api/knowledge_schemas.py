"""Knowledge bases as sync tools made for Open WebUI name them: collections, with files and directories."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from engram.api.corpus.document_schemas import MAX_DOCUMENTS
from engram.api.schemas import CollectionName, Storable
from engram.wings.importing.api.file_ingest import AcceptedDocument
from engram.wings.importing.services.file_tokens import write_directory
from engram.wings.importing.services.knowledge_sync import SourceEntry, StaleFile, SyncPlan

TOKEN_CHARACTERS = 16_384
PATH_CHARACTERS = 4_096

Token = Annotated[str, Field(min_length=1, max_length=TOKEN_CHARACTERS)]


class SyncModel(BaseModel):
    """A request body of a client that this project does not control: unknown fields are left alone."""

    model_config = ConfigDict(extra="ignore")


class ManifestEntryIn(SyncModel):
    """A file that the source has."""

    filename: Storable = Field(min_length=1, max_length=PATH_CHARACTERS)
    path: Storable = Field(default="", max_length=PATH_CHARACTERS, description="Of its directory; empty: none.")
    checksum: Storable = Field(min_length=1, max_length=128, description="Another one after each change.")

    def read(self) -> SourceEntry:
        """The file as it is compared."""
        return SourceEntry(self.path, self.filename, self.checksum)


class SyncManifestIn(SyncModel):
    """All files that the source has."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [{"manifest": [{"filename": "travel.md", "path": "", "checksum": "5f2a", "size": 120}]}]
        },
    )

    manifest: list[ManifestEntryIn] = Field(max_length=MAX_DOCUMENTS)


class AddedFileOut(BaseModel):
    """A file to upload."""

    path: str
    filename: str


class ModifiedFileOut(AddedFileOut):
    """A file to upload in place of a document."""

    stale_file_id: str

    @classmethod
    def from_service(cls, file: StaleFile) -> "ModifiedFileOut":
        """Write the file."""
        return cls(path=file.path, filename=file.filename, stale_file_id=file.token.write())


class DeletedFileOut(AddedFileOut):
    """A document whose file is gone, or moved: a cleanup moves it."""

    file_id: str

    @classmethod
    def from_service(cls, file: StaleFile) -> "DeletedFileOut":
        """Write the file."""
        return cls(path=file.path, filename=file.filename, file_id=file.token.write())


class IgnoredFileOut(BaseModel):
    """A file that makes no document."""

    source: str
    reason: str


class SyncDiffOut(BaseModel):
    """The steps that bring the knowledge base in step with the source."""

    added: list[AddedFileOut]
    modified: list[ModifiedFileOut] = Field(
        description="Files to upload in place of documents. What was learned of unchanged sentences stays."
    )
    deleted: list[DeletedFileOut] = Field(description="Documents that a cleanup deletes, or moves to another path.")
    unmodified_count: int
    mkdir: list[str] = Field(description="Empty: directories need not be made.")
    rmdir: list[str] = Field(description="Empty: directories need not be removed.")
    directory_map: dict[str, str] = Field(description="Path of each directory -> its id.")
    ignored: list[IgnoredFileOut] = Field(description="Files that make no document, and why.")

    @classmethod
    def from_service(cls, plan: SyncPlan, manifest: SyncManifestIn) -> "SyncDiffOut":
        """Write the plan."""
        return cls(
            added=[AddedFileOut(path=one.path, filename=one.filename) for one in plan.added],
            modified=[ModifiedFileOut.from_service(one) for one in plan.modified],
            deleted=[DeletedFileOut.from_service(one) for one in plan.deleted],
            unmodified_count=plan.unmodified,
            mkdir=[],
            rmdir=[],
            directory_map={one.path: write_directory(one.path) for one in manifest.manifest if one.path},
            ignored=[IgnoredFileOut(source=source, reason=reason) for source, reason in plan.ignored],
        )


class CleanupIn(SyncModel):
    """Files that a comparison named as stale or deleted."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [{"file_ids": []}]})

    file_ids: list[Token] = Field(max_length=MAX_DOCUMENTS)


class CleanedOut(BaseModel):
    """The files that were deleted or moved."""

    status: bool = True
    files: int = Field(description="Documents that were deleted or moved.")


class DirectoryIn(SyncModel):
    """A directory to name."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [{"name": "handbook"}]})

    name: Storable = Field(min_length=1, max_length=PATH_CHARACTERS)
    parent_id: Token | None = None


class DirectoryOut(BaseModel):
    """A directory. It exists as long as files do that have it in their path."""

    id: str
    name: str
    parent_id: str | None


class FileMetadataIn(SyncModel):
    """The file and the knowledge base that an upload belongs to."""

    knowledge_id: CollectionName
    file_hash: Storable = Field(min_length=1, max_length=128, description="Its checksum in the manifest.")
    directory_id: Token | None = None


class FileOut(AcceptedDocument):
    """A file whose passages a job ingests."""

    id: str
    filename: str
    meta: dict[str, Any] = Field(description="Name, size in bytes and hash of the file.")


class KnowledgeOut(BaseModel):
    """A collection as a knowledge base."""

    id: str
    name: str
    description: str


class KnowledgeFileOut(BaseModel):
    """A file of a knowledge base."""

    id: str
    filename: str
    meta: dict[str, Any] = Field(description="Path and hash of the file.")


class KnowledgeFilesOut(BaseModel):
    """The files that a sync tool brought."""

    items: list[KnowledgeFileOut]
    total: int


class FileStatusOut(BaseModel):
    """The progress of a file."""

    status: str = Field(description="`pending`, `completed` or `failed`.")
    error: str | None = Field(default=None, description="Why it failed.")

"""Services of the wing."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.config.settings import Settings
from engram.wings.importing.services.document_conversion import DocumentsService


@dataclass(frozen=True, eq=False)
class ImportingServices:
    """Services that read documents. Each is made when first used."""

    settings: Settings

    @locked_property
    def documents(self) -> DocumentsService:
        """Conversion of documents into passages."""
        return DocumentsService(
            max_bytes=self.settings.importing_max_bytes, timeout_seconds=self.settings.importing_timeout_seconds
        )

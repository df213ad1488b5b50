"""Services of the wing."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.parts.corpus_services import CorpusServices
from engram.config.settings import Settings
from engram.storage.database import Database
from engram.wings.importing.services.document_conversion import DocumentConversion
from engram.wings.importing.services.knowledge_sync import KnowledgeSync


@dataclass(frozen=True, eq=False)
class ImportingServices:
    """Services that read documents. Each is made when first used."""

    settings: Settings
    database: Database
    corpus: CorpusServices

    @locked_property
    def documents(self) -> DocumentConversion:
        """Conversion of documents into passages."""
        return DocumentConversion(
            max_bytes=self.settings.importing_max_bytes, timeout_seconds=self.settings.importing_timeout_seconds
        )

    @locked_property
    def knowledge(self) -> KnowledgeSync:
        """Documents that sync tools keep in step with a source."""
        return KnowledgeSync(self.database, self.corpus.documents, self.corpus.ingest)

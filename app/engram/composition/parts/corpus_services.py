"""Corpus: passages come in, are embedded and linked, and change their encoder."""

from collections.abc import Sequence
from dataclasses import dataclass

from engram.composition.hooks import Hooks
from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.config.settings import Settings
from engram.services.corpus.collection_settings import CollectionSettingsService
from engram.services.corpus.document_service import DocumentService
from engram.services.corpus.entity_embedding import EntityEmbedder
from engram.services.corpus.graph_builder import GraphBuilder
from engram.services.corpus.kind_measurement import KindMeasurement
from engram.services.corpus.passage_counts import PassageCountService
from engram.services.corpus.passage_intake import IngestService
from engram.services.corpus.passage_readers import PassageReadersService
from engram.services.corpus.rekey import RekeyService
from engram.services.maintenance.reembedding import ReembeddingService
from engram.services.revocation.revocation_service import replay_sentence_supports
from engram.storage.database import Database, Writer

BATCH_SIZE = 128
"""Passages that one transaction writes."""


@dataclass(frozen=True, eq=False)
class CorpusServices:
    """Services that read passages in and build what retrieval reads. Each is made when first used."""

    settings: Settings
    database: Database
    models: Models
    hooks: Hooks

    @locked_property
    def ingest(self) -> IngestService:
        """Intake of passages."""
        return IngestService(self.database, self.models.encoder, self.hooks.passage_observers)

    @locked_property
    def readers(self) -> PassageReadersService:
        """Readers of passages."""
        return PassageReadersService(self.database)

    @locked_property
    def counts(self) -> PassageCountService:
        """Counts of passages."""
        return PassageCountService(self.database)

    @locked_property
    def documents(self) -> DocumentService:
        """Documents that passages were made of."""
        return DocumentService(self.database, self.hooks.passage_observers)

    @locked_property
    def collection_settings(self) -> CollectionSettingsService:
        """Settings of collections."""
        return CollectionSettingsService(self.database, self.hooks.collection_settings)

    @locked_property
    def index(self) -> GraphBuilder:
        """Graph builder."""
        settings, models = self.settings, self.models
        return GraphBuilder(
            self.database,
            models.encoder,
            models.language,
            self.kinds,
            batch_size=BATCH_SIZE,
            time_llm=models.llm if settings.llm_time_extraction else None,
            replay_sentences=self.replay_sentences,
            rebase=self._rebase,
            observers=self.hooks.passage_observers,
        )

    @locked_property
    def kinds(self) -> KindMeasurement:
        """Measurement of the kinds of corpora."""
        return KindMeasurement(self.database, lambda: self.models.priors)

    @locked_property
    def names(self) -> EntityEmbedder:
        """Embedding of entity names."""
        return EntityEmbedder(self.database, self.models.encoder)

    @locked_property
    def rekey(self) -> RekeyService:
        """Rebuild of passage keys."""
        return RekeyService(
            self.database,
            self.models.encoder,
            batch_size=BATCH_SIZE,
            rebase=self._rebase,
        )

    @locked_property
    def reembed(self) -> ReembeddingService:
        """Change of encoder."""
        return ReembeddingService(
            self.database,
            self.models.encoder,
            batch_size=BATCH_SIZE,
            follow=self._follow_encoder,
        )

    def replay_sentences(self, writer: Writer, collection_id: int, sentences: Sequence[int]) -> None:
        """Make all that verdicts taught of these sentences, in id order, what the log makes of their texts now.

        The collection's graph and the right to learn are locked.
        """
        replay_sentence_supports(writer, collection_id, sentences)
        for state in self.hooks.derived_states:
            state.replay_sentences(writer, collection_id, sentences)

    def _rebase(self, writer: Writer, collection_id: int, passages: Sequence[int]) -> None:
        for state in self.hooks.derived_states:
            state.rebase(writer, collection_id, passages)

    def _follow_encoder(self, writer: Writer, collection_id: int) -> None:
        for state in self.hooks.derived_states:
            state.follow_encoder(writer, collection_id)

"""Registry of encoders behind servers: which one a server runs, by its vectors of the probes."""

import numpy as np
from numpy.typing import NDArray

from engram.context import tenancy
from engram.providers.embedder.endpoint_encoder import SAME_COSINE, probe_digest
from engram.storage.auth import encoder_rows
from engram.storage.auth.encoder_rows import RegisteredEncoder
from engram.storage.database import Database


class EncoderRegistry:
    """Gives the same fingerprint to servers that make the same vectors, whatever their names and addresses."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def fingerprint(self, model: str, probes: NDArray[np.float32]) -> str:
        """The fingerprint (SHA-256, hex) of the encoder that makes these vectors; a new one is registered.

        Args:
            model: its name, which a new fingerprint goes by as well.
            probes: unit-length vectors of the probes, (n, d).
        """
        with tenancy.allow_all_tenants(), self._database.write() as writer:  # a request may be the first to need it
            encoder_rows.lock(writer)
            alike = {
                likeness: known
                for known in encoder_rows.list_by_dimension(writer, probes.shape[1])
                if known.probes.shape == probes.shape
                and (likeness := float((known.probes * probes).sum(axis=1).min())) >= SAME_COSINE
            }
            if alike:
                return alike[max(alike)].fingerprint
            digest = probe_digest(model, probes)
            encoder_rows.add(writer, RegisteredEncoder(digest, model, probes))
            return digest

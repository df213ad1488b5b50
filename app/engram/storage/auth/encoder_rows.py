"""Encoders behind a server, known by the vectors that they make of probes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.storage.database import Reader, Writer

LOCK = 0x456E636F646572
"""Advisory lock of whoever registers an encoder: processes that start together register it once."""


@dataclass(frozen=True, slots=True)
class RegisteredEncoder:
    """An encoder behind a server.

    Attributes:
        probes: float32 (n, d), its vectors of the probes.
    """

    fingerprint: str
    model: str
    probes: NDArray[np.float32]


def lock(writer: Writer) -> None:
    """Register alone until the transaction ends."""
    writer.row("SELECT pg_advisory_xact_lock(%(key)s)", {"key": LOCK})


def list_by_dimension(reader: Reader, dimension: int) -> list[RegisteredEncoder]:
    """Encoders with vectors of this dimension, the oldest first."""
    rows = reader.rows(
        """
        SELECT fingerprint, model, probes FROM encoder
        WHERE dimension = %(dimension)s ORDER BY created_at, fingerprint
        """,
        {"dimension": dimension},
    )
    return [
        RegisteredEncoder(
            row.fingerprint,
            row.model,
            np.frombuffer(row.probes, dtype="<f4").reshape(-1, dimension).astype(np.float32),
        )
        for row in rows
    ]


def add(writer: Writer, encoder: RegisteredEncoder) -> None:
    """Register an encoder; one of this fingerprint stays as it is."""
    writer.execute(
        """
        INSERT INTO encoder (fingerprint, model, dimension, probes)
        VALUES (%(fingerprint)s, %(model)s, %(dimension)s, %(probes)s) ON CONFLICT DO NOTHING
        """,
        {
            "fingerprint": encoder.fingerprint,
            "model": encoder.model,
            "dimension": encoder.probes.shape[1],
            "probes": encoder.probes.astype("<f4").tobytes(),
        },
    )

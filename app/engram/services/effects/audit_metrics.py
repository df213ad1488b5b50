"""Metrics of the states that verdicts move."""

import numpy as np

from engram.core.filter.states import AUDITED, AuditRows
from engram.telemetry import metrics


def observe_moves(audit: AuditRows) -> None:
    """Count gains and perplexities of these moves, by channel."""
    for channel in np.unique(audit.channels).tolist():
        is_channel = audit.channels == channel
        metrics.GAIN.labels(AUDITED[channel]).observe_all(audit.gains[is_channel])
        metrics.PERPLEXITY.labels(AUDITED[channel]).observe_all(audit.perplexities_after[is_channel])

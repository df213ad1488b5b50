"""Places of constants that tests change, as MODULE:NAME.

A process that is forked (``forks``) takes them from variables of these names, with JSON as values.
``set_constants`` changes them in this process.
"""

from collections.abc import Mapping
from typing import Any

import pytest

ACCESS_CACHE = "engram.composition.parts.auth_services:ACCESS_CACHE_SECONDS"
APPLY_ATTEMPTS = "engram.composition.parts.learning_services:APPLY_ATTEMPTS"
DEAD_ROWS = "engram.composition.parts.maintenance_services:DEAD_ROWS"
DEAD_SHARE = "engram.composition.parts.maintenance_services:DEAD_SHARE"
EMBEDDING_BATCH = "engram.composition.models:EMBEDDING_BATCH_SIZE"
EXACT_SEARCH_LIMIT = "engram.composition.parts.maintenance_services:EXACT_SEARCH_LIMIT"
FEEDBACK_BATCH = "engram.runtime.worker:BATCH_SIZE"
GATHER_SECONDS = "engram.runtime.worker:GATHER_SECONDS"
INGEST_BATCH = "engram.composition.parts.corpus_services:BATCH_SIZE"
LEASE_SECONDS = "engram.composition.parts.job_services:LEASE_SECONDS"
LLM_ATTEMPTS = "engram.composition.models:LLM_ATTEMPTS"
READ_LAG = "engram.composition.servers:READ_LAG_SECONDS"
READ_WAIT = "engram.composition.servers:READ_WAIT_SECONDS"
STATEMENT_TIMEOUT = "engram.composition.servers:STATEMENT_TIMEOUT_SECONDS"
SWEEP_SECONDS = "engram.runtime.worker:SWEEP_SECONDS"
WAITING_KEY_EVENTS = "engram.wings.published.parts:WAITING_KEY_EVENTS"
EAGER = {"engram.runtime.worker:BLOCK_MS": 100, "engram.runtime.worker:JOB_POLL_SECONDS": 0.1}
"""How long a worker waits for news, and for a job, where it need not wait as long as it does in service."""


def set_constants(patch: pytest.MonkeyPatch, values: Mapping[str, Any]) -> None:
    """Change constants in this process until the patch is undone."""
    for place, value in values.items():
        patch.setattr(place.replace(":", "."), value)

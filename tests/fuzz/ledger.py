"""What was sent, what came of it, and what must not have."""

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

NO_MODEL = frozenset({"urn:engram:problem:llm-not-configured"})
"""Types of 5xx problems that are right: there is no language model here."""
MOODY_MODEL = frozenset({"urn:engram:problem:llm-failed"})
"""The same where there is one, which fails."""
SHOWN_CHARACTERS = 300
SLOWEST = 5


@dataclass
class FuzzFinding:
    """Something that must not be: how often, and what brought it about first."""

    kind: str
    where: str
    example: str
    times: int = 1


@dataclass
class Ledger:
    """One for a run; any thread may write to it.

    Attributes:
        slow_seconds: an answer that takes longer is a finding.
        answers: by phase, then by status.
        expected: types of 5xx problems that are right.
        verdicts: collection -> ids of accepted verdicts.
        linked: operations that were asked for what an earlier answer named, and answered with 2xx.
        answered_well: operations that answered with 2xx.
    """

    slow_seconds: float = 10.0
    expected: frozenset[str] = NO_MODEL
    answers: dict[str, Counter[int]] = field(default_factory=dict)
    verdicts: dict[str, set[int]] = field(default_factory=dict)
    linked: set[str] = field(default_factory=set)
    answered_well: set[str] = field(default_factory=set)
    findings: dict[tuple[str, str], FuzzFinding] = field(default_factory=dict)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record_answer(self, phase: str, where: str, status: int, seconds: float, body: bytes, sent: str) -> None:
        """An answer came; ``sent`` is what asked for it, as it is to be shown."""
        with self._lock:
            self.answers.setdefault(phase, Counter())[status] += 1
            self.slowest = sorted([*self.slowest, (seconds, where)], reverse=True)[:SLOWEST]
            if 200 <= status < 300:
                self.answered_well.add(where)
        document = _object(body)
        if status >= 500 and document.get("type") not in self.expected and where != "GET /readyz":
            self.record_finding(str(status), where, f"{sent} -> {body[:SHOWN_CHARACTERS]!r}")
        if seconds > self.slow_seconds:
            self.record_finding("slow", where, f"{seconds:.1f} s: {sent}")
        if status in {200, 202} and where.startswith("POST /feedback") and "feedback_id" in document:
            ids = {document["feedback_id"], *(document.get("feedback_ids") or ())}
            with self._lock:
                self.verdicts.setdefault(document["collection"], set()).update(ids)

    def record_hang(self, phase: str, where: str, sent: str) -> None:
        """No answer came in the time that any may take."""
        with self._lock:
            self.answers.setdefault(phase, Counter())[0] += 1
        self.record_finding("hang", where, sent)

    def record_finding(self, kind: str, where: str, example: str) -> None:
        """Take down what must not be."""
        with self._lock:
            known = self.findings.get((kind, where))
            if known is not None:
                known.times += 1
            else:
                self.findings[kind, where] = FuzzFinding(kind, where, example[: 4 * SHOWN_CHARACTERS])

    def as_report(self) -> dict[str, Any]:
        """All of it, for a report."""
        return {
            "requests": sum(sum(statuses.values()) for statuses in self.answers.values()),
            "answers": {
                phase: {str(status): times for status, times in sorted(statuses.items())}
                for phase, statuses in self.answers.items()
            },
            "verdicts_accepted": sum(map(len, self.verdicts.values())),
            "operations_answered": len(self.answered_well),
            "operations_reached_by_links": sorted(self.linked),
            "slowest": [f"{seconds:.2f} s {where}" for seconds, where in self.slowest],
            "findings": [vars(found) for found in self.findings.values()],
        }


def _object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is; an empty one if it is none."""
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}

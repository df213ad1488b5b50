"""One pass of a pull: read the product's scores, compare them with the ledger, and send what changed.

The ledger is written after the ratings. A pass that is stopped between the two sends the same ratings again under
the same Idempotency-Keys, so each counts once.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from engram_pull.product_http import PullError
from engram_pull.product_scores import Rating, Score, digest, judge_name
from engram_pull.pull_service import LedgerScore, PullService

BATCH = 50
"""Scores that are noted in the ledger together."""
DELETED_DIGEST = hashlib.sha256(b"deleted").hexdigest()
"""The digest of a score that the product deleted."""
MASS = 20
"""Missing scores up to this number are believed; more of them, if they are less than half of all."""
MARGIN = timedelta(minutes=1)
"""A score this near to the start of what was read is not missed: clocks and rounding differ."""


class MassRevocationError(PullError):
    """Most of the known scores are missing, which is more likely a slip than a wish."""


class Product(Protocol):
    """A source of scores; ``skipped``: id -> cause, of records that could not be mapped."""

    @property
    def skipped(self) -> Mapping[str, str]: ...
    @property
    def product(self) -> str: ...
    def read(self, since: datetime | None) -> list[Score]: ...
    def confirm_missing(self, score_ids: Collection[str]) -> set[str]: ...
    def find_queries(self, score: Score) -> list[str]: ...


@dataclass
class PullCounts:
    """The result of a pass, in scores; ``skipped`` could not be read."""

    up: int = 0
    down: int = 0
    revoked: int = 0
    unchanged: int = 0
    unknown: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class ValidScore:
    """A score that counts for a judge and a query; the latest of them is the judge's rating."""

    scored_at: datetime
    score_id: str
    rating: Rating
    reason: str | None
    digest: str

    @property
    def order(self) -> tuple[datetime, str]:
        return self.scored_at, self.score_id


Pair = tuple[str, str]
"""A judge and a query."""


@dataclass
class PullRun:
    """Carries scores of one product into one collection.

    Attributes:
        source: the name of the pull, under which the ledger is kept.
        judge: of all ratings; None: the product and the person.
        report: gets one line for each change.
        dry: report only; neither ratings nor the ledger are written.
        allow_mass: revoke also if most of the known scores are missing.
    """

    product: Product
    service: PullService
    source: str
    judge: str | None = None
    report: Callable[[str], None] = lambda _: None
    dry: bool = False
    allow_mass: bool = False
    _valid: dict[Pair, dict[str, ValidScore]] = field(default_factory=dict)
    _noted: list[LedgerScore] = field(default_factory=list)
    _unnamed: set[str] = field(default_factory=set)
    """Scores for which the product names no query; it is asked once for each."""

    def run_once(self, since: datetime | None, ledger_since: datetime | None) -> PullCounts:
        """Make one pass over the scores given at ``since`` or later; None: all.

        ``ledger_since`` reaches as far back or further: an earlier score may count again after a later one.

        Raises:
            MassRevocationError: most of the known scores are missing.
            ProductError, EngramError: the product or the service refuses or is out of reach. What was sent is kept.
        """
        counts = PullCounts()
        stored = self.service.ledger(ledger_since)
        live = {score.score_id: score for score in self.product.read(since)}
        counts.skipped = len(self.product.skipped)
        for score_id, cause in self.product.skipped.items():
            self.report(f"skipped: score {score_id}: {cause}")
        missing = self._find_missing(stored, live, since)
        self._valid = _select_valid(stored.values(), live)
        self._noted = []
        try:
            for score_id in sorted(missing):
                self._revoke(stored[score_id], DELETED_DIGEST, counts)
            for score in sorted(live.values(), key=lambda one: (one.scored_at, one.score_id)):
                self._take(score, stored.get(score.score_id), counts)
        finally:
            self._flush()
        return counts

    def _find_missing(
        self, stored: Mapping[str, LedgerScore], live: Mapping[str, Score], since: datetime | None
    ) -> set[str]:
        rated = {score_id for score_id, row in stored.items() if row.rating is not None}
        absent = {
            score_id
            for score_id in rated - live.keys() - self.product.skipped.keys()
            if since is None or stored[score_id].scored_at >= since + MARGIN
        }
        if absent:
            absent = self.product.confirm_missing(absent)
        if len(absent) > MASS and 2 * len(absent) > len(rated) and not self.allow_mass:
            raise MassRevocationError(
                f"{len(absent)} of {len(rated)} known scores of {self.source} are missing. If they were deleted, "
                "use --allow-mass-revocation; if this is another project, give it a name of its own by --name."
            )
        return absent

    def _take(self, score: Score, row: LedgerScore | None, counts: PullCounts) -> None:
        judge = self.judge or judge_name(self.product.product, score.author)
        mark = digest(judge, score)
        if row is not None and row.digest == mark:
            counts.unchanged += 1
            return
        if score.rating is None:
            if row is not None and row.rating is not None:
                self._revoke(row, mark, counts)
            return
        queries = self._queries(score)
        if not queries:
            counts.unknown += 1
            if row is not None and row.rating is not None:
                self._revoke(row, mark, counts)
            return
        before = self._winners(row, judge, queries)
        self._drop(row)
        valid = ValidScore(score.scored_at, score.score_id, score.rating, score.reason, mark)
        for query in queries:
            self._valid.setdefault((judge, query), {})[score.score_id] = valid
        revision = 1 if row is None else row.revision + 1
        self._send(before, score.score_id, revision, score.updated_at.isoformat())
        self.report(f"{score.rating}: score {score.score_id} of {judge} for {', '.join(queries)}")
        if score.rating == "up":
            counts.up += 1
        else:
            counts.down += 1
        self._note(LedgerScore(score.score_id, judge, score.rating, mark, revision, score.scored_at, queries))

    def _revoke(self, row: LedgerScore, mark: str, counts: PullCounts) -> None:
        before = self._winners(row, row.judge, row.queries)
        self._drop(row)
        self._send(before, row.score_id, row.revision + 1, mark)
        self.report(f"revoked: score {row.score_id} of {row.judge} for {', '.join(row.queries)}")
        counts.revoked += 1
        self._note(
            LedgerScore(row.score_id, row.judge, None, mark, row.revision + 1, row.scored_at, list(row.queries))
        )

    def _queries(self, score: Score) -> list[str]:
        """Queries of the score's trace, else those that the product names and the service has."""
        queries = self.service.queries_of_trace(score.trace_id)
        if queries or score.score_id in self._unnamed:
            return queries
        queries = [query for query in self.product.find_queries(score) if self.service.has_query(query)]
        if not queries:
            self._unnamed.add(score.score_id)
        return queries

    def _winners(
        self, row: LedgerScore | None, judge: str, queries: Sequence[str]
    ) -> dict[Pair, ValidScore | None]:
        """Return the score that counts now for each pair that a change of the score may touch."""
        pairs = [(judge, query) for query in queries]
        pairs += [] if row is None else [(row.judge, query) for query in row.queries]
        return {pair: self._select_winner(pair) for pair in pairs}

    def _select_winner(self, pair: Pair) -> ValidScore | None:
        return max(self._valid.get(pair, {}).values(), key=lambda one: one.order, default=None)

    def _drop(self, row: LedgerScore | None) -> None:
        if row is not None:
            for query in row.queries:
                self._valid.get((row.judge, query), {}).pop(row.score_id, None)

    def _send(self, before: Mapping[Pair, ValidScore | None], score_id: str, revision: int, moment: str) -> None:
        """Send what counts now wherever that changed; it replaces the judge's earlier rating of the answer."""
        for (judge, query), earlier in before.items():
            winner = self._select_winner((judge, query))
            if self.dry or _mark(winner) == _mark(earlier):
                continue
            rating, reason = (None, None) if winner is None else (winner.rating, winner.reason)
            content = [self.source, judge, query, score_id, revision, moment, rating, reason]
            key = "pull-" + hashlib.sha256(json.dumps(content).encode()).hexdigest()
            self.service.rate(query, rating, reason, judge, key)

    def _note(self, score: LedgerScore) -> None:
        self._noted.append(score)
        if len(self._noted) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        noted, self._noted = self._noted, []
        if noted and not self.dry:
            self.service.store(noted)


def _mark(valid: ValidScore | None) -> tuple[str, str] | None:
    return None if valid is None else (valid.score_id, valid.digest)


def _select_valid(stored: Iterable[LedgerScore], live: Mapping[str, Score]) -> dict[Pair, dict[str, ValidScore]]:
    """Return the sent scores of the ledger; the reason is the product's, if it still has the score."""
    valid: dict[Pair, dict[str, ValidScore]] = {}
    for row in stored:
        if row.rating is None:
            continue
        score = live.get(row.score_id)
        reason = score.reason if score is not None and score.rating == row.rating else None
        for query in row.queries:
            pair = (row.judge, query)
            valid.setdefault(pair, {})[row.score_id] = ValidScore(
                row.scored_at, row.score_id, row.rating, reason, row.digest
            )
    return valid

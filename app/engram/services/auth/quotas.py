"""Quotas of tenants and keys: checked before work begins, counted as it is done."""

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from engram.context import tenancy
from engram.context.errors import LlmError, QuotaExceededError
from engram.core.auth.access_keys import LLM
from engram.providers.llm.token_meter import TokenMeter
from engram.services.auth.scope import LOCAL, Principal
from engram.storage.auth import tenants
from engram.storage.auth.tenants import Quotas
from engram.storage.database import Database

QuotaKind = Literal["queries", "verdicts", "jobs", "sessions", "facts"]
TOKENS = "llm_tokens"
DAILY = ("queries", "verdicts", TOKENS, "sessions", "facts")
"""What is counted by the day."""
EVERYBODY = ""
"""Stands for the whole tenant."""


class LlmBudgetError(LlmError):
    """A key may use no language model, or has used up what it may; what can be done without one is."""

    status = 403
    type = "llm-not-allowed"
    title = "The language model may not be used"


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """Quota of a tenant and its use; None is no limit."""

    kind: str
    used: int
    limit: int | None


class QuotaService:
    """Counts what requests with keys take. Who needs none is not counted, and where no quota is set nothing is."""

    def __init__(
        self,
        database: Database,
        *,
        remember_seconds: float,
        defaults: Quotas = Quotas(),  # noqa: B008 - frozen
    ) -> None:
        """``defaults`` are those of tenants other than ``local``, where nothing else is set."""
        self._database = database
        self._defaults = defaults
        self._remember_seconds = remember_seconds
        self._cached_quotas: dict[str, tuple[Quotas, float]] = {}
        self._admitted: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def find_cached_quotas(self, principal: Principal) -> Quotas | None:
        """The quotas of the principal's tenant as this process knows them; None if it has to look them up."""
        if principal is LOCAL:
            return Quotas()
        cached = self._cached_quotas.get(principal.tenant)
        return None if cached is None or cached[1] <= time.monotonic() else cached[0]

    def quotas(self, principal: Principal) -> Quotas:
        """Return the quotas that bound a principal, looked up where needed."""
        quotas = self.find_cached_quotas(principal)
        if quotas is None:
            with tenancy.allow_all_tenants(), self._database.read() as reader:
                quotas = self._add_defaults(tenants.quotas(reader, principal.tenant), principal)
            with self._lock:
                self._cached_quotas[principal.tenant] = quotas, time.monotonic() + self._remember_seconds
        return quotas

    def _add_defaults(self, quotas: Quotas, principal: Principal) -> Quotas:
        return quotas if principal.tenant == LOCAL.tenant else quotas.fill_missing(self._defaults)

    def take(self, principal: Principal, kind: QuotaKind, amount: int = 1) -> None:
        """Count some of what a tenant may have so many of a day; of jobs, see that it may have one more.

        Raises:
            QuotaExceededError: it had them.
        """
        if kind == "jobs":
            self.room(principal, jobs_only=True)
            return
        quota = getattr(self.quotas(principal), kind)
        if quota is None:
            return
        with tenancy.allow_all_tenants(), self._database.write_once() as writer:
            if tenants.spend(writer, principal.tenant, EVERYBODY, kind, amount, quota) is not None:
                return
        more = "" if amount == 1 else f" or would with {amount} more"
        raise QuotaExceededError(
            f"Tenant {principal.tenant!r} had its {quota} {kind} of today (UTC){more}.",
            _count_seconds_until_tomorrow(),
            quota=kind,
            limit=quota,
        )

    def collections_full(self, principal: Principal) -> QuotaExceededError | None:
        """Return what to raise where the tenant would make one more collection; None if it may.

        Several that are made at the same moment are counted without each other.
        """
        quota = self.quotas(principal).collections
        if quota is None:
            return None
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            count = tenants.collection_count(reader, principal.tenant)
        return _build_quota_error(principal, count, quota, "collections") if count >= quota else None

    def admit_key(self, principal: Principal) -> None:
        """See that the tenant may have one more access key.

        Raises:
            QuotaExceededError: it has as many as it may.
        """
        quota = self.quotas(principal).keys
        if quota is None:
            return
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            count = tenants.key_count(reader, principal.tenant)
        if count >= quota:
            raise _build_quota_error(principal, count, quota, "keys")

    def room(self, principal: Principal, *, jobs_only: bool = False) -> int | None:
        """Count the passages that the tenant may still send; None is no limit.

        Raises:
            QuotaExceededError: it has as many jobs open, or holds as many passages, as it may.
        """
        quotas = self.quotas(principal)
        if quotas.jobs is None and (quotas.passages is None or jobs_only):
            return None
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            passages, jobs = tenants.count_held(reader, principal.tenant)
        if quotas.jobs is not None and jobs >= quotas.jobs:
            raise QuotaExceededError(
                f"Tenant {principal.tenant!r} has {jobs} jobs open, of {quotas.jobs} that it may.",
                JOB_SECONDS,
                quota="jobs",
                limit=quotas.jobs,
            )
        if quotas.passages is None or jobs_only:
            return None
        if passages >= quotas.passages:
            raise build_passage_quota_error(quotas.passages)
        return quotas.passages - passages

    def list_usage(self, principal: Principal) -> list[QuotaUsage]:
        """Return the quotas of the principal's tenant and their use."""
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            quotas = Quotas()
            if principal is not LOCAL:
                quotas = self._add_defaults(tenants.quotas(reader, principal.tenant), principal)
            passages, jobs = tenants.count_held(reader, principal.tenant)
            today = tenants.list_spent_today(reader, principal.tenant, EVERYBODY)
            have = {"passages": passages, "jobs": jobs} | {kind: today.get(kind, 0) for kind in DAILY}
            have["collections"] = tenants.collection_count(reader, principal.tenant)
            have["keys"] = tenants.key_count(reader, principal.tenant)
            if quotas.judges is not None:
                have["judges"] = len(tenants.judges(reader, principal.tenant))
        return [QuotaUsage(kind, have[kind], getattr(quotas, kind)) for kind in have]

    def admit(self, principal: Principal, judge: str) -> None:
        """See that the tenant may have this judge.

        One that it has already, it may; of several new ones at the same moment each is counted without the others.

        Raises:
            QuotaExceededError: it has as many as it may.
        """
        quota = self.quotas(principal).judges
        at = principal.tenant, judge
        if quota is None or at in self._admitted:
            return
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            judge_names = tenants.judges(reader, principal.tenant)
        if judge not in judge_names and len(judge_names) >= quota:
            raise QuotaExceededError(
                f"Tenant {principal.tenant!r} has {len(judge_names)} judges, of {quota} that it may.",
                None,
                quota="judges",
                limit=quota,
            )
        if judge in judge_names:
            with self._lock:
                self._admitted.add(at)

    def meter(self, principal: Principal) -> TokenMeter | None:
        """Return the meter for the principal's language model calls; None where nothing is counted."""
        return None if principal is LOCAL else _Budget(self._database, principal, self)


JOB_SECONDS = 30
"""After which it may be worth asking whether a job is over."""


def _build_quota_error(principal: Principal, count: int, quota: int, kind: str) -> QuotaExceededError:
    return QuotaExceededError(
        f"Tenant {principal.tenant!r} has {count} {kind}, of {quota} that it may.", None, quota=kind, limit=quota
    )


def build_passage_quota_error(limit: int) -> QuotaExceededError:
    """Make the error for a tenant that would hold more passages than it may."""
    return QuotaExceededError(
        f"The tenant may hold {limit} passages; remove some first.", None, quota="passages", limit=limit
    )


@dataclass(frozen=True, slots=True)
class _Budget:
    """The tokens of a key and of its tenant."""

    database: Database
    principal: Principal
    service: QuotaService

    def check(self) -> None:
        who = self.principal
        if LLM not in who.grants.list_all_scopes():
            raise LlmBudgetError(f"The key of {who.name!r} may use no language model: it lacks the scope `llm`.")
        bounds = ((who.holder, who.llm_tokens), (EVERYBODY, self.service.quotas(who).llm_tokens))
        with tenancy.allow_all_tenants(), self.database.read() as reader:
            for name, most in bounds:
                if most is not None and tenants.get_spent(reader, who.tenant, name, TOKENS) >= most:
                    owner = f"The key of {name!r}" if name else f"Tenant {who.tenant!r}"
                    raise LlmBudgetError(f"{owner} has used up its {most} tokens of today (UTC).")

    def add(self, tokens: int) -> None:
        with tenancy.allow_all_tenants(), self.database.write() as writer:
            for name in (EVERYBODY, self.principal.holder):
                tenants.spend(writer, self.principal.tenant, name, TOKENS, tokens, None)


def _count_seconds_until_tomorrow() -> int:
    now = datetime.now(UTC)
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((midnight - now).total_seconds()) + 1

"""Many names against true facts: ``python -m tests.faults.fact_spam`` prints what is believed before and after.

One source states each fact and one trusted judge confirms it. Then every name attacks every fact: as a judge that
contradicts it, or as a source that states another object. The predicate has one object at a time.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context import tenancy
from engram.services.auth.scope import LOCAL, Scope
from engram.storage.schema_revision import migrate
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_service import Revision, StatedFact
from engram.wings.facts.storage import fact_rows
from engram.wings.local.servers import EmbeddedPostgres, EmbeddedRedis

BELIEVED = 0.5
PREDICATE = "place of birth"
ATTACKS = ("contradict", "state")


@dataclass(frozen=True, slots=True)
class AttackWay:
    """How the attacking names stand: trusted or not, and with or without caps."""

    name: str
    trusted: bool = False
    uncapped: bool = False


WAYS = (
    AttackWay("new judges"),
    AttackWay("all trusted", trusted=True),
    AttackWay("without caps", trusted=True, uncapped=True),
)


@dataclass(frozen=True, slots=True)
class SpamResult:
    """Mean belief of the true facts before and after an attack, and counts afterwards.

    Attributes:
        doubted: true facts that are believed less than half.
        false_believed: false facts that are believed at least half.
    """

    before: float
    after: float
    doubted: int
    false_believed: int


def uncap(application: Application) -> Application:
    """Make an application on the same servers without daily caps of judges; the caller closes it."""
    other = Application(application.settings, application.addresses, consumer="uncapped")
    other.models.embedder, other.models.language = application.models.embedder, application.models.language
    other.models.noise = replace(application.models.noise, share=1.0, contested=1.0, weight_verdicts=None)
    return other


def attack(application: Application, way: AttackWay, kind: str, facts: int, names: int) -> SpamResult:
    """Attack so many true facts, in a collection of their own, under so many names.

    Args:
        application: for a way without caps, one without caps.
        kind: one of ``ATTACKS``.
    """
    collection = f"spammed-{uuid4().hex[:12]}"
    application.corpus.ingest.receive(application.auth.access.prepare_opening(collection)).add([], [])
    honest = application.auth.access.scope(collection)
    true = [_state(application, honest, number, "Warsaw", source="register") for number in range(facts)]
    facts_of(application).predicates.declare(honest, PREDICATE, True, None)
    for fact in true:
        facts_of(application).facts.revise(honest, [Revision("confirm", fact)], judge="ana", key=f"ana {fact}")
    before = _beliefs(application, honest, true)
    false: set[int] = set()
    for number, fact in enumerate(true):
        for name in (f"name {at}" for at in range(names)):
            principal = replace(LOCAL, name=name, judges_as=name, trusted=way.trusted)
            scope = replace(honest, principal=principal)
            if kind == "contradict":
                facts_of(application).facts.revise(scope, [Revision(kind, fact)], judge=name, key=f"{name} {fact}")
            else:
                false.add(_state(application, scope, number, "Paris", source=name))
    after = _beliefs(application, honest, true)
    return SpamResult(
        sum(before) / facts,
        sum(after) / facts,
        sum(belief < BELIEVED for belief in after),
        sum(belief >= BELIEVED for belief in _beliefs(application, honest, sorted(false))),
    )


def _state(application: Application, scope: Scope, subject: int, place: str, *, source: str) -> int:
    triple = Triple(f"Person {subject}", PREDICATE, place, 0, "entity", None, None, 1.0)
    (fact,) = facts_of(application).facts.state(scope, [StatedFact(triple)], source=source).facts
    return fact


def _beliefs(application: Application, scope: Scope, facts: Sequence[int]) -> list[float]:
    with application.database.read() as reader:
        rows = fact_rows.load_facts(reader, scope.collection.id, list(facts))
    return [rows[fact].belief for fact in facts]


def main() -> int:
    """Run each attack in each way on servers in a folder that goes again."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.fact_spam", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--facts", type=int, default=10)
    parser.add_argument("--names", type=int, default=100)
    arguments = parser.parse_args()
    sys.stdout.write("| attack | way | belief before, after | true facts doubted | false facts believed |\n")
    sys.stdout.write("|---|---|---|---|---|\n")
    with tenancy.allow_all_tenants(), ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="engram-spam-")))
        postgres = stack.enter_context(EmbeddedPostgres(folder / "postgres", memory_mb=64))
        redis = stack.enter_context(EmbeddedRedis(folder / "redis"))
        migrate(postgres.url)
        settings = Settings(_env_file=None, data_dir=folder / "data", log_level="ERROR")
        capped = Application(settings, Servers(postgres.url, redis.url), consumer="spam")
        stack.callback(capped.close)
        uncapped = uncap(capped)
        stack.callback(uncapped.close)
        for kind in ATTACKS:
            for way in WAYS:
                services = uncapped if way.uncapped else capped
                result = attack(services, way, kind, arguments.facts, arguments.names)
                beliefs = f"{result.before:.3f}, {result.after:.3f}"
                counts = f"{result.doubted} of {arguments.facts} | {result.false_believed}"
                sys.stdout.write(f"| {kind} | {way.name} | {beliefs} | {counts} |\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Who sends the requests where access keys are needed: keys of random scopes, and those of a stranger's tenant."""

import json
import random
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.api.operations import DOCUMENT
from tests.fuzz.ledger import Ledger

SCOPES = ("query", "read", "ingest", "judge", "judge-as", "audit", "moderate", "vouch", "llm", "admin")
GUESTS = 12
MARK = f"Quellmoor{uuid.uuid4().hex}"
"""Stands in a passage and in no request: whoever may not read it must not be told it."""
_NEEDED: Mapping[tuple[str, str], str] = {
    (method.upper(), path): scopes[0]
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
    for security in operation.get("security", ())
    for scopes in security.values()
    if scopes
}


@dataclass(frozen=True, slots=True)
class Guest:
    """A key, and what it allows on the collection that there is; ``home`` is false of a stranger's tenant."""

    key: str
    scopes: frozenset[str]
    home: bool = True

    @property
    def headers(self) -> dict[str, str]:
        """What a request of it brings."""
        return {"authorization": f"Bearer {self.key}"} if self.key else {}

    def may(self, scope: str) -> bool:
        """Whether the key allows this."""
        return scope in self.scopes or "admin" in self.scopes

    def sees(self) -> bool:
        """Whether an answer may show it the collection's texts."""
        return self.home and bool(self.scopes)


NOBODYS_GUEST = Guest("", frozenset(), home=False)


class Guests:
    """All of them; requests choose one by their number."""

    def __init__(self, owner: Guest, others: list[Guest]) -> None:
        self.owner = owner
        self.others = others
        self.refused = 0
        self._lock = threading.Lock()

    def get(self, number: int) -> Guest:
        """Whose the request of this number is."""
        return random.Random(f"guest/{number}").choice([self.owner, *self.others, NOBODYS_GUEST])

    def check(self, guest: Guest, where: str, status: int, body: bytes, sent: str, ledger: Ledger) -> None:
        """See that the guest was let in only where its key says so, and was told nothing that it may not read."""
        method, _, path = where.partition(" ")
        needed = _NEEDED.get((method, path))
        with self._lock:
            self.refused += status in {401, 403, 404}
        if needed is not None and status < 300 and guest.home and not guest.may(needed):
            ledger.record_finding("let in", where, f"{sorted(guest.scopes)} without {needed}: {sent}")
        if (
            needed is not None
            and guest is NOBODYS_GUEST
            and status not in {400, 401, 403, 408, 413, 415, 421, 429, 431}
        ):
            ledger.record_finding("let in", where, f"nobody, {status}: {sent}")
        if not guest.sees() and MARK.encode() in body:
            ledger.record_finding("told", where, f"{sorted(guest.scopes)}: {sent}")


def invite(url: str, folder: Path, env: Mapping[str, str], seed: int, collection: str) -> Guests:
    """Make keys: the owner's, a dozen of random scopes on the collection, and an administrator's elsewhere."""
    owner = Guest(_create_key(folder, env, "owner", "admin"), frozenset({"admin"}))
    stranger = Guest(
        _create_key(folder, env, "stranger", "admin", "--tenant", "elsewhere"), frozenset({"admin"}), False
    )
    dice = random.Random(f"guests/{seed}")
    others = [stranger]
    with httpx.Client(base_url=url, headers=owner.headers, trust_env=False, timeout=60.0) as client:
        for number in range(GUESTS):
            scopes = dice.sample(SCOPES[:-1], dice.randint(1, 4))
            asked: dict[str, Any] = {
                "name": f"guest {number}",
                "scopes": {dice.choice(("*", collection)): scopes},
                "llm_tokens": dice.choice((None, 0, 500)),
            }
            made = client.post("/access/keys", json=asked).raise_for_status().json()
            others.append(Guest(made["key"], frozenset(scopes)))
    return Guests(owner, others)


def _create_key(folder: Path, env: Mapping[str, str], name: str, scope: str, *more: str) -> str:
    command = [sys.executable, "-m", "engram.cli", "access", "create-key", name]
    command += ["--scope", scope, "--json", *more]
    done = subprocess.run(command, cwd=folder, env=dict(env), capture_output=True, text=True, check=True)
    return str(json.loads(done.stdout)["key"])

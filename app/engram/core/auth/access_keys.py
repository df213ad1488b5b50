"""Form and permissions of access keys, as pure text and sets.

A key is ``engram_``, 43 characters of base 62 that hold 256 random bits, and six that are a checksum of them. The
prefix tells scanners of leaked secrets what they found, and the checksum tells a slip of the hand from a wrong key
without a look at the database. What is stored of a key is its SHA-256: so many random bits need no slow hash.
"""

import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PREFIX = "engram_"
RANDOM_BYTES = 32
"""256 bits."""
BODY_CHARACTERS = 43
CHECK_CHARACTERS = 6
HINT_CHARACTERS = 4
"""Of a key, that lists show: enough to tell keys apart."""
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
KEY = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{BODY_CHARACTERS + CHECK_CHARACTERS}}}")

QUERY, READ, INGEST, JUDGE, JUDGE_AS, AUDIT, MODERATE, VOUCH, LLM, ACT_AS, ADMIN = (
    "query", "read", "ingest", "judge", "judge-as", "audit", "moderate", "vouch", "llm", "act-as", "admin",
)  # fmt: skip
SCOPES = (QUERY, READ, INGEST, JUDGE, JUDGE_AS, AUDIT, MODERATE, VOUCH, LLM, ACT_AS, ADMIN)
"""What a key may be allowed, by collection; ``admin`` is all of them."""
ANY_COLLECTION = "*"
"""Stands for every collection of the tenant, those that are yet to come included."""


def build_key(random: bytes) -> str:
    """The key that these random bytes make.

    Raises:
        ValueError: there are not ``RANDOM_BYTES`` of them.
    """
    if len(random) != RANDOM_BYTES:
        raise ValueError(f"a key takes {RANDOM_BYTES} random bytes")
    body = _base62(int.from_bytes(random, "big"), BODY_CHARACTERS)
    return f"{PREFIX}{body}{_check(body)}"


def is_key(text: str) -> bool:
    """Whether the text is a key as ``build_key`` makes them, its checksum included."""
    if not KEY.fullmatch(text):
        return False
    body = text[len(PREFIX) : -CHECK_CHARACTERS]
    return text.endswith(_check(body))


def digest(key: str) -> bytes:
    """Return the SHA-256 of a key, 32 bytes, which is what is stored."""
    return hashlib.sha256(key.encode()).digest()


def _check(body: str) -> str:
    return _base62(zlib.crc32(f"{PREFIX}{body}".encode()), CHECK_CHARACTERS)


def _base62(number: int, characters: int) -> str:
    digits = ""
    for _ in range(characters):
        number, place = divmod(number, len(ALPHABET))
        digits = ALPHABET[place] + digits
    return digits


@dataclass(frozen=True, slots=True)
class Grants:
    """Allowed scopes by collection, or ``ANY_COLLECTION``, in order."""

    scopes: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def from_mapping(cls, scopes_by_collection: Mapping[str, Iterable[str]]) -> "Grants":
        """Make grants that do not depend on the order of the input.

        Raises:
            ValueError: a scope is none.
        """
        unknown = sorted({scope for scopes in scopes_by_collection.values() for scope in scopes} - set(SCOPES))
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no scope; there are {', '.join(SCOPES)}")
        return cls(
            tuple(
                (name, tuple(s for s in SCOPES if s in set(scopes_by_collection[name])))
                for name in sorted(scopes_by_collection)
            )
        )

    def as_json(self) -> dict[str, list[str]]:
        """Return the grants as they are stored and shown."""
        return {name: list(scopes) for name, scopes in self.scopes}

    def list_scopes(self, collection: str) -> frozenset[str]:
        """Return the scopes allowed on a collection, those allowed anywhere included."""
        allowed = {s for name, scopes in self.scopes if name in (ANY_COLLECTION, collection) for s in scopes}
        return frozenset(SCOPES if ADMIN in allowed else allowed)

    def without(self, *scopes: str) -> "Grants":
        """Return the grants without these scopes, those that ``admin`` has included."""
        remaining = {name: self.list_scopes(name) - set(scopes) for name, _ in self.scopes}
        return Grants(tuple((name, tuple(s for s in SCOPES if s in remaining[name])) for name, _ in self.scopes))

    def only_with(self, scope: str) -> "Grants":
        """Return the grants on the collections where the scope is among them."""
        return Grants(
            tuple(
                (name, tuple(s for s in SCOPES if s in allowed))
                for name, _ in self.scopes
                if scope in (allowed := self.list_scopes(name))
            )
        )

    def list_all_scopes(self) -> frozenset[str]:
        """Return the scopes allowed on at least one collection."""
        return frozenset(scope for name, _ in self.scopes for scope in self.list_scopes(name))

    def collections(self, scope: str) -> frozenset[str] | None:
        """The collections on which the scope is allowed; None: all."""
        named = frozenset(name for name, _ in self.scopes if scope in self.list_scopes(name))
        return None if ANY_COLLECTION in named else named

    def covers(self, required: "Grants") -> bool:
        """Whether all that ``required`` allow is allowed."""
        return all(
            (self.list_scopes(ANY_COLLECTION) if name == ANY_COLLECTION else self.list_scopes(name))
            >= set(required.list_scopes(name))
            for name, _ in required.scopes
        )


ALL_GRANTS = Grants.from_mapping({ANY_COLLECTION: SCOPES})

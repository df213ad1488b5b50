"""What an access key looks like, and what grants allow."""

import math
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.auth import access_keys
from engram.core.auth.access_keys import (
    ALL_GRANTS,
    KEY,
    RANDOM_BYTES,
    SCOPES,
    Grants,
    build_key,
    digest,
    is_key,
)


@given(st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES))
def test_a_key_is_known_again_by_its_form_and_checksum(random: bytes) -> None:
    key = build_key(random)
    assert KEY.fullmatch(key)
    assert is_key(key)
    assert len(digest(key)) == 32


def test_all_random_bits_are_in_the_key() -> None:
    assert access_keys.BODY_CHARACTERS * math.log2(62) >= 8 * RANDOM_BYTES >= 192
    assert build_key(b"\xff" * RANDOM_BYTES) != build_key(b"\xff" * (RANDOM_BYTES - 1) + b"\xfe")
    assert not build_key(bytes(RANDOM_BYTES)).startswith("eng_")
    with pytest.raises(ValueError, match="32 random bytes"):
        build_key(b"few")


def test_a_slip_of_the_hand_is_no_key() -> None:
    key = build_key(secrets.token_bytes(RANDOM_BYTES))
    for place in range(len(access_keys.PREFIX), len(key)):
        other = "a" if key[place] != "a" else "b"
        assert not is_key(key[:place] + other + key[place + 1 :])
    assert not is_key(key[:-1])
    assert not is_key(key + "\n")
    assert not is_key("eng_" + key[len("engram_") :])


def test_grants_are_by_collection_and_anywhere() -> None:
    grants = Grants.from_mapping({"docs": ["judge", "query"], "*": ["read"]})
    assert grants.list_scopes("docs") == {"judge", "query", "read"}
    assert grants.list_scopes("other") == {"read"}
    assert grants.list_all_scopes() == {"judge", "query", "read"}
    assert grants.collections("judge") == {"docs"}
    assert grants.collections("read") is None
    assert grants.as_json() == {"*": ["read"], "docs": ["query", "judge"]}
    assert Grants.from_mapping({"docs": ["admin"]}).list_scopes("docs") == set(SCOPES)
    assert Grants.from_mapping({"docs": ["admin"]}).list_scopes("other") == set()


def test_only_what_is_allowed_covers() -> None:
    docs = Grants.from_mapping({"docs": ["query", "read"]})
    assert ALL_GRANTS.covers(docs)
    assert docs.covers(Grants.from_mapping({"docs": ["read"]}))
    assert not docs.covers(Grants.from_mapping({"docs": ["judge"]}))
    assert not docs.covers(Grants.from_mapping({"*": ["read"]}))
    assert Grants.from_mapping({"*": ["read"]}).covers(Grants.from_mapping({"docs": ["read"]}))
    assert not Grants.from_mapping({"docs": ["admin"]}).covers(ALL_GRANTS)


def test_unknown_scope_is_refused() -> None:
    with pytest.raises(ValueError, match="'write' is no scope"):
        Grants.from_mapping({"docs": ["write"]})

"""Many new names contradict a confirmed fact; ``python -m tests.faults.fact_spam`` prints figures."""

import pytest

from engram.composition.container import Application
from tests.faults.fact_spam import BELIEVED, WAYS, AttackWay, attack

NEW, TRUSTED, _ = WAYS
NAMES = 4


def test_new_names_do_not_have_a_confirmed_fact_doubted_and_trusted_ones_do(application: Application) -> None:
    new, trusted = (attack(application, way, "contradict", 1, NAMES) for way in (NEW, TRUSTED))
    assert new.before == trusted.before > BELIEVED
    assert (new.doubted, trusted.doubted) == (0, 1)
    assert trusted.after < BELIEVED < new.after


@pytest.mark.parametrize("way", [NEW, TRUSTED], ids=lambda way: way.name)
def test_sources_count_whoever_sends_them(application: Application, way: AttackWay) -> None:
    """A limit that ``docs/trust.md`` states: who may ingest may state facts under any number of source names."""
    result = attack(application, way, "state", 1, NAMES)
    assert result.after < result.before
    assert result.false_believed == 1

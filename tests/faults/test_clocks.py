"""Clocks that jump while the service works: nothing is lost or doubled.

This is the short form; ``python -m tests.faults --only clock`` repeats it as often as you like.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from tests.faults.installation import Installation, Tally
from tests.support.databases import application_on

clocks = pytest.importorskip("tests.faults.clocks", reason="libfaketime is not installed", exc_type=ImportError)


@pytest.fixture
def site(
    application: Application,
    places: Servers,
    env: Mapping[str, str],
    settings: Settings,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    with application_on(places, settings, application) as services:
        yield Installation(services, env, tmp_path_factory.mktemp("clocks"))


@pytest.mark.campaign
def test_nothing_is_lost_or_doubled_while_the_clock_jumps(site: Installation) -> None:
    with ExitStack() as stack:
        tally = Tally("clock", runs=1)
        clocks.Clocks(site, random.Random(1), stack).jump(tally)
    assert tally.hits > 0
    assert tally.findings == []

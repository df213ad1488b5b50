"""Revocation against learning, and a restore against a service in use: nothing is lost, doubled or mixed.

This is the short form; ``python -m tests.faults`` repeats each race as often as you like.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from tests.faults.installation import Installation, Tally
from tests.faults.races import FAULTS, Races
from tests.support.campaign import leave_to_campaign
from tests.support.databases import application_on

REVOCATION = "revocation racing with learning, a worker killed"


@pytest.fixture(scope="module")
def races(
    application: Application,
    places: Servers,
    env: Mapping[str, str],
    settings: Settings,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Races]:
    with ExitStack() as stack:
        services = stack.enter_context(application_on(places, settings, application))
        site = Installation(services, env, tmp_path_factory.mktemp("races"))
        yield Races(site, random.Random(1), stack)


@pytest.mark.parametrize("fault", leave_to_campaign(FAULTS, ordinary=(REVOCATION,)))
def test_nothing_is_lost_doubled_or_mixed(races: Races, fault: str) -> None:
    tally = Tally(fault, runs=1)
    FAULTS[fault](races, tally)
    assert tally.findings == []

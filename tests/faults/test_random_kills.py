"""Processes killed at random moments of what takes long: nothing is lost or doubled, and the next try succeeds.

This is the short form; ``python -m tests.faults`` repeats each fault as often as you like.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.providers.embedder import load_embedder
from tests.faults.installation import Installation, Tally
from tests.faults.kills import FAULTS, Kills
from tests.support import encoder
from tests.support.campaign import leave_to_campaign
from tests.support.databases import application_on

WORKS = ("rekey", "reembed", "backup", "restore", "migrate")
SECONDS = 0.7
"""Time within which each is killed."""


@pytest.fixture(scope="module")
def kills(
    application: Application,
    places: Servers,
    env: Mapping[str, str],
    settings: Settings,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Kills]:
    folder = tmp_path_factory.mktemp("kills")
    second = encoder.shallow(folder / "shallow")
    with ExitStack() as stack:
        services = stack.enter_context(application_on(places, settings, application))
        services.models.embedder_also = load_embedder(str(second), "onnx", settings.data_dir, 1, 64)
        site = Installation(services, env, folder)
        yield Kills(site, str(second), random.Random(1), stack, dict.fromkeys(WORKS, SECONDS))


@pytest.mark.parametrize("fault", leave_to_campaign(FAULTS, ordinary=("kill -9 during restore",)))
def test_nothing_is_lost_or_doubled(kills: Kills, fault: str) -> None:
    tally = Tally(fault, runs=1)
    FAULTS[fault](kills, tally)
    assert tally.findings == []

"""Benchmarks name functions and modules of the service that exist."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield import_module(request.param)
    sys.modules.pop(request.param)


@pytest.mark.parametrize("script", ["query_cost"], indirect=True)
def test_stages_of_a_query_are_functions_of_the_service(script: ModuleType) -> None:
    for module, name, _ in script.STAGES:
        assert callable(getattr(module, name, None)), (module.__name__, name)

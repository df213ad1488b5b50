"""Attributes that are made when first used."""

import importlib.util
import pkgutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from engram import wings
from engram.composition import models, parts, servers
from engram.composition.locked_property import locked_property

OVERLAP_SECONDS = 0.5


def test_first_uses_that_overlap_make_one_service() -> None:
    both_are_making = threading.Barrier(2)

    class Part:
        @locked_property
        def service(self) -> object:
            with suppress(threading.BrokenBarrierError):
                both_are_making.wait(OVERLAP_SECONDS)
            return object()

    part = Part()
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: part.service, range(2))

    assert first is second
    assert part.service is first
    assert Part().service is not first


def test_composition_makes_everything_under_a_lock() -> None:
    names = [f"{parts.__name__}.{module.name}" for module in pkgutil.iter_modules(parts.__path__)]
    of_wings = [f"{wings.__name__}.{wing.name}.parts" for wing in pkgutil.iter_modules(wings.__path__)]
    names += filter(importlib.util.find_spec, of_wings)
    modules = [models, servers, *map(importlib.import_module, names)]
    assert len(modules) > 10
    assert [module.__name__ for module in modules if hasattr(module, "cached_property")] == []

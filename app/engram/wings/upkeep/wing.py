"""Declare the wing, found by the entry point ``upkeep`` of the group ``engram.wings``."""

from engram.composition.container import Application
from engram.composition.wings import Wing
from engram.wings.upkeep.parts import UpkeepServices


def attach(application: Application) -> UpkeepServices:
    """Make the wing's services."""
    return UpkeepServices(
        application.settings,
        application.addresses,
        application.connections,
        application.models,
        application.maintenance,
    )


WING = Wing(name="upkeep", attach=attach)

"""Declare the wing, found by the entry point ``local`` of the group ``engram.wings``."""

from engram.composition.wings import Wing
from engram.wings.local.servers.local_servers import EmbeddedServers

WING = Wing(name="local", attach=lambda application: None, local_servers=EmbeddedServers())

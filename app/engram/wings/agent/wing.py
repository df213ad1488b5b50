"""Declare the wing, found by the entry point ``agent`` of the group ``engram.wings``."""

from engram.composition.container import Application
from engram.composition.wings import Wing
from engram.wings.agent.parts import AgentServices
from engram.wings.agent.services.agent_planner import AgentPlanner
from engram.wings.facts.parts import FactServices
from engram.wings.sessions.parts import SessionServices


def attach(application: Application) -> AgentServices:
    """Make the wing's services, and give sessions its planner."""
    services = AgentServices(application.database, application.wing(FactServices))
    application.wing(SessionServices).add_planner(AgentPlanner(), services.finish)
    return services


WING = Wing(name="agent", attach=attach, needs=("facts", "sessions"))

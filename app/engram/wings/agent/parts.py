"""Services of the wing."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.services.auth.scope import Scope
from engram.storage.database import Database
from engram.wings.agent.services.graph_publication import Publisher
from engram.wings.facts.parts import FactServices
from engram.wings.sessions.services.session_state import SessionState


@dataclass(frozen=True, eq=False)
class AgentServices:
    """Services of the agent. Each is made when first used."""

    database: Database
    facts: FactServices

    @locked_property
    def publisher(self) -> Publisher:
        """Statement of what agents kept."""
        return Publisher(self.database, self.facts.facts)

    def finish(self, scope: Scope, state: SessionState) -> None:
        """Keep the graph of a session that has stopped, where its options ask for that."""
        self.publisher.finish(scope, state)

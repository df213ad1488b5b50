"""What a request is about and who makes it: resolved once at the edge, and taken by every service."""

from dataclasses import dataclass

from app.storage.corpus.collections import Collection

LOCAL = "local"
"""The principal, and the tenant, of a deployment without access control."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever makes a request.

    Attributes:
        name: unique within the deployment.
        tenant: whose collections it reaches.
    """

    name: str = LOCAL
    tenant: str = LOCAL

    def judge(self, claimed: str) -> str:
        """The judge that its verdicts are of: without access control, the one they name."""
        return claimed


@dataclass(frozen=True, slots=True)
class Scope:
    """A principal at a collection, as that was when the request came in."""

    principal: Principal
    collection: Collection

"""Principal of a request, for code around the routes."""

from starlette.types import Scope

from engram.api.authentication_middleware import PRINCIPAL
from engram.api.client_address import client_address
from engram.api.fair_slots import Holder
from engram.services.auth.scope import LOCAL, Principal


def asker(scope: Scope) -> Principal:
    """Whoever makes the request; without access control, whoever does."""
    principal: Principal = scope.get(PRINCIPAL, LOCAL)
    return principal


def holder(scope: Scope) -> Holder:
    """Return whose share of the process the request takes: a key's, or an address's where nobody is known."""
    principal = asker(scope)
    return Holder(principal.tenant, principal.holder if principal != LOCAL else f"at {client_address(scope)}")

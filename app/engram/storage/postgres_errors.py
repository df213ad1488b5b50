"""Translation of Postgres errors into Engram's."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import errors
from sqlalchemy import exc

from engram.context import deadline
from engram.context.errors import (
    CollectionMovingError,
    ConfigurationError,
    EngramError,
    InvalidRequestError,
    MissingPartitionError,
    NotFoundError,
    StatementGivenUpError,
    UnavailableError,
)

NOT_MIGRATED = "The database does not have this version's schema; `engram migrate` brings it there."
DELETED_MEANWHILE = "What this belongs to was deleted meanwhile."
# What a statement brings upon itself although psycopg counts it among the failures of the server: it took too long,
# stood in another's way, was too deeply nested, or needed more temporary files than one statement may have.
_GIVEN_UP = (
    errors.QueryCanceled,
    errors.DeadlockDetected,
    errors.StatementTooComplex,
    errors.ConfigurationLimitExceeded,
)

_PUBLIC_DETAILS: dict[type[EngramError], str] = {
    UnavailableError: "Postgres cannot serve this now; the log says why.",
    StatementGivenUpError: "Postgres gave up on a statement; the log says why.",
    MissingPartitionError: "Postgres has no place for a row; the log says more.",
    ConfigurationError: "The service's role in Postgres lacks a right; the log says which.",
}
_OTHER_DIMENSION = re.compile(r"different (?:half)?vec(?:tor)? dimensions|expected \d+ dimensions, not \d+")
MOVE_CONSTRAINT = "collection_move"
"""Constraint that the trigger names which refuses rows of a collection that is being moved."""
_NO_PARTITION = "no partition of relation"
"""What Citus passes on from a worker, without the kind of error that it was there."""


@contextmanager
def explain_errors(*, writing: bool = False) -> Iterator[None]:
    """Raise errors of the block as the kinds that callers know; others pass.

    Args:
        writing: what it does takes a server that takes writes.
    """
    try:
        yield
    except (exc.OperationalError, exc.InterfaceError, exc.TimeoutError) as error:
        if isinstance(getattr(error, "orig", None), errors.ProgramLimitExceeded):
            raise InvalidRequestError("A value is larger than Postgres can hold or index.") from error
        cause = getattr(error, "orig", None)
        if isinstance(cause, errors.ObjectInUse) and cause.diag.constraint_name == MOVE_CONSTRAINT:
            raise CollectionMovingError(str(cause.diag.message_primary)) from error
        deadline.check()  # of a statement that was cancelled because of it, this is the cause
        given_up = isinstance(getattr(error, "orig", None), _GIVEN_UP)
        raise _build(StatementGivenUpError if given_up else UnavailableError, error) from error
    except exc.InternalError as error:
        # Not the server's own mistakes: a session that it ended, as it does to one that idles in a transaction, and
        # a server that takes no writes, as a standby or one whose provider found its disk full.
        if error.connection_invalidated or (writing and isinstance(error.orig, errors.ReadOnlySqlTransaction)):
            raise _build(UnavailableError, error) from error
        if str(error.orig).startswith(_NO_PARTITION):
            raise _build(MissingPartitionError, error) from error
        raise
    except (exc.ProgrammingError, exc.DataError) as error:
        explanation = _statement_error(error)
        if explanation is None:
            raise
        raise explanation from error
    except exc.IntegrityError as error:
        if isinstance(error.orig, errors.ForeignKeyViolation):
            raise NotFoundError(DELETED_MEANWHILE) from error
        if isinstance(error.orig, errors.CheckViolation) and error.orig.diag.constraint_name is None:
            raise _build(MissingPartitionError, error) from error
        raise


def _statement_error(error: exc.ProgrammingError | exc.DataError) -> EngramError | None:
    """The failure of a statement that Postgres takes for wrong; None for a mistake of ours."""
    if isinstance(error.orig, errors.UndefinedTable | errors.UndefinedColumn):
        return ConfigurationError(NOT_MIGRATED)
    # Row security keeps rows back by other words, which is a mistake of ours.
    if isinstance(error.orig, errors.InsufficientPrivilege) and "permission denied" in str(error.orig):
        return _build(ConfigurationError, error, "; connect as the role that ran `engram migrate`")
    # A statement was planned for vectors that a re-embedding has just exchanged for others of another length.
    if isinstance(error, exc.DataError) and _OTHER_DIMENSION.search(str(error.orig)):
        return UnavailableError("The collection was given other vectors at this moment; ask again.")
    return None


def _build(kind: type[EngramError], error: Exception, advice: str = "") -> EngramError:
    """Make an error of the message of Postgres or of the connection, in one line; callers are told its kind."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    message = lines[0] if lines else type(error).__name__
    return kind(f"Postgres: {message}{advice}", public_detail=_PUBLIC_DETAILS[kind])

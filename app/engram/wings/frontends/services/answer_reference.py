"""One text that names a passage of an answered query, for clients that can carry only one id of a source."""

from dataclasses import dataclass
from uuid import UUID

SEPARATOR = ":"


@dataclass(frozen=True, slots=True)
class AnswerReference:
    """A passage as one query answered with it."""

    query_id: UUID
    passage_id: str

    def __str__(self) -> str:
        return f"{self.query_id}{SEPARATOR}{self.passage_id}"

    @classmethod
    def parse(cls, text: str) -> "AnswerReference":
        """The reference that a text writes.

        Raises:
            ValueError: it is none.
        """
        query_id, separator, passage_id = text.partition(SEPARATOR)
        if not separator or not passage_id:
            raise ValueError(f"{text!r} is not a query id and a passage id with a colon between them")
        return cls(UUID(query_id), passage_id)

"""Whether the process can serve."""

from dataclasses import dataclass

from app.providers.language import Language
from app.services.access.encoder import Encoder
from app.storage.database import Database
from app.storage.stream import WakeStream


@dataclass(frozen=True, slots=True)
class Readiness:
    """What the process depends on; without Redis it serves and learning is delayed, which is "degraded"."""

    status: str
    postgres: str
    redis: str
    encoder: str
    language: str
    llm: str


class HealthService:
    """Looks at what the process depends on."""

    def __init__(
        self, database: Database, stream: WakeStream, encoder: Encoder, language: Language, llm_url: str | None
    ) -> None:
        self._database = database
        self._stream = stream
        self._encoder = encoder
        self._language = language
        self._llm_url = llm_url

    def readiness(self) -> Readiness:
        """The state of the dependencies.

        Raises:
            UnavailableError: Postgres is out of reach.
        """
        with self._database.read() as reader:
            reader.scalar("SELECT 1")
        redis = self._stream.ping()
        return Readiness(
            status="ok" if redis else "degraded",
            postgres="ok",
            redis="ok" if redis else "unreachable",
            encoder=self._encoder.id.model,
            language=self._language.name,
            llm="configured" if self._llm_url else "not configured",
        )

"""Whom to trust and how far: noises and daily caps of single judges, set beside everybody's."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from engram.core.learning.judge_standing import JudgeStanding
from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.services.auth.scope import Scope
from engram.storage.corpus import collections
from engram.storage.database import Database, Reader
from engram.storage.feedback_log import judge_standings
from engram.storage.learning import judges
from engram.storage.learning.judges import JudgeSettings, KnownJudge

log = structlog.get_logger(__name__)
TOMORROW = "9999-12-31"
"""Or any day after today."""


@dataclass(frozen=True, slots=True)
class JudgeView:
    """A judge and how much its verdicts count.

    Attributes:
        judge: its verdicts by status, and what is set for it.
        constants: those by which its next verdicts are applied.
        standing: how it agreed so far; it counts by this if nobody vouches for it.
    """

    judge: KnownJudge
    constants: NoiseAndCaps
    standing: JudgeStanding


class JudgeSettingsService:
    """Reads and sets what is particular to a judge."""

    def __init__(self, database: Database, constants: NoiseAndCaps) -> None:
        self._database = database
        self._constants = constants

    def page(self, scope: Scope, after: str, limit: int) -> list[JudgeView]:
        """Judges that gave a verdict or that something is set for, in name order, those after ``after``."""
        with self._database.read() as reader:
            page_judges = judges.page(reader, scope.collection.id, after, limit)
            standings = _standings(reader, scope.collection.id, page_judges)
        return [JudgeView(one, one.settings.adapt(self._constants), standings[one.name]) for one in page_judges]

    def set(
        self,
        scope: Scope,
        judge: str,
        *,
        positive: float | None = None,
        negative: float | None = None,
        share: float | None = None,
        contested: float | None = None,
        weight_verdicts: int | None = None,
        trusted: bool | None = None,
    ) -> JudgeView:
        """Set this for a judge in place of what was set; what was applied before stays as it was applied.

        Args:
            positive, negative, share, contested, weight_verdicts: see ``NoiseAndCaps``; None: as for all.
            trusted: whether it counts in full, whoever brings its verdicts.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
        """
        settings = JudgeSettings(positive, negative, share, contested, weight_verdicts, trusted)
        target = scope.collection
        with self._database.write() as writer:
            if not collections.lock_against_deletion(writer, target.id):
                raise collections.build_gone_error(target.name)
            if settings.overrides():
                judges.put(writer, target.id, judge, settings)
            else:
                judges.delete(writer, target.id, judge)
            stored_judge = judges.load_judge(writer, target.id, judge)
            standings = _standings(writer, target.id, [stored_judge])
        log.info("judge set", collection=target.name, judge=judge, **settings.overrides())
        return JudgeView(stored_judge, stored_judge.settings.adapt(self._constants), standings[judge])


def _standings(reader: Reader, collection_id: int, known_judges: Sequence[KnownJudge]) -> dict[str, JudgeStanding]:
    """Return the agreement of each judge up to now, as it counts from tomorrow on."""
    standings = judge_standings.standings(reader, collection_id, {(judge.name, TOMORROW) for judge in known_judges})
    return {name: standing for (name, _), standing in standings.items()}

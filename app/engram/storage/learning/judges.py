"""Settings of single judges: observation noises and caps other than the default."""

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any

from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.storage.database import Reader, Writer


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Settings of one judge; None is the default of every judge.

    Attributes:
        positive, negative: observation noises, above 0.
        share, contested: how much of the distance to its verdicts it may close of one memory in a day, in [0, 1];
            the second where it goes against what others said.
        weight_verdicts: verdicts a day that may teach weights.
        trusted: it counts in full whoever brings its verdicts.
    """

    positive: float | None = None
    negative: float | None = None
    share: float | None = None
    contested: float | None = None
    weight_verdicts: int | None = None
    trusted: bool | None = None

    def overrides(self) -> dict[str, Any]:
        """Return the settings that differ from the default."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def adapt(self, constants: NoiseAndCaps) -> NoiseAndCaps:
        """Return the constants by which the judge's verdicts are applied; ``constants`` are every judge's."""
        own = {name: value for name, value in self.overrides().items() if name != "trusted"}
        return replace(constants, **own)


_COLUMNS = """
    observation_noise_positive, observation_noise_negative, daily_share, contested_share, daily_weight_verdicts,
    trusted
"""


def find(reader: Reader, collection_id: int, names: Collection[str]) -> dict[str, JudgeSettings]:
    """Judge -> what is set for it; those that nothing is set for are left out."""
    rows = reader.rows(
        f"SELECT name, {_COLUMNS} FROM judge WHERE collection_id = %(collection)s AND name = ANY(%(names)s)",
        {"collection": collection_id, "names": sorted(names)},
    )
    return {row.name: _settings(row) for row in rows}


def put(writer: Writer, collection_id: int, name: str, judge: JudgeSettings) -> None:
    """Set this for a judge, in place of what was set; verdicts that are applied from now on go by it."""
    writer.execute(
        f"""
        INSERT INTO judge (collection_id, name, {_COLUMNS}, updated_at)
        VALUES (%(collection)s, %(name)s, %(positive)s, %(negative)s, %(share)s, %(contested)s, %(weight_verdicts)s,
                %(trusted)s, now())
        ON CONFLICT (collection_id, name) DO UPDATE SET
            observation_noise_positive = excluded.observation_noise_positive,
            observation_noise_negative = excluded.observation_noise_negative,
            daily_share = excluded.daily_share, contested_share = excluded.contested_share,
            daily_weight_verdicts = excluded.daily_weight_verdicts, trusted = excluded.trusted,
            updated_at = excluded.updated_at
        """,
        {
            "collection": collection_id,
            "name": name,
            **{field.name: getattr(judge, field.name) for field in fields(judge)},
        },
    )


def delete(writer: Writer, collection_id: int, name: str) -> None:
    """Let the judge be as every other."""
    writer.execute(
        "DELETE FROM judge WHERE collection_id = %(collection)s AND name = %(name)s",
        {"collection": collection_id, "name": name},
    )


@dataclass(frozen=True, slots=True)
class KnownJudge:
    """A judge as the log knows it: its verdicts by status, and what is set for it.

    Attributes:
        trusted_by_key: whether its latest verdict came with access that makes it count in full.
    """

    name: str
    pending: int
    applied: int
    parked: int
    revoked: int
    settings: JudgeSettings
    trusted_by_key: bool = False

    @property
    def trusted(self) -> bool:
        """Whether it counts in full: so it is set for it, or its key says so."""
        return bool(self.settings.trusted) or self.trusted_by_key


_COUNTS = """
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE status = 'pending') AS pending,
               count(*) FILTER (WHERE status = 'applied') AS applied,
               count(*) FILTER (WHERE status = 'parked') AS parked,
               count(*) FILTER (WHERE status = 'revoked') AS revoked
        FROM feedback_event WHERE collection_id = %(collection)s AND judge = known.name
    ) AS counted
    LEFT JOIN LATERAL (
        SELECT trusted AS trusted_by_key FROM feedback_event
        WHERE collection_id = %(collection)s AND judge = known.name ORDER BY received_at DESC LIMIT 1
    ) AS latest ON true
    LEFT JOIN judge ON judge.collection_id = %(collection)s AND judge.name = known.name
"""
_JUDGE_COLUMNS = f"""
    known.name, counted.pending, counted.applied, counted.parked, counted.revoked, latest.trusted_by_key, {_COLUMNS}
"""


def load_judge(reader: Reader, collection_id: int, name: str) -> KnownJudge:
    """The judge of this name, whether or not it gave a verdict."""
    row = reader.row(
        f"SELECT {_JUDGE_COLUMNS} FROM (SELECT %(name)s::text AS name) AS known {_COUNTS}",
        {"collection": collection_id, "name": name},
    )
    return _build_judge(row)


def page(reader: Reader, collection_id: int, after: str, limit: int) -> list[KnownJudge]:
    """Judges that gave a verdict or that something is set for, in name order, those after ``after``."""
    # From name to name along the index: a collection may have millions of verdicts by a handful of judges.
    rows = reader.rows(
        f"""
        WITH RECURSIVE named AS (
            (SELECT min(judge) AS name FROM feedback_event
             WHERE collection_id = %(collection)s AND judge > %(after)s)
            UNION ALL
            SELECT (SELECT min(judge) FROM feedback_event
                    WHERE collection_id = %(collection)s AND judge > named.name)
            FROM named WHERE named.name IS NOT NULL
        )
        SELECT {_JUDGE_COLUMNS}
        FROM (
            (SELECT name FROM named WHERE name IS NOT NULL LIMIT %(limit)s)
            UNION
            (SELECT name FROM judge WHERE collection_id = %(collection)s AND name > %(after)s
             ORDER BY name LIMIT %(limit)s)
            ORDER BY name LIMIT %(limit)s
        ) AS known {_COUNTS}
        ORDER BY known.name
        """,
        {"collection": collection_id, "after": after, "limit": limit},
    )
    return [_build_judge(row) for row in rows]


def _build_judge(row: Any) -> KnownJudge:
    return KnownJudge(
        name=row.name,
        pending=row.pending,
        applied=row.applied,
        parked=row.parked,
        revoked=row.revoked,
        settings=_settings(row),
        trusted_by_key=bool(row.trusted_by_key),
    )


def _settings(row: Any) -> JudgeSettings:
    return JudgeSettings(
        positive=row.observation_noise_positive,
        negative=row.observation_noise_negative,
        share=row.daily_share,
        contested=row.contested_share,
        weight_verdicts=row.daily_weight_verdicts,
        trusted=row.trusted,
    )

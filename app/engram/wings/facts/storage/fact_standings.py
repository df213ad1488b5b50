"""Agreement of a judge with judges in good standing, by verdicts on facts and on answers."""

from datetime import date

from engram.core.learning.judge_standing import JudgeStanding
from engram.storage.database import Reader
from engram.storage.feedback_log import judge_standings

LATEST_STATEMENTS = 1_000
"""Words of a judge on facts that it is known by."""


def load_standing(reader: Reader, collection_id: int, judge: str, day: date) -> JudgeStanding:
    """Return the standing of a judge before this day (UTC) began.

    Of facts its last word on each counts, held against the last words that judges in good standing gave on it,
    where these are not of two minds; what both contradict tells nothing, as what both reject of an answer does.
    """
    row = reader.row(
        """
        SELECT count(*) FILTER (WHERE own.word = sign(others.balance)) AS agreed,
               count(*) FILTER (WHERE own.word <> sign(others.balance)) AS disagreed
        FROM (
            SELECT DISTINCT ON (said.fact_id) said.fact_id,
                   CASE said.kind WHEN 'confirm' THEN 1 ELSE -1 END AS word
            FROM (
                SELECT fact_id, kind, sequence FROM fact_event
                WHERE collection_id = %(collection)s AND judge = %(judge)s AND status = 'applied'
                  AND received_at < %(day)s::timestamp AT TIME ZONE 'UTC' AND kind IN ('confirm', 'contradict')
                ORDER BY received_at DESC LIMIT %(latest)s
            ) AS said
            ORDER BY said.fact_id, said.sequence DESC
        ) AS own
        CROSS JOIN LATERAL (
            SELECT sum(CASE last.kind WHEN 'confirm' THEN 1 ELSE -1 END) AS balance
            FROM (
                SELECT DISTINCT ON (e.judge) e.kind FROM fact_event e
                WHERE e.collection_id = %(collection)s AND e.fact_id = own.fact_id AND e.status = 'applied'
                  AND e.judge <> %(judge)s AND e.standing = 1 AND e.kind IN ('confirm', 'contradict')
                ORDER BY e.judge, e.sequence DESC
            ) AS last
        ) AS others
        WHERE others.balance > 0 OR others.balance < 0 AND own.word = 1
        """,
        {"collection": collection_id, "judge": judge, "day": day, "latest": LATEST_STATEMENTS},
    )
    standing = judge_standings.standings(reader, collection_id, {(judge, day.isoformat())})[judge, day.isoformat()]
    if row is None:
        return standing
    return JudgeStanding(standing.agreed + row.agreed, standing.disagreed + row.disagreed)

"""Queries of a session's step under way, noted in its job before they are stored: they go if it is not kept."""

from uuid import UUID

from engram.storage.database import Writer
from engram.storage.erasure import erased_log
from engram.storage.erasure.erased_log import Selection
from engram.storage.jobs import jobs
from engram.storage.jobs.jobs import JOB, Job


def note(writer: Writer, job: Job, query: UUID) -> bool:
    """Note that the step is about to ask; False, and nothing changes, if the job is the claimant's no more."""
    return (
        writer.execute(
            f"""
            UPDATE job SET payload = payload || jsonb_build_object(
                'asked', coalesce(payload -> 'asked', '[]') || to_jsonb(%(query)s::text)
            )
            WHERE {JOB} AND claimant = %(claimant)s
            """,
            _job_key(job) | {"claimant": job.claimant, "query": str(query)},
        )
        > 0
    )


def keep(writer: Writer, job: Job) -> None:
    """Let the noted queries stay: the round that asked them is written."""
    writer.execute(f"UPDATE job SET payload = payload - 'asked' WHERE {JOB}", _job_key(job))


def delete(writer: Writer, job: Job) -> None:
    """Delete the noted queries, if they were stored: whoever asked may have been erased since."""
    current = jobs.find(writer, job.collection_id, job.id)
    noted = [] if current is None else current.payload.get("asked", [])
    if noted:
        chosen = Selection("query", queries=[UUID(query) for query in noted])
        erased_log.delete_episodes(writer, job.collection_id, chosen, len(noted))
        keep(writer, job)


def _job_key(job: Job) -> dict[str, object]:
    return {"collection": job.collection_id, "job": job.id}

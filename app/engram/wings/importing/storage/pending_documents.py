"""Documents that jobs have yet to write."""

from engram.storage.database import Reader
from engram.storage.jobs.jobs import OPEN_JOB


def list_digests(reader: Reader, collection_id: int, folder: str) -> dict[str, str | None]:
    """Source -> digest that a document of the folder has once all open jobs are done.

    A job that fails or is cancelled leaves the list, so that its documents count as not written.
    """
    rows = reader.rows(
        f"""
        SELECT pending.source, pending.digest
        FROM (
            SELECT s.source, s.description ->> 'digest' AS digest, s.job_id
            FROM ingest_document s
            WHERE s.collection_id = %(collection)s AND NOT s.missing AND s.description ->> 'folder' = %(folder)s
            UNION ALL
            SELECT d.source, d.digest, d.writing_job
            FROM document d
            WHERE d.collection_id = %(collection)s AND d.writing_job IS NOT NULL AND d.folder = %(folder)s
        ) AS pending
        JOIN job ON job.collection_id = %(collection)s AND job.id = pending.job_id AND job.{OPEN_JOB}
        ORDER BY job.number
        """,
        {"collection": collection_id, "folder": folder},
    )
    return {row.source: row.digest for row in rows}

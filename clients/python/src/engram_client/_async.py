"""The client. ``_sync.py`` is made of this file by ``generate.py``; change this one."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Self, TypeVar, Unpack
from uuid import UUID

import httpx

from engram_client import models as m
from engram_client import requests as r
from engram_client._core import (
    FINISHED,
    LOOPBACK,
    Call,
    Cited,
    JobFailedError,
    Judged,
    RejectedLinesError,
    UnreachableError,
    access_key,
    build_idempotency_header,
    build_path,
    build_rating,
    decode_part,
    lines,
    problem,
    read,
    service_url,
    wait_seconds,
)

T = TypeVar("T")


class AsyncEngram:
    """A running Engram service.

    Everything that happens once goes with an Idempotency-Key, so a try whose answer was lost is repeated without
    doing it twice. Methods take what the API's documents do, by the same names, and answer with ``models``.

    Every method raises:
        UnreachableError: the service could not be reached in all tries.
        ProblemError: it refused; see its subclasses.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        collection: str = "default",
        key: str | None = None,
        on_behalf_of: Sequence[str] | None = None,
        timeout_seconds: float = 60.0,
        retries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """
        Args:
            url: where the service is; by default ``ENGRAM_URL``, else http://127.0.0.1:8000.
            collection: that is meant where a method is not told another.
            key: an access key; by default ``ENGRAM_ACCESS_KEY``. Give "" to send none.
            on_behalf_of: whom questions, reads and verdicts are for where a method is not told, as ``user:ana`` and
                ``group:hr``; None: the key itself. It is ``as`` of the API, and takes the scope ``act-as``.
            timeout_seconds: of one try.
            retries: further tries of what may succeed then: no connection, 429, 502, 503, 504.
            transport: of httpx; for tests and proxies.
        """
        self.url = service_url(url)
        secret = access_key(key)
        self.collection = collection
        self.on_behalf_of = None if on_behalf_of is None else list(on_behalf_of)
        self.retries = retries
        self._http = httpx.AsyncClient(
            base_url=self.url,
            timeout=timeout_seconds,
            headers={} if secret is None else {"authorization": f"Bearer {secret}"},
            # A proxy of the environment leads away from this machine, not to it.
            trust_env=httpx.URL(self.url).host not in LOOPBACK,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Send a request, again while that may help, and read its answer."""
        tried = 0
        while True:
            response: httpx.Response | None = None
            try:
                response = await self._http.send(call.request(self._http))
                if not response.is_error:
                    return read(call, response)
                failure: Exception = problem(response)
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
                failure = UnreachableError(f"{self._http.base_url} is out of reach: {reason}")
            wait = wait_seconds(tried, response)
            if wait is None or tried >= self.retries:
                raise failure
            tried += 1
            await asyncio.sleep(wait)

    # Asking

    async def query(self, query: str, **options: Unpack[r.JointQueryIn]) -> m.QueryOut:
        """Passages for a question, the best first; of several ``collections`` in one list."""
        return await self.send(Call(m.QueryOut, "POST", "/query", json=self._build_question(options, query=query)))

    async def answer(self, query: str, **options: Unpack[r.AnswerIn]) -> m.AnswerOut:
        """An answer in words, with the sentences it cites."""
        return await self.send(
            Call(m.AnswerOut, "POST", "/answer", json=self._build_question(options, query=query))
        )

    async def compare(self, query: str, **options: Unpack[r.CompareIn]) -> m.CompareOut:
        """Compare the answers of two arms."""
        body = self._build_question(options, query=query)
        return await self.send(Call(m.CompareOut, "POST", "/query/compare", json=body))

    async def batch(self, queries: Iterable[str | r.QueryIn]) -> list[m.BatchedOut]:
        """Ask up to 50 questions in one request; an answer or a problem for each, in their order."""
        bodies = [self._build_question({"query": one} if isinstance(one, str) else one) for one in queries]
        batch = await self.send(Call(m.BatchOut, "POST", "/queries:batch", json={"queries": bodies}))
        return batch.answers

    async def expand(self, query: str, **options: Unpack[r.ExpandIn]) -> m.ExpandOut:
        """Other wordings of a question, to ask with and to send with its verdict."""
        return await self.send(
            Call(m.ExpandOut, "POST", "/expand", json=self._build_question(options, query=query))
        )

    async def episode(self, query_id: str | UUID, *, collection: str | None = None) -> m.EpisodeOut:
        """A query that was answered, with what became of it."""
        return await self._get(m.EpisodeOut, build_path("queries", query_id), collection=self._name(collection))

    async def suggestions(
        self,
        prefix: str,
        *,
        collection: str | None = None,
        limit: int = 10,
        on_behalf_of: Sequence[str] | None = None,
    ) -> list[str]:
        """Names and titles that begin with a prefix, to complete what is typed; ``on_behalf_of``: for whom."""
        params = self._params(collection, on_behalf_of)
        path = build_path("collections", params.pop("collection"), "suggestions")
        return (await self._get(m.SuggestionsOut, path, prefix=prefix, limit=limit, **params)).suggestions

    async def trace(self, trace_id: str, *, collection: str | None = None) -> list[m.TracedQueryOut]:
        """The queries that were asked with this ``trace_id``, oldest first."""
        traced = await self._get(
            m.TracedQueriesOut, "/queries", collection=self._name(collection), trace_id=trace_id
        )
        return traced.queries

    async def pulled_scores(
        self, source: str, *, since: str | None = None, collection: str | None = None
    ) -> AsyncIterator[m.PulledScoreOut]:
        """The ledger of a pull: scores of another product, given at ``since`` or later."""
        after: str | None = None
        while True:
            path = build_path("collections", self._name(collection), "pulls", source)
            where = {"from": since, "limit": 1_000}
            page = await self._get(m.PulledScoresOut, path, after=after, **where)
            for score in page.scores:
                yield score
            after = page.next_after
            if after is None:
                return

    async def put_pulled_scores(
        self, source: str, scores: Iterable[r.PulledScoreIn], *, collection: str | None = None
    ) -> m.StoredScoresOut:
        """Note what a pull sent of each score."""
        path = build_path("collections", self._name(collection), "pulls", source)
        return await self.send(Call(m.StoredScoresOut, "PUT", path, json={"scores": list(scores)}))

    # Sessions

    async def start_session(
        self, question: str, *, idempotency_key: str | None = None, **options: Unpack[r.SessionIn]
    ) -> m.AcceptedSession:
        """Take a question through rounds; ``session`` has what came of it, ``session_rounds`` each as it comes."""
        body = self._build_question(options, question=question, wait=False)
        call = Call(
            m.AcceptedSession, "POST", "/sessions", json=body, headers=build_idempotency_header(idempotency_key)
        )
        return await self.send(call)

    async def session(
        self, session_id: str | UUID, *, collection: str | None = None, on_behalf_of: Sequence[str] | None = None
    ) -> m.SessionOut:
        """A session with its pool, its rounds, why it stopped and what it cost."""
        params = self._params(collection, on_behalf_of)
        return await self.send(Call(m.SessionOut, "GET", build_path("sessions", session_id), params=params))

    async def sessions(
        self, *, collection: str | None = None, status: str | None = None, on_behalf_of: Sequence[str] | None = None
    ) -> AsyncIterator[m.ListedSessionOut]:
        """The sessions of a collection that one may see, the latest first."""
        before: str | None = None
        while True:
            params = self._params(collection, on_behalf_of) | {"status": status, "before": before}
            page = await self.send(Call(m.SessionsOut, "GET", "/sessions", params=params))
            for one in page.sessions:
                yield one
            before = page.next_before
            if before is None:
                return

    async def session_rounds(
        self,
        session_id: str | UUID,
        *,
        collection: str | None = None,
        after: int = 0,
        on_behalf_of: Sequence[str] | None = None,
    ) -> AsyncIterator[m.RoundOut]:
        """The rounds of a session as they come, those after the number ``after``, until it ends."""
        path, where = build_path("sessions", session_id, "events"), self._params(collection, on_behalf_of)
        headers = {"last-event-id": str(after)}
        async with self._http.stream("GET", path, params=where, headers=headers) as response:
            if response.is_error:
                await response.aread()
                raise problem(response)
            kind = ""
            async for line in response.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "data" and kind == "round":
                    yield decode_part(m.RoundOut, value)

    async def more_rounds(self, session_id: str | UUID, **wanted: Unpack[r.RoundIn]) -> m.AcceptedSession:
        """One more round of a session that stopped, with a sub-question or evidence of one's own, or as planned."""
        path = build_path("sessions", session_id, "rounds")
        return await self.send(Call(m.AcceptedSession, "POST", path, json=self._build_question(wanted, wait=False)))

    async def cancel_session(
        self, session_id: str | UUID, *, collection: str | None = None, on_behalf_of: Sequence[str] | None = None
    ) -> m.SessionOut:
        """Have a session end; what its rounds found stays."""
        where = self._params(collection, on_behalf_of)
        return await self.send(Call(m.SessionOut, "DELETE", build_path("sessions", session_id), params=where))

    # Judging

    async def feedback(
        self,
        query_id: str | UUID,
        *,
        idempotency_key: str | None = None,
        **verdict: Unpack[r.FeedbackIn],
    ) -> m.FeedbackOut:
        """Say what of an answer helped."""
        body = self._build_question(verdict, query_id=str(query_id))
        return await self.send(
            Call(m.FeedbackOut, "POST", "/feedback", json=body, headers=build_idempotency_header(idempotency_key))
        )

    async def session_feedback(
        self,
        session_id: str | UUID,
        *,
        idempotency_key: str | None = None,
        **verdict: Unpack[r.SessionFeedbackIn],
    ) -> m.SessionFeedbackOut:
        """Say what of a session helped: it reaches the queries of its rounds."""
        body, header = self._build_question(verdict), build_idempotency_header(idempotency_key)
        path = build_path("sessions", session_id, "feedback")
        return await self.send(Call(m.SessionFeedbackOut, "POST", path, json=body, headers=header))

    async def thumb(
        self,
        answer: Judged,
        up: bool | None = True,
        *,
        cited: Iterable[Cited] = (),
        reason: str | None = None,
        judge: str | None = None,
        on_behalf_of: Sequence[str] | None = None,
        collection: str | None = None,
        wait: bool = False,
        idempotency_key: str | None = None,
    ) -> m.FeedbackOut:
        """Rate an answer. A rating replaces the judge's earlier one of the same answer.

        Args:
            answer: what ``query``, ``answer`` or ``episode`` gave, or the id of the query.
            up: True or False for a thumb up or down, None to take the rating back.
            cited: passages and sentences that the answer used, as answers give them; or a passage's id as text and
                a sentence's as a number. Up: all of it is supported.
            reason: for a thumb down ``wrong_answer``, ``missing``, ``irrelevant`` or ``outdated``, or any text.
            judge: who rates; by default the access key's judge.
            on_behalf_of: for whom the answer was asked, if for somebody; the rating is your own all the same.
            wait: apply the rating before answering.
        """
        body = build_rating(
            answer, up, cited, reason, judge, self.on_behalf_of if on_behalf_of is None else on_behalf_of, wait
        )
        body["collection"] = self._name(collection or getattr(answer, "collection", None))
        return await self.send(
            Call(m.FeedbackOut, "POST", "/feedback", json=body, headers=build_idempotency_header(idempotency_key))
        )

    async def verdict(self, feedback_id: int, *, collection: str | None = None) -> m.FeedbackDetail:
        """A verdict and what it changed."""
        path = build_path("feedback", feedback_id)
        return await self._get(m.FeedbackDetail, path, collection=self._name(collection))

    async def verdicts(
        self, *, collection: str | None = None, status: str | None = None, query_id: str | UUID | None = None
    ) -> AsyncIterator[m.ListedFeedbackOut]:
        """All verdicts of a collection, in order of acceptance; with ``query_id`` those on that answer."""
        after: int | None = None
        while True:
            page = await self._get(
                m.FeedbackPage,
                "/feedback",
                collection=self._name(collection),
                status=status,
                query_id=query_id,
                after=after,
            )
            for event in page.feedback:
                yield event
            after = page.next_after
            if after is None:
                return

    async def revoke(self, feedback_id: int, *, collection: str | None = None) -> m.FeedbackDetail:
        """Take a verdict back: what is learned is then as if it had never come."""
        return await self.send(
            Call(
                m.FeedbackDetail,
                "DELETE",
                build_path("feedback", feedback_id),
                params={"collection": self._name(collection)},
            )
        )

    async def revoke_many(
        self, *, idempotency_key: str | None = None, **which: Unpack[r.RevokeIn]
    ) -> m.AcceptedJob:
        """Take back all verdicts of a judge, of a span of time, or all."""
        return await self._job("/feedback/revoke", self._body(which), idempotency_key)

    async def retry(self, feedback_id: int, *, collection: str | None = None) -> m.FeedbackOut:
        """Try to apply a parked verdict again."""
        path = build_path("feedback", feedback_id, "retry")
        return await self.send(
            Call(m.FeedbackOut, "POST", path, params={"collection": self._name(collection)}, json={})
        )

    async def retry_many(self, **which: Unpack[r.RetryIn]) -> m.RetryOut:
        """Try to apply parked verdicts again: all, or those of a judge."""
        return await self.send(Call(m.RetryOut, "POST", "/feedback/retry", json=self._body(which)))

    # Passages and jobs

    async def ingest(
        self,
        passages: Iterable[r.PassageIn],
        *,
        collection: str | None = None,
        idempotency_key: str | None = None,
    ) -> m.AcceptedJob:
        """Hand in passages; a job makes them searchable, see ``wait``. All of them are held in memory."""
        return await self.send(
            Call(
                m.AcceptedJob,
                "POST",
                "/passages",
                params={"collection": self._name(collection)},
                content=lines(passages),
                headers=build_idempotency_header(idempotency_key) | {"content-type": "application/x-ndjson"},
            )
        )

    async def ingest_document(
        self,
        name: str,
        content: bytes,
        *,
        size: int | None = None,
        overlap: int | None = None,
        collection: str | None = None,
        idempotency_key: str | None = None,
    ) -> m.AcceptedDocument:
        """Hand in a file, such as a PDF or a Word document; the service converts it into passages, see ``wait``.

        ``name`` says by its ending how the content is read, and passages cite it.
        """
        where = {"name": name, "size": size, "overlap": overlap, "collection": self._name(collection)}
        return await self.send(
            Call(
                m.AcceptedDocument,
                "POST",
                "/documents",
                params=where,
                content=content,
                headers=build_idempotency_header(idempotency_key) | {"content-type": "application/octet-stream"},
            )
        )

    async def wait(
        self,
        job: m.AcceptedJob | m.AcceptedDocument,
        *,
        poll_seconds: float = 0.5,
        timeout_seconds: float | None = None,
    ) -> m.JobDetail:
        """The job once it is finished.

        Raises:
            JobFailedError: it failed or was cancelled.
            RejectedLinesError: it ended, but lines were refused; the others are kept.
            TimeoutError: it is not finished after ``timeout_seconds``.
        """
        began = time.monotonic()
        while True:
            state = await self.job(job.job_id, collection=job.collection)
            if state.status in FINISHED:
                if state.status != "succeeded":
                    raise JobFailedError(state)
                if state.rejected:
                    raise RejectedLinesError(state)
                return state
            if timeout_seconds is not None and time.monotonic() - began > timeout_seconds:
                raise TimeoutError(f"job {job.job_id} is {state.status} after {timeout_seconds:g} s")
            await asyncio.sleep(poll_seconds)

    async def job(self, job_id: str | UUID, *, collection: str | None = None) -> m.JobDetail:
        """A job as it stands."""
        return await self._get(m.JobDetail, build_path("jobs", job_id), collection=self._name(collection))

    async def jobs(self, *, collection: str | None = None) -> m.JobsOut:
        """The latest jobs of a collection."""
        return await self._get(m.JobsOut, build_path("collections", self._name(collection), "jobs"))

    async def cancel(self, job_id: str | UUID, *, collection: str | None = None) -> m.JobOut:
        """End a job at its next batch."""
        params = {"collection": self._name(collection)}
        return await self.send(Call(m.JobOut, "POST", build_path("jobs", job_id, "cancel"), params=params))

    async def passage(
        self, passage_id: str, *, collection: str | None = None, on_behalf_of: Sequence[str] | None = None
    ) -> m.PassageOut:
        """A passage by your id, as you see it or as somebody does who is these among the readers."""
        params = self._params(collection, on_behalf_of)
        return await self.send(Call(m.PassageOut, "GET", build_path("passages", passage_id), params=params))

    async def passages(self, *, collection: str | None = None) -> AsyncIterator[m.ListedPassageOut]:
        """All passages of a collection, in the order of their ids."""
        path = build_path("collections", self._name(collection), "passages")
        after: str | None = None
        while True:
            page = await self._get(m.PassagesOut, path, after=after)
            for passage in page.passages:
                yield passage
            after = page.next_after
            if after is None:
                return

    async def count_passages(
        self, *, collection: str | None = None, **what: Unpack[r.PassageCountIn]
    ) -> m.PassageCountOut:
        """Count the passages that you see, by a filter and by the values of a metadata field."""
        path = f"{build_path('collections', self._name(collection), 'passages')}:count"
        return await self.send(Call(m.PassageCountOut, "POST", path, json=self._name_person() | dict(what)))

    async def passage_key(self, passage_id: str, *, collection: str | None = None) -> m.KeyOut:
        """Show the key of a passage, and what verdicts made of it."""
        path = build_path("passages", passage_id, "key")
        return await self._get(m.KeyOut, path, collection=self._name(collection))

    async def delete_passage(self, passage_id: str, *, collection: str | None = None) -> None:
        """Remove a passage, its text and its vectors."""
        params = {"collection": self._name(collection)}
        await self.send(Call(type(None), "DELETE", build_path("passages", passage_id), params=params))

    async def set_readers(
        self, passage_id: str, readers: Sequence[str] | None, *, collection: str | None = None
    ) -> m.ReadersOut:
        """Let these read a passage, such as ``user:ana`` and ``group:hr``; None: everyone."""
        path, params = build_path("passages", passage_id), {"collection": self._name(collection)}
        body = {"readers": None if readers is None else list(readers)}
        return await self.send(Call(m.ReadersOut, "PATCH", path, params=params, json=body))

    async def documents(self, *, collection: str | None = None, prefix: str = "") -> AsyncIterator[m.DocumentOut]:
        """All documents of a collection whose source begins with ``prefix``, in the order of their sources."""
        after: str | None = None
        while True:
            page = await self._get(
                m.DocumentsOut,
                "/documents",
                collection=self._name(collection),
                prefix=prefix,
                after=after,
                limit=1_000,
            )
            for document in page.documents:
                yield document
            after = page.next_after
            if after is None:
                return

    async def compare_documents(
        self, *, collection: str | None = None, **manifest: Unpack[r.ManifestIn]
    ) -> m.StepsOut:
        """List what to upload, move, change and delete, so that a folder's documents are in step with it."""
        params = {"collection": self._name(collection)}
        return await self.send(Call(m.StepsOut, "POST", "/documents:compare", params=params, json=dict(manifest)))

    async def change_document(
        self, document: str, *, collection: str | None = None, **changes: Unpack[r.DocumentChangeIn]
    ) -> m.ChangedDocument:
        """Change the source, the folder or the readers of a document; readers None: everyone."""
        path, params = build_path("documents", document), {"collection": self._name(collection)}
        return await self.send(Call(m.ChangedDocument, "PATCH", path, params=params, json=dict(changes)))

    async def delete_document(self, document: str, *, collection: str | None = None) -> None:
        """Remove a document with its passages."""
        params = {"collection": self._name(collection)}
        await self.send(Call(type(None), "DELETE", build_path("documents", document), params=params))

    async def explain_readers(
        self, passage_id: str, on_behalf_of: Sequence[str], *, collection: str | None = None
    ) -> m.ReaderExplanationOut:
        """Why somebody who is these among the readers sees a passage, or does not."""
        path = build_path("collections", self._name(collection), "readers")
        params = {"passage_id": passage_id, "as": list(on_behalf_of) or [""]}
        return await self.send(Call(m.ReaderExplanationOut, "GET", path, params=params))

    async def memory(
        self, sentence_id: int, *, collection: str | None = None, query: str | None = None
    ) -> m.SentenceMemoryOut:
        """Show the memory of a sentence, and its effect on a question if one is given."""
        path = build_path("sentences", sentence_id, "memory")
        return await self._get(m.SentenceMemoryOut, path, collection=self._name(collection), query=query)

    async def learned(self, name: str | None = None, *, until: str | None = None, limit: int = 100) -> m.LearnedOut:
        """Summarise the learning of a collection: certainty of its memories, and the latest moves."""
        return await self._get(
            m.LearnedOut, build_path("collections", self._name(name), "learned"), until=until, limit=limit
        )

    async def gaps(self, name: str | None = None, *, days: int = 30, limit: int = 50) -> m.GapsOut:
        """Needs that a collection did not meet in the last days, by the questions that were asked of it."""
        path = build_path("collections", self._name(name), "gaps")
        return await self._get(m.GapsOut, path, days=days, limit=limit)

    async def without(self, feedback_id: int, *, collection: str | None = None) -> m.PreviewOut:
        """Preview the revocation of a verdict; nothing changes."""
        path = build_path("feedback", feedback_id, "without")
        return await self._get(m.PreviewOut, path, collection=self._name(collection))

    # Collections

    async def collections(self) -> AsyncIterator[m.CollectionOut]:
        """All collections, in name order."""
        after: str | None = None
        while True:
            page = await self._get(m.CollectionsOut, "/collections", after=after)
            for collection in page.collections:
                yield collection
            after = page.next_after
            if after is None:
                return

    async def get_collection(self, name: str | None = None) -> m.CollectionOut:
        """A collection and how it serves."""
        return await self._get(m.CollectionOut, build_path("collections", self._name(name)))

    async def change_collection(
        self, name: str | None = None, **change: Unpack[r.CollectionPatch]
    ) -> m.CollectionOut:
        """Switch how a collection serves: live, in shadow, an experiment of arms, exploration."""
        path = build_path("collections", self._name(name))
        return await self.send(Call(m.CollectionOut, "PATCH", path, json=dict(change)))

    async def delete_collection(self, name: str) -> None:
        """Remove a collection and everything in it."""
        await self.send(Call(type(None), "DELETE", build_path("collections", name)))

    async def lift(
        self,
        name: str | None = None,
        *,
        baseline: str | None = None,
        since: str | None = None,
        before: str | None = None,
    ) -> m.LiftOut:
        """Compare the arms of an experiment by their verdicts."""
        path = build_path("collections", self._name(name), "lift")
        return await self._get(m.LiftOut, path, baseline=baseline, **{"from": since, "to": before})

    async def tuning(self, name: str | None = None, *, before: int | None = None, limit: int = 20) -> m.TuningOut:
        """Show which tuned question encoder serves, and every attempt with its decision."""
        path = build_path("collections", self._name(name), "tuning")
        return await self._get(m.TuningOut, path, before=before, limit=limit)

    async def tune(self, name: str | None = None, *, begin_with: str | None = None) -> m.AcceptedJob:
        """Tune the question encoder by the verdicts so far, or begin with what another collection learned.

        It serves if held-out verdicts accept it.
        """
        path = build_path("collections", self._name(name), "tune")
        return await self.send(Call(m.AcceptedJob, "POST", path, params={"begin_with": begin_with}))

    async def change_tuning(self, name: str | None = None, **change: Unpack[r.TuningIn]) -> m.TuningOut:
        """Switch the tuning of a collection, or have another generation serve."""
        path = build_path("collections", self._name(name), "tuning")
        return await self.send(Call(m.TuningOut, "PUT", path, json=dict(change)))

    async def judges(self, name: str | None = None) -> m.JudgesOut:
        """List the judges, with their verdicts and weights."""
        return await self._get(m.JudgesOut, build_path("collections", self._name(name), "judges"))

    async def set_judge(
        self, judge: str, *, collection: str | None = None, **noise: Unpack[r.JudgeIn]
    ) -> m.JudgeOut:
        """Say how far a judge is believed."""
        path = build_path("collections", self._name(collection), "judges", judge)
        return await self.send(Call(m.JudgeOut, "PUT", path, json=dict(noise)))

    async def erase_query(
        self, query_id: str | UUID, *, collection: str | None = None, anonymise: bool = False
    ) -> m.AcceptedJob:
        """Erase a query with its verdicts and its session."""
        return await self._erase(build_path("queries", query_id), anonymise, collection=self._name(collection))

    async def erase_queries(
        self,
        *,
        since: str | None = None,
        before: str | None = None,
        collection: str | None = None,
        anonymise: bool = False,
    ) -> m.AcceptedJob:
        """Erase what was asked and judged in a span of time."""
        span = {"from": since, "to": before}
        return await self._erase("/queries", anonymise, collection=self._name(collection), **span)

    async def erase_judge(
        self, judge: str, *, collection: str | None = None, anonymise: bool = False
    ) -> m.AcceptedJob:
        """Erase all that a judge said, and what it taught unless ``anonymise``."""
        return await self._erase(build_path("collections", self._name(collection), "judges", judge), anonymise)

    async def erase_principal(
        self, principal: str, *, collection: str | None = None, anonymise: bool = False
    ) -> m.AcceptedJob:
        """Erase all that a principal asked, judged and clicked."""
        path = build_path("collections", self._name(collection), "principals", principal)
        return await self._erase(path, anonymise)

    async def erasures(self, name: str | None = None) -> m.ErasuresOut:
        """List receipts of erasures: what was removed, and which backups still have it."""
        return await self._get(m.ErasuresOut, build_path("collections", self._name(name), "erasures"))

    async def _erase(self, path: str, anonymise: bool, **where: str | None) -> m.AcceptedJob:
        params = where | {"anonymise": "true" if anonymise else None}
        headers = build_idempotency_header(None)
        return await self.send(Call(m.AcceptedJob, "DELETE", path, params=params, headers=headers))

    # Keys and the past

    async def keys(self, name: str | None = None) -> m.KeysOut:
        """Show the serving generation of passage keys."""
        return await self._get(m.KeysOut, build_path("collections", self._name(name), "keys"))

    async def generations(self, name: str | None = None) -> m.GenerationsOut:
        """The latest generations of passage keys."""
        return await self._get(m.GenerationsOut, build_path("collections", self._name(name), "generations"))

    async def evolve(self, name: str | None = None) -> m.EvolveOut:
        """Let keys take in what verdicts validated."""
        path = build_path("collections", self._name(name), "evolve")
        return await self.send(Call(m.EvolveOut, "POST", path, json={}))

    async def rollback(self, generation: int, *, name: str | None = None) -> m.KeysOut:
        """Serve an earlier generation of keys."""
        path = build_path("collections", self._name(name), "rollback")
        return await self.send(Call(m.KeysOut, "POST", path, json={"generation": generation}))

    async def rekey(
        self, *, collection: str | None = None, idempotency_key: str | None = None, **how: Unpack[r.RekeyIn]
    ) -> m.AcceptedJob:
        """Make all base keys anew, of other parts of the passages."""
        return await self._job(
            build_path("collections", self._name(collection), "rekey"), dict(how), idempotency_key
        )

    async def reembed(
        self, *, collection: str | None = None, idempotency_key: str | None = None, **how: Unpack[r.ReembedIn]
    ) -> m.AcceptedJob:
        """Give a collection the vectors of another encoder of the service; the old ones stay beside them."""
        path = build_path("collections", self._name(collection), "reembed")
        return await self._job(path, dict(how), idempotency_key)

    async def drop_vectors(self, collection: str | None = None) -> m.AcceptedJob:
        """Give up the vectors of encoders that a collection is not of."""
        path = build_path("collections", self._name(collection), "reembed")
        return await self.send(Call(m.AcceptedJob, "DELETE", path, headers=build_idempotency_header(None)))

    async def replay(
        self, *, collection: str | None = None, idempotency_key: str | None = None, **past: Unpack[r.ReplayIn]
    ) -> m.AcceptedJob:
        """Make a collection of what was learned by a moment of the past."""
        path = build_path("collections", self._name(collection), "replay")
        return await self._job(path, dict(past), idempotency_key)

    # Facts

    async def state_facts(
        self, source: str, *, idempotency_key: str | None = None, **said: Unpack[r.FactsIn]
    ) -> m.FactsOut:
        """Have a source state facts, as they are or as a text."""
        body = self._body(said, source=source)
        return await self.send(
            Call(m.FactsOut, "POST", "/facts", json=body, headers=build_idempotency_header(idempotency_key))
        )

    async def revise_facts(self, *, idempotency_key: str | None = None, **said: Unpack[r.ReviseIn]) -> m.FactsOut:
        """Confirm, contradict, supersede or close facts; none is ever deleted by it."""
        call = Call(
            m.FactsOut,
            "POST",
            "/facts/revise",
            json=self._build_question(said),
            headers=build_idempotency_header(idempotency_key),
        )
        return await self.send(call)

    async def search_facts(self, **what: Unpack[r.FactSearchIn]) -> m.FactSearchOut:
        """Facts that a question, entities or a pattern lead to, with their sources."""
        return await self.send(Call(m.FactSearchOut, "POST", "/facts/search", json=self._build_question(what)))

    async def fact(
        self, fact_id: int, *, collection: str | None = None, on_behalf_of: Sequence[str] | None = None
    ) -> m.FactDetail:
        """A fact with its history and causes; ``on_behalf_of``: for whom."""
        return await self._get(m.FactDetail, build_path("facts", fact_id), **self._params(collection, on_behalf_of))

    async def revoke_fact_event(self, event_id: int, *, collection: str | None = None) -> m.EventOut:
        """Take back what was said of facts."""
        where = {"collection": self._name(collection)}
        return await self.send(Call(m.EventOut, "DELETE", build_path("facts", "events", event_id), params=where))

    async def revoke_facts(
        self, *, idempotency_key: str | None = None, **which: Unpack[r.FactRevokeIn]
    ) -> m.FactRevokeOut:
        """Take back what a judge, or all within a span of time, said of facts; or preview that."""
        call = Call(
            m.FactRevokeOut,
            "POST",
            "/facts/revoke",
            json=self._body(which),
            headers=build_idempotency_header(idempotency_key),
        )
        return await self.send(call)

    async def merge_graph(
        self, graph: str, *, idempotency_key: str | None = None, **how: Unpack[r.GraphMergeIn]
    ) -> m.GraphMergeOut:
        """Have the collection's graph of facts say what a graph of its own says."""
        body = self._body(how, graph=graph)
        call = Call(
            m.GraphMergeOut, "POST", "/facts/merge", json=body, headers=build_idempotency_header(idempotency_key)
        )
        return await self.send(call)

    async def align_entities(self, **where: Unpack[r.AlignIn]) -> m.AlignOut:
        """Join names of facts that mean the same, or preview which."""
        return await self.send(Call(m.AlignOut, "POST", "/entities/align", json=self._body(where)))

    async def entity(
        self, entity_id: int, *, collection: str | None = None, on_behalf_of: Sequence[str] | None = None
    ) -> m.FactEntityOut:
        """An entity and the facts around it; ``on_behalf_of``: for whom."""
        path = build_path("entities", entity_id)
        return await self._get(m.FactEntityOut, path, **self._params(collection, on_behalf_of))

    async def merge_entities(
        self,
        entity_id: int,
        entities: Iterable[int],
        *,
        idempotency_key: str | None = None,
        judge: str | None = None,
    ) -> m.FactEntityOut:
        """Say that other entities are this one."""
        path, body = (
            build_path("entities", entity_id, "merge"),
            self._body({}, entities=list(entities), judge=judge),
        )
        return await self.send(
            Call(m.FactEntityOut, "POST", path, json=body, headers=build_idempotency_header(idempotency_key))
        )

    async def split_entity(self, entity_id: int, *, collection: str | None = None) -> m.FactEntityOut:
        """Undo that an entity was merged into another."""
        path, body = build_path("entities", entity_id, "split"), {"collection": self._name(collection)}
        return await self.send(Call(m.FactEntityOut, "POST", path, json=body))

    async def predicates(
        self, *, collection: str | None = None, graph: str | None = None, on_behalf_of: Sequence[str] | None = None
    ) -> m.PredicatesOut:
        """Predicates, and which of them have one object at a time; ``on_behalf_of``: for whom."""
        return await self._get(
            m.PredicatesOut, "/predicates", graph=graph, **self._params(collection, on_behalf_of)
        )

    async def set_predicate(self, predicate: str, **what: Unpack[r.PredicateIn]) -> m.PredicateOut:
        """Declare whether a predicate has one object at a time."""
        body = self._body(what, predicate=predicate)
        return await self.send(Call(m.PredicateOut, "PUT", "/predicates", json=body))

    async def count_predicates(self, **what: Unpack[r.CountIn]) -> m.PredicatesOut:
        """Learn from the facts which predicates have one object at a time."""
        return await self.send(Call(m.PredicatesOut, "POST", "/predicates/count", json=self._body(what)))

    # Access

    async def whoami(self) -> m.WhoOut:
        """Show the owner and the scopes of the access key."""
        return await self._get(m.WhoOut, "/access/me")

    async def quotas(self) -> m.QuotasOut:
        """Show the tenant's quotas and their use."""
        return await self._get(m.QuotasOut, "/access/quotas")

    async def access_keys(self) -> AsyncIterator[m.AccessKeyOut]:
        """All access keys of the tenant, in the order in which they were made."""
        after: int | None = None
        while True:
            page = await self._get(m.AccessKeysOut, "/access/keys", after=after)
            for key in page.keys:
                yield key
            after = page.next_after
            if after is None:
                return

    async def make_access_key(self, **wanted: Unpack[r.AccessKeyIn]) -> m.IssuedAccessKey:
        """A new access key; this answer is the only one that shows it."""
        return await self.send(Call(m.IssuedAccessKey, "POST", "/access/keys", json=dict(wanted)))

    async def rotate_access_key(self, key_id: int, **how: Unpack[r.RotateIn]) -> m.IssuedAccessKey:
        """An access key that follows another one, which counts a while longer."""
        path = build_path("access", "keys", key_id, "rotate")
        return await self.send(Call(m.IssuedAccessKey, "POST", path, json=dict(how)))

    async def revoke_access_key(self, key_id: int) -> m.AccessKeyOut:
        """Have an access key count no more."""
        return await self.send(Call(m.AccessKeyOut, "DELETE", build_path("access", "keys", key_id)))

    async def remove_tenant(self, confirm: str) -> m.TenantRemoval:
        """Remove the key's own tenant, called ``confirm``, with all that it has; there is no way back."""
        return await self.send(Call(m.TenantRemoval, "DELETE", "/access/tenant", params={"confirm": confirm}))

    async def audit(self) -> AsyncIterator[m.AuditEntryOut]:
        """Administrative acts of the tenant, the latest first: who changed, revoked or removed what."""
        before: int | None = None
        while True:
            page = await self._get(m.AuditLogOut, "/audit", before=before)
            for entry in page.entries:
                yield entry
            before = page.next_before
            if before is None:
                return

    # The service

    async def health(self) -> m.Health:
        """Whether the process lives."""
        return await self._get(m.Health, "/healthz")

    async def ready(self) -> m.ReadinessOut:
        """Whether the service can work, and what of it is away."""
        return await self._get(m.ReadinessOut, "/readyz")

    def _name(self, collection: str | None) -> str:
        return self.collection if collection is None else collection

    def _body(self, options: Any, **named: Any) -> dict[str, Any]:
        return {"collection": self.collection} | dict(options) | named

    def _name_person(self) -> dict[str, Any]:
        return {} if self.on_behalf_of is None else {"as": self.on_behalf_of}

    def _build_question(self, options: Any, **named: Any) -> dict[str, Any]:
        """Build a body that may say whom it is for; options say otherwise."""
        return self._name_person() | self._body(options, **named)

    def _params(self, collection: str | None, on_behalf_of: Sequence[str] | None) -> dict[str, Any]:
        """Parameters of a request for somebody who is these among the readers; None: for whom the client asks."""
        on_behalf_of = self.on_behalf_of if on_behalf_of is None else on_behalf_of
        return {"collection": self._name(collection)} | (
            {} if on_behalf_of is None else {"as": list(on_behalf_of) or [""]}
        )

    async def _get(self, returns: type[T], path: str, **params: Any) -> T:
        return await self.send(Call(returns, "GET", path, params=params))

    async def _job(self, path: str, body: dict[str, Any], key: str | None) -> m.AcceptedJob:
        return await self.send(Call(m.AcceptedJob, "POST", path, json=body, headers=build_idempotency_header(key)))

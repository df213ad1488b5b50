"""What a test reads and writes behind the services: rows of one collection, episodes and verdicts."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from numpy.typing import NDArray

from engram.composition.container import Application
from engram.core.ranking import sufficiency
from engram.core.ranking.weight_beliefs import PriorIdentity
from engram.providers.ranking_prior import RankingPrior
from engram.services.question.query import create_query_id
from engram.services.verdict.receipt import Receipt
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.corpus import collections
from engram.storage.corpus import passages as passage_rows
from engram.storage.database import Database
from engram.storage.learning import learned_weights as weights
from engram.storage.learning.learned_weights import LearnedWeights
from engram.storage.question.episodes import NAME_DIGEST, TEXT_DIGEST, EpisodeRow, digest_text
from tests.support.threads import ThreadPoolExecutor

GRAPH = ("passage", "sentence", "entity", "entity_sentence", "time_expression")
LEXICAL = ("lexical_term", "lexical_posting", "lexical_passage")
LEARNED = ("sentence_memory", "question_support")
WEIGHTS = ("learned_weights", "weight_audit")
# What differs between two runs that do the same: when, and the ids drawn from sequences.
PATIENCE_SECONDS = 30.0
INCIDENTAL = ("created_at", "updated_at", "text_since", "question_id")


def collection_id(application: Application, name: str) -> int:
    with application.database.read() as reader:
        return collections.find(reader, name).id


def names(application: Application) -> set[str]:
    """Names of all collections."""
    with application.database.read() as reader:
        return {row.name for row in reader.rows("SELECT name FROM collection")}


def rows(application: Application, name: str, table: str, without: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The collection's rows of ``table`` as JSON shows them, vectors to the last bit, in a fixed order."""
    with application.database.read() as reader:
        found = reader.rows(
            f"""
            SELECT (to_jsonb(t) - %(without)s::text[])::text AS row FROM {table} t
            JOIN collection c ON c.id = t.collection_id WHERE c.name = %(name)s ORDER BY 1
            """,
            {"name": name, "without": list(without)},
        )
    return [json.loads(row[0]) for row in found]


def snapshot(
    application: Application,
    name: str,
    tables: Sequence[str] = (*GRAPH, *LEXICAL, *LEARNED),
    without: Sequence[str] = (),
) -> dict[str, list[dict[str, Any]]]:
    """Several tables at once."""
    return {table: rows(application, name, table, without) for table in tables}


def list_learned(application: Application, name: str) -> dict[str, list[dict[str, Any]]]:
    """Everything verdicts left in the collection, without what is incidental; supports name their question."""
    state = snapshot(application, name, ("sentence_memory", "memory_audit", *WEIGHTS), INCIDENTAL)
    with application.database.read() as reader:
        state["question_support"] = [
            dict(row._asdict())
            for row in reader.rows(
                """
                SELECT q.text, known.sentence_id, known.support, known.perplexity, known.acceptance,
                       known.update_count
                FROM question_support known
                JOIN question q ON q.collection_id = known.collection_id AND q.id = known.question_id
                JOIN collection c ON c.id = known.collection_id
                WHERE c.name = %(name)s ORDER BY q.text_hash, known.sentence_id
                """,
                {"name": name},
            )
        ]
    return state


def counts(application: Application, name: str) -> tuple[int, int, int]:
    """What the collection says it holds: passages, sentences, entities."""
    found = application.auth.access.scope(name).collection
    return found.passage_count, found.sentence_count, found.entity_count


def true_counts(application: Application, name: str) -> tuple[int, int, int]:
    """What it does hold."""
    passages, sentences, entities = (len(rows(application, name, t)) for t in ("passage", "sentence", "entity"))
    return passages, sentences, entities


def sentences(application: Application, name: str, passage: str) -> dict[str, int]:
    """Text -> id of a passage's sentences, in reading order."""
    _, stored = application.corpus.ingest.passage(application.auth.access.scope(name), passage)
    return {sentence.text: sentence.id for sentence in stored}


def passages(application: Application, name: str) -> dict[str, int]:
    """External id -> id of every passage, in the order in which they came."""
    found = sorted(rows(application, name, "passage"), key=lambda row: row["id"])
    return {row["external_id"]: row["id"] for row in found}


def prior_of(application: Application, name: str) -> RankingPrior:
    """The prior that the collection starts from."""
    with application.database.read() as reader:
        return application.models.priors.select_kind(collections.find(reader, name).corpus_kind)


def load_weights(
    application: Application, name: str, prior: str | None = None, model: str = "sufficiency"
) -> LearnedWeights | None:
    """What the collection learned of a model from a prior, of sufficiency from the application's own by default."""
    own = prior_of(application, name).of_sufficiency
    with application.database.read() as reader:
        target = collections.find(reader, name).id
        return weights.find(reader, target, own if prior is None else PriorIdentity(model, prior))


def weight_rows(
    application: Application, name: str, model: str = "sufficiency", table: str = "weight_audit"
) -> list[dict[str, Any]]:
    """The rows of one model."""
    return [row for row in rows(application, name, table) if row["model"] == model]


def draw_answer(seed: int = 0) -> NDArray[np.float32]:
    """Features of an answer, as an episode keeps them."""
    draw = np.random.default_rng(seed).normal(size=len(sufficiency.ANSWER_FEATURES))
    draw[0] = 1.0
    return draw.astype(np.float32)


def list_sentence_ids(application: Application, name: str) -> list[int]:
    return sorted(row["id"] for row in rows(application, name, "sentence"))


def add_episode(application: Application, name: str, question: str, *of: Any, **more: Any) -> UUID:
    """A kept episode, see ``episode``."""
    row = episode(application, question, *of, **more)
    target = collection_id(application, name)
    with application.database.read() as reader:
        shown = passage_rows.load_by_id(reader, target, row.shown)
    for passage, hit in zip(row.shown, row.answer["passages"], strict=True):
        hit[NAME_DIGEST] = digest_text(shown[passage].external_id)
        hit[TEXT_DIGEST] = digest_text(shown[passage].text)
    application.answers.question.store_episode(target, row)
    return row.id


def episode(
    application: Application,
    question: str,
    activated: Sequence[int],
    time_constraint: str | None = None,
    ranked: Sequence[int] | None = None,
    shown: Sequence[int] = (),
    answer_features: NDArray[np.float32] | None = None,
    sufficiency: float | None = None,
    principal: str = "local",
) -> EpisodeRow:
    """An episode as retrieval would have left it, with exactly these sentences activated and passages shown.

    Without ``ranked`` passages a verdict says nothing of what is enough.
    """
    vectors = application.models.embedder.embed([question, *([time_constraint] if time_constraint else [])])
    return EpisodeRow(
        id=create_query_id(),
        question=question,
        embedding=vectors[0],
        time_constraint=time_constraint,
        time_embedding=vectors[1] if time_constraint else None,
        memory="read",
        profile="default",
        strategy="graph",
        filter=None,
        activated=list(activated),
        shown=list(shown),
        hops=1,
        total_ms=0.0,
        answer={
            "sufficiency": len(question) % 10 / 10 if sufficiency is None else sufficiency,
            "passages": [{"score": 1.0, "sentences": []} for _ in shown],
        },
        trace={"time_constraint": None, "entities": [], "recalled": [], "hops": [], "passages": None},
        principal=principal,
        ranked=None if ranked is None else np.array(ranked, dtype=np.int64),
        answer_features=(
            draw_answer(len(question)) if answer_features is None and ranked is not None else answer_features
        ),
    )


def judge(
    application: Application,
    name: str,
    query_id: UUID,
    supporting: Sequence[int] = (),
    *,
    wait: bool = False,
    key: str | None = None,
    **more: Any,
) -> Receipt:
    """Accept a verdict on sentences given by id; the rejected were looked at with probability ``examined``."""
    examined = more.pop("examined", 1.0)
    named: Mapping[str, Any] = {
        "rejected": tuple(NamedSentence(sentence, examined=examined) for sentence in more.pop("rejected", ())),
        "missed": tuple(NamedSentence(sentence) for sentence in more.pop("missed", ())),
    }
    verdict = Verdict(
        query_id=query_id,
        scope=application.auth.access.scope(name),
        supporting=tuple(NamedSentence(sentence_id=sentence) for sentence in supporting),
        **named,
        **more,
    )
    return application.learning.verdicts.accept(verdict, key or uuid4().hex, wait=wait)


def on_day(application: Application, name: str, event: int, day: str) -> None:
    """Have the event have come on this day."""
    with application.database.write() as writer:
        writer.execute(
            """
            UPDATE feedback_event SET received_at = %(day)s::timestamptz WHERE collection_id = %(c)s AND id = %(id)s
            """,
            {"c": collection_id(application, name), "id": event, "day": f"{day}T12:00:00Z"},
        )


def event_statuses(application: Application, name: str) -> dict[int, str]:
    return {row["id"]: row["status"] for row in rows(application, name, "feedback_event")}


def list_applied_order(application: Application, name: str) -> list[int]:
    """Events in the order in which they were applied."""
    applied = [row for row in rows(application, name, "feedback_event") if row["status"] == "applied"]
    return [row["id"] for row in sorted(applied, key=lambda row: row["applied_sequence"])]


def forget_everything(application: Application, name: str) -> None:
    """Leave of what was learned only the log, all of whose events wait again."""
    target = {"c": collection_id(application, name)}
    with application.database.write() as writer:
        for table in ("sentence_memory", "question_support", "question", "memory_audit", *WEIGHTS):
            writer.execute(f"DELETE FROM {table} WHERE collection_id = %(c)s", target)
        writer.execute(
            """
            UPDATE feedback_event SET status = 'pending', applied_at = NULL, applied_sequence = NULL
            WHERE collection_id = %(c)s
            """,
            target,
        )


def together(*tasks: Callable[[], object]) -> None:
    """Run tasks at once, each in a thread of its own; the first failure of any is raised."""
    start = threading.Barrier(len(tasks))

    def run(task: Callable[[], object]) -> None:
        start.wait()
        task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        for outcome in [pool.submit(run, task) for task in tasks]:
            outcome.result()


def stage_passages(
    application: Application,
    name: str,
    *passages: Mapping[str, Any],
    key: str | None = None,
    documents: Sequence[str] = (),
) -> UUID:
    """A job that waits for a worker; ``documents``: sources of those that the passages are the whole of."""
    reception = application.corpus.ingest.receive(application.auth.access.prepare_opening(name), key)
    bodies = [{"title": None, "metadata": {}, "sentences": None} | dict(passage) for passage in passages]
    for body in bodies:
        reception.digest(body["text"].encode())
    whole = [{"source": source, "missing": False} for source in documents]
    reception.add(list(enumerate(bodies, start=1)), [], whole)
    return reception.finish()


def wait_for_lock(database: Database) -> None:
    """Wait until somebody waits for a lock that another transaction holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not count_waiting_locks(database):
        assert time.monotonic() < deadline, "nobody waits"
        time.sleep(0.01)


def count_waiting_locks(database: Database) -> int:
    """Count the connections that wait for a lock that another transaction holds, on all nodes of a cluster."""
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    on_nodes = "SELECT sum(result::bigint)::bigint FROM run_command_on_all_nodes(%(command)s)"
    with database.read() as reader:
        found: int = reader.scalar(*((on_nodes, {"command": waiting}) if reader.distributed else (waiting,)))
    return found

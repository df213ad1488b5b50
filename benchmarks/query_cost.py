"""What does a query cost in processor time, stage by stage, against the least that any vector search costs?

    python benchmarks/query_cost.py DATASET_DIR [--collection NAME] [--questions N] [--profile P] [--memory M]
        [--readers] [--tuned] [--context] [--also NAME]...

DATASET_DIR is a BEIR folder whose corpus was ingested (`engram ingest -c NAME corpus.jsonl.gz`). Processor time
hardly grows because others use the machine: of this process by its own clock, of Postgres by what the kernel
counts for its backends (`/proc/PID/schedstat`, Linux, an embedded Postgres or one on this machine).

The floor is embedding the question and one exact search of the ten nearest passages over a prepared statement.
Three passes over the questions: all ways in turn without any instrument, which gives the table of costs; then every
statement by the function that sends it; then every stage of this process. The instruments themselves cost a few
tenths of a millisecond, so the parts add up to a little more than the whole.

With ``--readers`` every passage gets a reader, one of ten, and a caller who is all ten asks as well. With
``--tuned`` the collection, which a tuned question encoder serves, is also asked without it, and by "hybrid".

With ``--context`` the same questions also ask for what stands around each hit: the collection has to be of imported
documents, whose passages have numbers. With ``--also`` they are also asked of several collections at once, and the
cost is compared with that of one plan and each collection's search.
"""

import argparse
import inspect
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.services.answers.passage_context import ContextPart
from engram.services.auth.scope import LOCAL
from engram.services.question import candidates, pipeline, plan, ranking, search
from engram.services.question.query import Query, Strategy
from engram.storage.connection_pools import PreparedStatement
from engram.storage.corpus import collections, reader_sets
from query_latency import Floor, measure_interleaved

TOP_K = 10
CHARACTERS = 4_000
"""Of the passages around a hit."""
STORAGE = str(Path(common.__file__).parents[1] / "app" / "engram" / "storage")
STAGES: tuple[tuple[Any, str, str], ...] = (
    (search, "begin", "walk"),
    (search, "advance", "walk"),
    (search, "align_mentions", "align"),
    (candidates, "_find_candidates", "candidates"),
    (candidates, "_compute_base_features", "base ranking"),
    (ranking, "_build_pool", "complementarity"),
    (ranking, "estimate_sufficiency", "sufficiency"),
    (ranking, "_compute_beliefs", "weights"),
    (search, "rank", "rank, the rest"),
    (pipeline, "build_answer", "present"),
    (pipeline, "build_trace", "present"),
    (pipeline, "build_episode", "episode"),
)
"""Module, function, and the stage that its processor time counts to, less that of stages inside it."""


READERS = tuple(f"group:{number}" for number in range(10))


def give_readers(app: Application, collection: str) -> None:
    """Give every passage one of ``READERS``."""
    target = app.auth.access.scope(collection).collection.id
    with app.database.write_long() as writer:
        collections.lock_graph(writer, target)
        made = reader_sets.make(writer, target, [(one,) for one in READERS])
        ids = [row.id for row in writer.rows("SELECT id FROM passage WHERE collection_id = %(c)s", {"c": target})]
        for at, one in enumerate(READERS):
            reader_sets.assign(writer, target, made[(one,)], ids[at :: len(READERS)])


class Backends:
    """Processor time of the server's processes that serve clients of this database."""

    def __init__(self, app: Application) -> None:
        self._app = app

    def milliseconds(self) -> float:
        """Of all of them so far."""
        return sum(map(read_processor_milliseconds, self.list_idle()))

    def list_idle(self) -> list[int]:
        """Ids of those that do nothing for others, such as an index."""
        with self._app.database.read() as reader:
            rows = reader.rows(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
                "AND datname = current_database() AND (state <> 'active' OR pid = pg_backend_pid())"
            )
        return [row.pid for row in rows]


def read_processor_milliseconds(pid: int) -> float:
    """Milliseconds that a process ran."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def costs(
    ways: dict[str, Callable[[str], object]], questions: Sequence[str], backends: Backends
) -> dict[str, np.ndarray]:
    """Print and return milliseconds of a question in each way: this process, Postgres, wall. Medians of tens."""
    blocks: dict[str, list[np.ndarray]] = defaultdict(list)
    size = 10
    for start in range(0, len(questions), size):
        for name, way in ways.items():  # in turns, so that a warmer processor favours none
            before = np.array([time.process_time() * 1000, backends.milliseconds(), time.perf_counter() * 1000])
            for question in questions[start : start + size]:
                way(question)
            after = np.array([time.process_time() * 1000, backends.milliseconds(), time.perf_counter() * 1000])
            blocks[name].append((after - before) / len(questions[start : start + size]))
    medians = {name: np.median(spent, axis=0) for name, spent in blocks.items()}
    floor = medians["floor"][:2].sum()
    common.table(
        ["way", "process ms", "Postgres ms", "both ms", "both over floor", "wall ms"],
        ([name, *spent[:2], spent[:2].sum(), spent[:2].sum() / floor, spent[2]] for name, spent in medians.items()),
    )
    return medians


def statements(way: Callable[[str], object], questions: Sequence[str]) -> dict[str, float]:
    """Print which functions send statements, how many, and what Postgres spends on each; the latter by function."""
    sent: Counter[str] = Counter()
    backend: dict[str, float] = defaultdict(float)

    execute = PreparedStatement.execute

    def measure_statement(cursor: PreparedStatement, statement: bytes, values: Sequence[Any]) -> Any:
        pid = cursor.connection.info.backend_pid
        was = read_processor_milliseconds(pid)
        answer = execute(cursor, statement, values)
        function = _sender()
        sent[function] += 1
        time.sleep(0.0002)  # until the backend sleeps, and has been charged
        backend[function] += read_processor_milliseconds(pid) - was
        return answer

    with patch.object(PreparedStatement, "execute", measure_statement):
        for question in questions:
            way(question)
    dearest = sorted(sent, key=lambda name: -backend[name])
    rows = [[name, sent[name] / len(questions), backend[name] / len(questions)] for name in dearest]
    rows.append(["all", sum(sent.values()) / len(questions), sum(backend.values()) / len(questions)])
    common.table(["statements of", "a query", "Postgres ms a query"], rows)
    return {name: spent / len(questions) for name, spent in backend.items()}


def _sender() -> str:
    """The storage function on the stack that sent a statement."""
    found, frame = "?", inspect.currentframe()
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
        path = frame.f_code.co_filename
        if path.startswith(STORAGE) and not path.endswith("database.py"):
            return f"{Path(path).stem}.{frame.f_code.co_name}"
    return found


class Stages:
    """Processor time of this thread by stage; what a stage calls counts to the innermost one."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def enter(self, stage: str) -> Iterator[None]:
        """The block is of this stage."""
        self._turn()
        self._running.append(stage)
        try:
            yield
        finally:
            self._turn()
            self._running.pop()

    def _turn(self) -> None:
        now = time.process_time()
        if self._running:
            self.spent[self._running[-1]] += now - self._since
        self._since = now

    def wrap(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """The function, whose time counts to the stage."""

        def run(*arguments: Any, **keywords: Any) -> Any:
            with self.enter(stage):
                return function(*arguments, **keywords)

        return run


def stages(app: Application, way: Callable[[str], object], questions: Sequence[str]) -> None:
    """Print what this process spends where."""
    clock = Stages()
    with ExitStack() as patches:
        for module, name, stage in STAGES:
            patches.enter_context(patch.object(module, name, clock.wrap(getattr(module, name), stage)))
        for owner, name, stage in (
            (type(app.models.embedder), "embed", "embed"),
            (plan.QueryPlanner, "plan", "analyse"),
            (pipeline.QuestionPipeline, "store_episode", "store the episode"),
            (type(app.auth.access), "scope", "scope"),
        ):
            patches.enter_context(patch.object(owner, name, clock.wrap(getattr(owner, name), stage)))
        for question in questions:
            with clock.enter("else"):
                way(question)
    rows: list[list[object]] = [
        [stage, 1000 * seconds / len(questions)]
        for stage, seconds in sorted(clock.spent.items(), key=lambda row: -row[1])
    ]
    rows.append(["all", 1000 * sum(clock.spent.values()) / len(questions)])
    common.table(["stage", "process ms a query"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Processor time of a query, stage by stage.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--collection", help="Default: the folder's name.")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--profile", default="default")
    parser.add_argument("--memory", default="read")
    parser.add_argument("--readers", action="store_true", help="Also ask as a caller who is bound to readers.")
    parser.add_argument("--tuned", action="store_true", help="Also ask without the tuned question encoder.")
    parser.add_argument("--context", action="store_true", help="Also ask for what stands around each hit.")
    parser.add_argument("--also", action="append", default=[], help="Another collection to ask at once.")
    parser.add_argument("--warm", type=int, default=20, help="Questions asked before anything is measured.")
    arguments = parser.parse_args()
    collection = arguments.collection or arguments.dataset.resolve().name
    asked = common.questions(arguments.dataset, arguments.questions)

    with common.application() as (app, addresses), ExitStack() as opened:
        size = app.auth.access.scope(collection).collection
        print(
            f"{collection}: {size.passage_count} passages, {size.sentence_count} sentences; {len(asked)} questions"
        )
        floor = Floor(app, addresses.database_url, collection, exact=True)

        options = {"top_k": TOP_K, "memory": arguments.memory, "profile": arguments.profile}

        def build_query(question: str, name: str = collection, parts: tuple[object, ...] = ()) -> Query:
            return Query(text=question, scope=app.auth.access.scope(name), parts=parts, **options)

        def service(question: str, asked_of: Application = app, strategy: Strategy = "graph") -> object:
            return common.ask(asked_of, collection, question, strategy=strategy, **options)

        def ask_with(context: ContextPart) -> Callable[[str], object]:
            def ask(question: str) -> object:
                query = build_query(question, parts=(context,))
                return app.answers.context.add(query, app.answers.question.answer(query))

            return ask

        def ask_one(name: str, question: str) -> object:
            return common.ask(app, name, question, **options)

        def plan_one(name: str, question: str) -> object:
            return app.answers.question.plan(build_query(question, name))

        def ask_jointly(question: str) -> object:
            return app.answers.joint.serve([build_query(question, name) for name in together])

        together = [collection, *arguments.also]

        # Connections of its own: one that changes its role plans its statements anew.
        bound = opened.enter_context(closing(Application(app.settings, addresses)))
        bound.models.embedder, bound.models.language = app.models.embedder, app.models.language

        def service_of_reader(question: str) -> object:
            with tenancy.restrict_to(LOCAL.tenant, tenancy.ReaderNames(READERS)):
                return service(question, bound)

        ways: dict[str, Callable[[str], object]] = {"floor": floor, "query": service}
        if arguments.readers:
            give_readers(app, collection)
            ways["query of a reader"] = service_of_reader
        if arguments.tuned:
            wings = ",".join(wing.name for wing in app.installed_wings if wing.name != "tuning")
            without = app.settings.model_copy(update={"wings": wings})
            untuned = opened.enter_context(closing(Application(without, addresses)))
            untuned.models.embedder, untuned.models.language = app.models.embedder, app.models.language
            ways["query, not tuned"] = partial(service, asked_of=untuned)
            ways["hybrid"] = partial(service, strategy="hybrid")
            ways["hybrid, not tuned"] = partial(service, asked_of=untuned, strategy="hybrid")
        if arguments.context:
            ways["query with passages around"] = ask_with(ContextPart(1, 1, section=False, characters=CHARACTERS))
            ways["query with sections"] = ask_with(ContextPart(0, 0, section=True, characters=CHARACTERS))
        if arguments.also:
            for name in together:
                ways[f"query of {name}"] = partial(ask_one, name)
                ways[f"plan of {name}"] = partial(plan_one, name)
            ways["query of all at once"] = ask_jointly
        measure_interleaved(ways, asked[: arguments.warm], 0)  # caches and prepared statements
        spent = costs(ways, asked, Backends(app))
        if arguments.also:
            searches = sum(spent[f"query of {name}"] - spent[f"plan of {name}"] for name in together)
            parts = spent[f"plan of {collection}"] + searches
            ratio = spent["query of all at once"][:2].sum() / parts[:2].sum()
            print(f"All at once cost {ratio:.2f} of one plan and the searches.")
        print()
        way = service_of_reader if arguments.readers else service
        statements(way, asked)
        print()
        stages(app, way, asked)


if __name__ == "__main__":
    main()

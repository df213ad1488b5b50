"""The sample corpus as a data set, and a way to run a protocol on a part of it."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from engram import sample
from engram.providers.llm import Llm
from engram.runtime.container import Application, Servers
from engram_evaluation.commands.evaluate_command import varied
from engram_evaluation.dataset import Dataset, load
from engram_evaluation.evaluation_run import evaluate
from engram_evaluation.learning_variations import Variation
from engram_evaluation.oracle_endpoint import Oracle
from engram_evaluation.oracle_server import ChatServer
from engram_evaluation.run_options import Options
from engram_evaluation.run_report import RunReport
from tests.support.openai_server import OpenAiServer, keyword_handler

Evaluate = Callable[..., RunReport]
FULL = pytest.mark.skipif(os.environ.get("ENGRAM_EVALUATION_FULL") != "1", reason="ENGRAM_EVALUATION_FULL is not 1")
"""What takes long and is for whoever changes what is found."""


@pytest.fixture(scope="session")
def sample_dataset() -> Dataset:
    return load(Path(sample.__path__[0]))


@pytest.fixture(scope="module")
def reasoning(application: Application, addresses: Servers, dataset: Dataset) -> Iterator[Application]:
    """An application with the oracle behind it, which knows the module's ``dataset``."""
    with ExitStack() as stack:
        url = stack.enter_context(ChatServer(Oracle(dataset))).base_url
        settings = application.settings.model_copy(update={"llm_base_url": url})
        other = stack.enter_context(closing(Application(settings, addresses)))
        other.models.embedder, other.models.language = application.embedder, application.language
        yield other


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer(keyword_handler) as running:
        yield running


@pytest.fixture
def answering(
    server: OpenAiServer, application: Application, run_protocol: Evaluate, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Evaluate]:
    """Protocols, with an endpoint behind the application; no part of it that is made meanwhile outlives that."""
    before = set(application.__dict__)
    with closing(Llm(base_url=server.base_url, api_key=None, model="test", max_attempts=1)) as llm:
        monkeypatch.setattr(application.models, "llm", llm)
        yield run_protocol
    for part in application.__dict__.keys() - before:
        del application.__dict__[part]


@pytest.fixture
def run_protocol(
    application: Application, addresses: Servers, sample_dataset: Dataset, tmp_path: Path
) -> Iterator[Evaluate]:
    """Run a protocol on the sample corpus; reports and finished phases go to ``tmp_path``, plots if ``drawn``."""

    def run(
        protocol: Any,
        dataset: Dataset = sample_dataset,
        *,
        weights: Path | None = None,
        drawn: bool = False,
        **options: Any,
    ) -> RunReport:
        services = application if weights is None else started_from(weights)
        console = Console(file=io.StringIO())

        def vary(variation: Variation) -> Application:
            return stack.enter_context(closing(varied(services, addresses, variation)))

        with pytest.MonkeyPatch.context() as patch:
            if not drawn:  # plots take longer than many a protocol on a few questions
                patch.setattr("engram_evaluation.evaluation_run.draw", lambda *_: [])
            return evaluate(services, vary, dataset, Options(protocol=protocol, **options), tmp_path, console)

    with ExitStack() as stack:

        def started_from(weights: Path) -> Application:
            settings = application.settings.model_copy(update={"ranking_prior": weights})
            other = stack.enter_context(closing(Application(settings, addresses)))
            other.models.embedder, other.models.language = application.embedder, application.language
            return other

        yield run

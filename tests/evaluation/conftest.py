"""The sample corpus as a data set, and a way to run a protocol on a part of it."""

import io
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from engram.composition.container import Application, Servers
from engram.providers.llm import Llm
from engram.wings.local import sample
from engram.wings.published.parts import published_of
from engram.wings.published.services.expansion_validation import ExpansionValidation
from engram_evaluation.commands.evaluate_command import build_variation
from engram_evaluation.dataset import Dataset, load
from engram_evaluation.evaluation_run import evaluate
from engram_evaluation.learning_variations import Variation
from engram_evaluation.oracle_endpoint import Oracle
from engram_evaluation.oracle_server import ChatServer
from engram_evaluation.run_options import Options
from engram_evaluation.run_report import RunReport
from tests.support.openai_server import OpenAiServer, keyword_handler

Evaluate = Callable[..., RunReport]
IS_FULL = os.environ.get("ENGRAM_EVALUATION_FULL") == "1"
FULL = pytest.mark.skipif(not IS_FULL, reason="ENGRAM_EVALUATION_FULL is not 1")
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
        other.models.embedder, other.models.language = application.models.embedder, application.models.language
        yield other


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer(keyword_handler) as running:
        yield running


@pytest.fixture
def answering(server: OpenAiServer, run_protocol: Evaluate) -> Iterator[Evaluate]:
    """Protocols on an application that asks ``server``."""
    with closing(Llm(base_url=server.base_url, api_key=None, model="test", max_attempts=1)) as llm:
        yield partial(run_protocol, models={"llm": llm})


@pytest.fixture
def run_protocol(
    application: Application, addresses: Servers, sample_dataset: Dataset, tmp_path: Path
) -> Iterator[Evaluate]:
    """Run a protocol on the sample corpus; reports and finished phases go to ``tmp_path``.

    ``configuration`` and ``models`` are settings and models that differ from those of the shared application, and
    ``validation`` is that of expansions.
    """

    def run(
        protocol: Any,
        dataset: Dataset = sample_dataset,
        *,
        configuration: Mapping[str, Any] | None = None,
        models: Mapping[str, Any] | None = None,
        validation: ExpansionValidation | None = None,
        **options: Any,
    ) -> RunReport:
        services = (
            application
            if configuration is models is validation is None
            else make_application(configuration or {}, models or {})
        )
        if validation is not None:
            published_of(services).expansion_validation = validation
        console = Console(file=io.StringIO())

        def vary(variation: Variation) -> Application:
            return stack.enter_context(closing(build_variation(services, addresses, variation)))

        return evaluate(services, vary, dataset, Options(protocol=protocol, **options), tmp_path, console)

    with ExitStack() as stack:

        def make_application(configuration: Mapping[str, Any], models: Mapping[str, Any]) -> Application:
            """Make an application with these settings and models instead of the shared ones."""
            settings = application.settings.model_copy(update=configuration)
            services = stack.enter_context(closing(Application(settings, addresses)))
            shared = {"embedder": application.models.embedder, "language": application.models.language}
            for name, model in {**shared, **models}.items():
                setattr(services.models, name, model)
            return services

        yield run

"""Programs and configurations of the adapters' pages, run as printed: only the environment names the service."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import httpx
import pytest
from mcp import Client, StdioServerParameters

from engram.composition.container import Application
from tests.support.environment import drop_settings
from tests.support.forks import ROOT

PRINTED_URL = "http://127.0.0.1:8000"
TITAN = "Titan is a moon of Saturn. It has lakes of liquid methane."
PROGRAMS = ("haystack", "langchain", "llamaindex")
CONFIGURATIONS = ("integrations/mcp/README.md", "docs/frontends.md")
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
"""Where an installed command is found."""


def read_blocks(page: str, language: str) -> list[str]:
    """Blocks of a page in this language."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def printed_collections(application: Application) -> None:
    """Collections that the pages name, with a passage."""
    for collection in ("notes", "sample"):
        reception = application.corpus.ingest.receive(application.auth.access.prepare_opening(collection))
        body = {"id": "titan", "title": "Titan", "text": TITAN, "metadata": {}, "sentences": None}
        reception.add([(1, body)], [])
        reception.finish()
    application.jobs.runner.run_ready()


@pytest.mark.usefixtures("printed_collections")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_retriever_starts_and_judges_as_printed(name: str, service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = read_blocks(f"integrations/{name}/README.md", "python")
    assert "url=" not in program
    before = count_verdicts(service)
    monkeypatch.setenv("ENGRAM_URL", service)
    exec(compile(program, f"integrations/{name}/README.md", "exec"), {"__name__": "__main__"})
    assert count_verdicts(service) > before, "its thumb arrived"


def count_verdicts(service: str) -> int:
    """How many verdicts the collection has."""
    answer = httpx.get(f"{service}/feedback", params={"collection": "notes"}, trust_env=False, timeout=60)
    return len(answer.raise_for_status().json()["feedback"])


@pytest.mark.usefixtures("printed_collections")
@pytest.mark.parametrize("page", CONFIGURATIONS)
def test_an_agent_starts_the_server_as_printed(page: str, service: str) -> None:
    configured = [block for block in read_blocks(page, "json") if "mcpServers" in block]
    (server,) = [json.loads(block)["mcpServers"]["engram"] for block in configured]
    assert server["env"] == {"ENGRAM_URL": PRINTED_URL}
    env = drop_settings() | {"PATH": PATH, "ENGRAM_URL": service}
    command = StdioServerParameters(command=server["command"], args=server["args"], env=env)

    async def ask() -> str:
        async with Client(command) as agent:
            answer = await agent.call_tool("ask", {"question": "Which moon has lakes?"})
            return str(answer.content[0].text)

    assert "lakes of liquid methane" in asyncio.run(ask())

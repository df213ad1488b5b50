"""Engram's tools, called as an agent's host calls them."""

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from subprocess import Popen
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from engram_client import AsyncEngram
from engram_mcp import server
from tests.conftest import CURIE
from tests.support.command import NOWHERE
from tests.support.processes import PATIENCE_SECONDS, free_port

Story = Callable[[Client], Awaitable[Any]]
pytestmark = pytest.mark.usefixtures("working")
ENV = {name: value for name, value in os.environ.items() if not name.startswith("ENGRAM_")}


def told(service: str, collection: str, *stories: Story) -> list[Any]:
    """What the stories give, each in a session of its own with one server."""

    async def all_of_them() -> list[Any]:
        async with AsyncEngram(service, collection=collection, retries=0) as engram:
            tools = server(engram)
            given = []
            for story in stories:
                async with Client(tools) as agent:
                    given.append(await story(agent))
            return given

    return asyncio.run(all_of_them())


async def call(agent: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """A tool's answer."""
    result = await agent.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def remember_all(agent: Client) -> None:
    for passage in CURIE:
        await call(agent, "remember", text=passage["text"], title=passage.get("title"), passage_id=passage["id"])


def test_an_agent_remembers_asks_judges_and_asks_again(service: str, collection: str) -> None:
    async def story(agent: Client) -> None:
        await remember_all(agent)
        found = await call(agent, "ask", question="Where was Marie Curie born?", passages=3)
        assert len(found["passages"]) <= 3
        assert 0 <= found["sufficiency"] <= 1
        sentence = found["passages"][0]["sentences"][0]
        said = await call(agent, "judge", query_id=found["query_id"], helped=[sentence["sentence_id"]])
        assert said["status"] == "applied"
        assert said["changed"] > 0
        assert said["largest_gain"] > 0
        because = await call(
            agent, "why", sentence_id=sentence["sentence_id"], question="Where was Marie Curie born?"
        )
        assert because["text"] == sentence["text"]
        assert [event["feedback_id"] for event in because["history"]] == [said["feedback_id"]]
        nothing = await call(agent, "judge", query_id=found["query_id"], helped=[], complete=True)
        assert nothing["changed"] > said["changed"]

    async def another(agent: Client) -> None:
        again = await call(agent, "ask", question="Where was Marie Curie born?", without_memory=True)
        assert again["passages"]

    told(service, collection, story, another)


def test_the_same_text_is_kept_once(service: str, collection: str) -> None:
    async def story(agent: Client) -> tuple[str, str]:
        kept = [await call(agent, "remember", text="Titan has lakes of methane.", title="Titan") for _ in range(2)]
        return kept[0]["passage_id"], kept[1]["passage_id"]

    first, second = told(service, collection, story)[0]
    assert first == second


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("ask", {"question": "Who?"}, "no collection"),
        ("judge", {"query_id": "nonsense", "helped": [1]}, "Invalid request"),
        ("ask", {"question": "Who?", "passages": 0}, "greater than or equal"),
    ],
)
def test_a_refusal_is_said_to_the_agent(
    service: str, collection: str, tool: str, arguments: dict[str, Any], words: str
) -> None:
    async def story(agent: Client) -> Any:
        return await agent.call_tool(tool, arguments)

    result = told(service, collection, story)[0]
    assert result.is_error
    assert words in result.content[0].text


def test_a_service_that_is_away_is_said_too(collection: str) -> None:
    async def story(agent: Client) -> Any:
        return await agent.call_tool("ask", {"question": "Who?"})

    assert "out of reach" in told(NOWHERE, collection, story)[0].content[0].text


def test_on_standard_input_and_output(service: str, collection: str) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "engram_mcp", "--url", service, "--collection", collection], env=ENV
    )

    async def story() -> set[str]:
        async with Client(command) as agent:
            await call(agent, "remember", text="Titan has lakes of methane.")
            return {tool.name for tool in (await agent.list_tools()).tools}

    assert asyncio.run(story()) == {"ask", "judge", "remember", "why"}


def test_over_http(service: str, collection: str) -> None:
    port = free_port()
    arguments = [sys.executable, "-m", "engram_mcp", "--url", service, "--collection", collection]
    process = Popen([*arguments, "--http", str(port)], env=ENV)

    async def story() -> str:
        for _ in range(int(PATIENCE_SECONDS / 0.1)):
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
            except OSError:
                await asyncio.sleep(0.1)
        async with Client(f"http://127.0.0.1:{port}/mcp") as agent:
            kept = await call(agent, "remember", text="Titan has lakes of methane.")
        return str(kept["collection"])

    try:
        assert asyncio.run(story()) == collection
    finally:
        process.terminate()
        process.wait(20)

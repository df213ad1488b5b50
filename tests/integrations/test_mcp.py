"""Engram's tools, called as an agent's host calls them."""

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from engram_client import AsyncEngram
from engram_mcp import server
from tests.conftest import CURIE
from tests.support.command import UNREACHABLE_URL
from tests.support.environment import drop_settings
from tests.support.processes import PATIENCE_SECONDS, free_port

Story = Callable[[Client], Awaitable[Any]]
pytestmark = pytest.mark.usefixtures("working")
ENV = drop_settings()


def run_stories(service: str, collection: str, *stories: Story) -> list[Any]:
    """What the stories give, each in a session of its own with one server."""

    async def run_all() -> list[Any]:
        async with AsyncEngram(service, collection=collection, retries=0) as engram:
            tools = server(engram)
            given = []
            for story in stories:
                async with Client(tools) as agent:
                    given.append(await story(agent))
            return given

    return asyncio.run(run_all())


async def call(agent: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """A tool's answer."""
    result = await agent.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def read_only_text(result: Any) -> dict[str, Any]:
    """The JSON of the one text that a tool answers with."""
    assert not result.is_error, result.content
    (content,) = result.content
    found: dict[str, Any] = json.loads(content.text)
    return found


async def remember_all(agent: Client) -> None:
    for passage in CURIE:
        await call(agent, "remember", text=passage["text"], title=passage.get("title"), passage_id=passage["id"])


def test_an_agent_remembers_asks_judges_and_asks_again(service: str, collection: str) -> None:
    async def run_story(agent: Client) -> None:
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

    run_stories(service, collection, run_story, another)


@pytest.mark.parametrize(
    "refused",
    [
        {"text": " "},
        {"text": "\u200b"},
        {"text": "Kept?", "passage_id": "x" * 2000},
        {"text": "Kept?", "title": "x" * 100_000},
    ],
)
def test_a_text_that_is_refused_is_not_called_kept(service: str, collection: str, refused: dict[str, str]) -> None:
    async def run_story(agent: Client) -> None:
        result = await agent.call_tool("remember", refused)
        assert result.is_error
        assert "1 of 1 lines were refused: line 1: " in result.content[0].text

    run_stories(service, collection, run_story)


def test_deep_research_searches_and_fetches(service: str, collection: str) -> None:
    async def run_story(agent: Client) -> None:
        await remember_all(agent)
        named = "https://example.org/titan"
        async with AsyncEngram(service, collection=collection) as engram:
            body = {
                "id": "a:b/c",
                "text": "Titan has lakes of methane.",
                "metadata": {"url": named, "topic": "space"},
            }
            await engram.wait(await engram.ingest([body]))
        result = await agent.call_tool("search", {"query": "Which moon has lakes of methane?"})
        found = read_only_text(result)
        assert found == result.structured_content
        first = found["results"][0]
        assert set(first) == {"id", "title", "url"}
        assert (first["id"], first["title"], first["url"]) == (f"{found['query_id']}:a:b/c", "a:b/c", named)
        addresses = {one["title"]: one["url"] for one in found["results"]}
        assert addresses["Warsaw"] == f"{service}/passages/warsaw?collection={collection}"
        read = read_only_text(await agent.call_tool("fetch", {"id": first["id"]}))
        assert set(read) == {"id", "title", "text", "url", "metadata"}
        assert (read["id"], read["text"], read["url"]) == (first["id"], "Titan has lakes of methane.", named)
        assert read["metadata"]["topic"] == "space"
        helped = [read["metadata"]["sentences"][0]["sentence_id"]]
        said = await call(agent, "judge", query_id=read["metadata"]["query_id"], helped=helped)
        assert said["status"] == "applied"
        alone = read_only_text(await agent.call_tool("fetch", {"id": "a:b/c"}))
        assert (alone["text"], "query_id" in alone["metadata"]) == (read["text"], False)

    run_stories(service, collection, run_story)


def test_a_server_asks_for_whom_it_serves(service: str, collection: str) -> None:
    """On loopback without keys, which sees everything unless it says for whom it asks."""

    async def run_story() -> None:
        async with AsyncEngram(service, collection=collection, retries=0) as engram:
            for reader in ("user:ana", "user:bo"):
                async with Client(server(engram, [reader, "group:hr"])) as agent:
                    await call(agent, "remember", text="Titan has lakes of methane.", passage_id=reader[5:])
            await engram.set_readers("bo", ["user:bo"])
            async with Client(server(engram, ["user:ana"])) as agent:
                assert "why" not in {tool.name for tool in (await agent.list_tools()).tools}
                asked = await call(agent, "ask", question="Which moon has lakes of methane?")
                assert [passage["passage_id"] for passage in asked["passages"]] == ["ana"]
                found = await call(agent, "search", query="Which moon has lakes of methane?")
                assert [one["title"] for one in found["results"]] == ["ana"]
                read = [(await agent.call_tool("fetch", {"id": one})).is_error for one in ("ana", "bo")]
                assert read == [False, True]
                helped = [asked["passages"][0]["sentences"][0]["sentence_id"]]
                assert (await call(agent, "judge", query_id=asked["query_id"], helped=helped))[
                    "status"
                ] == "applied"
                kept = await call(agent, "remember", text="Io has volcanoes.")
                assert not (await agent.call_tool("fetch", {"id": kept["passage_id"]})).is_error
            async with Client(server(engram, ["group:staff"])) as agent:
                assert (await agent.call_tool("fetch", {"id": kept["passage_id"]})).is_error
                assert (await call(agent, "ask", question="Which moon has lakes of methane?"))["passages"] == []
            assert [passage.id async for passage in engram.passages()] == sorted(["ana", "bo", kept["passage_id"]])

    asyncio.run(run_story())


def test_an_agent_reads_around_a_passage(service: str, collection: str) -> None:
    parts = ["The leave begins in May.", "It ends in June.", "The boss signs it.", "The clerk keeps it."]

    async def run_story(agent: Client) -> None:
        async with AsyncEngram(service, collection=collection) as engram:
            passages = [{"id": f"a#{n}", "document": "a", "text": text} for n, text in enumerate(parts)]
            await engram.wait(await engram.ingest(passages))
        for context, around in (("none", ([], [])), ("neighbours", ([], parts[1:2])), ("section", ([], parts[1:]))):
            found = await call(agent, "ask", question="When does the leave begin?", passages=1, context=context)
            (passage,) = found["passages"]
            assert (passage["text"], passage["before"], passage["after"]) == (parts[0], *around)

    run_stories(service, collection, run_story)


def test_search_and_fetch_take_one_text(service: str, collection: str) -> None:
    async def run_story(agent: Client) -> dict[str, Any]:
        return {tool.name: tool.input_schema for tool in (await agent.list_tools()).tools}

    schemas = run_stories(service, collection, run_story)[0]
    for tool, name in (("search", "query"), ("fetch", "id")):
        assert {key: value["type"] for key, value in schemas[tool]["properties"].items()} == {name: "string"}
        assert schemas[tool]["required"] == [name]


def test_an_empty_memory_finds_nothing_and_is_no_error(service: str, collection: str) -> None:
    async def run_story(agent: Client) -> tuple[Any, Any]:
        return await agent.call_tool("search", {"query": "Who?"}), await agent.call_tool("fetch", {"id": "nobody"})

    found, read = run_stories(service, collection, run_story)[0]
    assert read_only_text(found) == {"results": [], "query_id": None}
    assert read.is_error
    assert "no collection" in read.content[0].text


def test_the_same_text_is_kept_once(service: str, collection: str) -> None:
    async def run_story(agent: Client) -> tuple[str, str]:
        kept = [await call(agent, "remember", text="Titan has lakes of methane.", title="Titan") for _ in range(2)]
        return kept[0]["passage_id"], kept[1]["passage_id"]

    first, second = run_stories(service, collection, run_story)[0]
    assert first == second


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("ask", {"question": "Who?"}, "no collection"),
        ("judge", {"query_id": "nonsense", "helped": [1]}, "Invalid request"),
        ("ask", {"question": "Who?", "passages": 0}, "greater than or equal"),
    ],
)
def test_agent_sees_a_refusal(
    service: str, collection: str, tool: str, arguments: dict[str, Any], words: str
) -> None:
    async def run_story(agent: Client) -> Any:
        return await agent.call_tool(tool, arguments)

    result = run_stories(service, collection, run_story)[0]
    assert result.is_error
    assert words in result.content[0].text


@pytest.mark.parametrize(
    ("tool", "named"),
    [
        ("ask", {"question": "Who?", "collections": ["secret"]}),
        ("judge", {"query_id": "x", "helped": [], "collection": "secret"}),
    ],
)
def test_an_agent_names_only_collections_that_the_server_was_started_with(tool: str, named: dict[str, Any]) -> None:
    async def call_both() -> list[str]:
        async with AsyncEngram(UNREACHABLE_URL, collection="own", retries=0) as engram:
            told = []
            for others in ((), ("secret",)):
                async with Client(server(engram, others=others)) as agent:
                    told.append((await agent.call_tool(tool, named)).content[0].text)
            return told

    refused, allowed = asyncio.run(call_both())
    assert "This server asks own alone." in refused
    assert "alone" not in allowed


def test_agent_sees_an_unreachable_service(collection: str) -> None:
    async def run_story(agent: Client) -> Any:
        return await agent.call_tool("ask", {"question": "Who?"})

    assert "out of reach" in run_stories(UNREACHABLE_URL, collection, run_story)[0].content[0].text


FLAGS = ["--as", "user:ana", "--as", "group:hr"]


@pytest.mark.parametrize(("by_flags", "asked"), [(True, []), (False, FLAGS)])
def test_on_standard_input_and_output(service: str, collection: str, by_flags: bool, asked: list[str]) -> None:
    flags = ["--url", service, "--collection", collection, *asked] if by_flags else []
    named = {} if by_flags else {"ENGRAM_URL": service, "ENGRAM_COLLECTION": collection}
    if asked and not by_flags:
        named["ENGRAM_AS"] = "user:ana, group:hr"
    command = StdioServerParameters(command=sys.executable, args=["-m", "engram_mcp", *flags], env=ENV | named)

    async def run_story() -> set[str]:
        async with Client(command) as agent:
            await call(agent, "remember", text="Titan has lakes of methane.")
            return {tool.name for tool in (await agent.list_tools()).tools}

    everyones = {"ask", "judge", "remember", "search", "fetch"}
    assert asyncio.run(run_story()) == (everyones if asked else everyones | {"why"})


def test_over_http(service: str, collection: str) -> None:
    port = free_port()
    command = str(Path(sys.executable).with_name("engram-mcp"))
    named = {"ENGRAM_URL": service, "ENGRAM_COLLECTION": collection}
    process = Popen([command, "--http", str(port)], env=ENV | named)

    async def run_story() -> str:
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
        assert asyncio.run(run_story()) == collection
    finally:
        process.terminate()
        process.wait(20)

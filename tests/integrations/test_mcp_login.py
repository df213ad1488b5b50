"""Logins at the MCP server: agents of several people, a local identity provider, and a service with readers."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any
from urllib.parse import parse_qs, urlparse

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram_client import Engram
from engram_mcp.__main__ import main
from tests.conftest import Heavy
from tests.support import state
from tests.support.environment import drop_settings
from tests.support.identity_provider import AUDIENCE, IdentityProvider
from tests.support.live_server import LiveServer
from tests.support.processes import PATIENCE_SECONDS, free_port

REDIRECT = "http://127.0.0.1:1/callback"


class Memory:
    """What a client keeps between requests."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider.serve({"wages": ["query", "read", "judge", "ingest"]}) as served:
        yield served


@pytest.fixture(scope="module")
def guarded(
    settings: Settings, own: Servers, heavy: Heavy, provider: IdentityProvider
) -> Iterator[tuple[Application, str]]:
    """A service that needs keys or tokens of the provider, with the wages in it; its address."""
    given = {"jwt_issuer": provider.url, "jwt_audience": AUDIENCE}
    services = Application(settings.model_copy(update={"access": "keys"} | given), own, consumer="login")
    services.models.embedder, services.models.language = heavy
    key = services.auth.access_keys.make(
        LOCAL, AccessKeyRequest(name="boss", scopes={"*": ["admin", "ingest"]})
    ).key
    with LiveServer(create_app(services)) as served:
        with Engram(served.url, collection="wages", key=key) as boss:
            boss.ingest(
                [
                    {"id": "hours", "text": "The office in Warsaw opens at eight.", "readers": None},
                    {"id": "wage", "text": "Marie Curie earns 7,000 crowns.", "readers": ["group:hr"]},
                ]
            )
        services.jobs.runner.run_ready()
        yield services, served.url
    services.close()


@pytest.fixture(scope="module")
def address(guarded: tuple[Application, str], provider: IdentityProvider) -> Iterator[str]:
    """Of a running ``engram-mcp`` that asks for a login."""
    port = free_port()
    command = str(Path(sys.executable).with_name("engram-mcp"))
    flags = ["--url", guarded[1], "--collection", "wages", "--http", str(port), "--login", provider.url]
    process = Popen([command, *flags], env=drop_settings() | {"ENGRAM_ACCESS_KEY": "engram_never_sent"})
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(int(PATIENCE_SECONDS / 0.1)):
            try:
                httpx.get(base)
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield f"{base}/mcp"
    finally:
        process.terminate()
        process.wait(20)


async def act(
    address: str, provider: IdentityProvider, person: str, group: str, story: Callable[[Client], Awaitable[Any]]
) -> Any:
    """What a story gives to somebody who logs in first."""
    shown: list[str] = []

    async def open_browser(url: str) -> None:
        provider.person, provider.groups = person, [group]
        async with httpx.AsyncClient() as browser:
            shown.append((await browser.get(url)).headers["location"])

    async def come_back() -> AuthorizationCodeResult:
        said = parse_qs(urlparse(shown[-1]).query)
        return AuthorizationCodeResult(code=said["code"][0], state=said["state"][0])

    metadata = OAuthClientMetadata(
        redirect_uris=[AnyUrl(REDIRECT)], client_name="an agent", token_endpoint_auth_method="none"
    )
    login = OAuthClientProvider(address, metadata, Memory(), open_browser, come_back)
    async with (
        httpx2.AsyncClient(auth=login, timeout=30) as http,
        Client(streamable_http_client(address, http_client=http)) as agent,
    ):
        return await story(agent)


async def call(agent: Client, tool: str, **arguments: Any) -> Any:
    result = await agent.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def ask(agent: Client) -> list[str]:
    found = await call(agent, "ask", question="What does Marie Curie earn?")
    return sorted(passage["passage_id"] for passage in found["passages"])


def test_each_caller_finds_what_the_caller_may_read(
    address: str, guarded: tuple[Application, str], provider: IdentityProvider
) -> None:
    services = guarded[0]

    async def run_story() -> None:
        assert await act(address, provider, "ana", "hr", ask) == ["hours", "wage"]
        assert await act(address, provider, "bo", "staff", ask) == ["hours"]

        async def judge(agent: Client) -> Any:
            found = await call(agent, "ask", question="When does the office open?")
            helped = [found["passages"][0]["sentences"][0]["sentence_id"]]
            return await call(agent, "judge", query_id=found["query_id"], helped=helped)

        async def remember(agent: Client) -> Any:
            kept = await run_jobs_until(services, call(agent, "remember", text="Titan has lakes of methane."))
            return kept["passage_id"]

        assert (await act(address, provider, "bo", "staff", judge))["feedback_id"]
        kept = await act(address, provider, "bo", "staff", remember)

        async def fetch(agent: Client) -> bool:
            return not (await agent.call_tool("fetch", {"id": kept})).is_error

        assert await act(address, provider, "bo", "sales", fetch)
        assert not await act(address, provider, "ana", "staff", fetch)

    asyncio.run(run_story())


async def run_jobs_until(services: Application, work: Coroutine[Any, Any, Any]) -> Any:
    """Do some work, which waits for jobs."""
    task = asyncio.create_task(work)
    while not task.done():
        await asyncio.to_thread(services.jobs.runner.run_ready)
        await asyncio.sleep(0.05)
    return await task


def test_no_tool_tells_what_its_caller_may_not_read(
    address: str, guarded: tuple[Application, str], provider: IdentityProvider
) -> None:
    services = guarded[0]
    (hidden,) = (row["id"] for row in state.rows(services, "wages", "sentence") if "crowns" in row["text"])

    async def find_wage(agent: Client) -> str:
        found = await call(agent, "ask", question="What does Marie Curie earn?")
        return str(found["query_id"])

    async def try_all(agent: Client) -> dict[str, str]:
        question = "What does Marie Curie earn?"
        arguments: dict[str, dict[str, Any]] = {
            "ask": {"question": question, "context": "section", "passages": 50},
            "search": {"query": question},
            "fetch": {"id": "wage"},
            "judge": {"query_id": of_ana, "helped": [hidden]},
            "why": {"sentence_id": hidden, "question": question},
            "remember": {"text": "What Marie Curie earns is secret."},
        }
        assert {tool.name for tool in (await agent.list_tools()).tools} == arguments.keys()
        return {
            tool: str(await run_jobs_until(services, agent.call_tool(tool, given)))
            for tool, given in arguments.items()
        }

    async def run_story() -> tuple[dict[str, str], dict[str, str]]:
        nonlocal of_ana
        of_ana = await act(address, provider, "ana", "hr", find_wage)
        return await act(address, provider, "bo", "staff", try_all), await act(
            address, provider, "ana", "hr", try_all
        )

    of_ana = ""
    bo, ana = asyncio.run(run_story())
    assert [tool for tool in bo if "crowns" in bo[tool]] == []
    assert sorted(tool for tool in ana if "crowns" in ana[tool]) == ["ask", "fetch"]


def test_who_has_not_logged_in_is_told_where(address: str, provider: IdentityProvider) -> None:
    asked = httpx.post(address, json={})
    assert asked.status_code == 401
    metadata = address.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    assert f'resource_metadata="{metadata}"' in asked.headers["www-authenticate"]
    described = httpx.get(metadata).json()
    assert (described["resource"], described["authorization_servers"]) == (address, [provider.url])


def test_other_tokens_are_refused(
    address: str, guarded: tuple[Application, str], provider: IdentityProvider, settings: Settings
) -> None:
    key = guarded[0].auth.access_keys.make(LOCAL, AccessKeyRequest(name="key", scopes={"*": ["admin"]})).key
    refused = {
        "nonsense": "nonsense",
        "an access key": key,
        "of another audience": provider.sign("ana", [], aud="elsewhere"),
        "expired": provider.sign("ana", [], exp=time.time() - 600),
        "of another issuer": provider.sign("ana", [], iss="http://elsewhere"),
    }
    for what, token in refused.items():
        answer = httpx.post(address, json={}, headers={"authorization": f"Bearer {token}"})
        assert answer.status_code == 401, what


@pytest.mark.parametrize("flags", [[], ["--http", "1", "--as", "user:ana"]])
def test_a_login_goes_with_http_alone(flags: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["engram-mcp", "--login", "http://127.0.0.1:1", *flags])
    monkeypatch.setattr("engram_mcp.__main__.server", None)  # which else serves until it is killed
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2

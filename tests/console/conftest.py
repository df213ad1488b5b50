"""A real Chromium on a running service, for tests marked ``browser``."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "console/node_modules/axe-core/axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome")
HEADLESS = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
"""WebGL without a graphics card."""
HARMLESS = ("Failed to load resource",)
"""What the browser says of an answer with an error's status, which the page deals with."""


def chromium() -> str | None:
    """Where a Chromium is; ENGRAM_CHROMIUM names another than the system's."""
    named = os.environ.get("ENGRAM_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser for all tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    path = chromium()
    if path is None:
        pytest.skip("there is no Chromium; apt install chromium, or name one by ENGRAM_CHROMIUM")
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=path, args=[*HEADLESS, *sandbox])
        yield started
        started.close()


Opened = Callable[..., Any]


@pytest.fixture
def opened(browser: Any) -> Iterator[Opened]:
    """A tab at an address; fails at the end if the page erred, broke its policy or asked anybody else.

    ``login``: the address of the identity provider.
    """
    contexts, troubles = [], []

    def open_at(url: str, place: str = "", theme: str = "light", login: str | None = None) -> Any:
        context = browser.new_context(viewport={"width": 1360, "height": 900}, color_scheme=theme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)  # of a machine that has much else to do
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "console",
            lambda said: said.type == "error" and not said.text.startswith(HARMLESS) and troubles.append(said.text),
        )
        known = tuple(one for one in (url, login) if one is not None)
        page.on("request", lambda sent: sent.url.startswith(known) or troubles.append(f"asked {sent.url}"))
        page.goto(f"{url}/{place}")
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert troubles == []

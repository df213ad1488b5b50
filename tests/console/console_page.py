"""Steps on the console's pages that several tests take."""

from typing import Any

import pytest

from tests.console.conftest import AXE

QUESTION = "Where was Marie Curie born?"
BORN = "Marie Curie was born in Warsaw in 1867."


def place(page: str, collection: str) -> str:
    """The address of a page."""
    return f"#/{page}?c={collection}"


def ask(page: Any, question: str = QUESTION) -> None:
    """Ask a question and wait for its answer."""
    page.get_by_label("Question", exact=True).fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_selector(".passage")


def violations(page: Any) -> dict[str, list[str]]:
    """Find what axe objects to: rule -> the first elements that break it."""
    if not AXE.exists():
        pytest.skip("axe-core is not there; cd console && npm ci")
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    results = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return {one["id"]: [node["html"][:120] for node in one["nodes"][:3]] for one in results["violations"]}


def reach(page: Any, name: str, most: int = 80) -> None:
    """Go to what is called so by the Tab key alone; each stop shows that it has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        label = page.evaluate(
            "(() => { const e = document.activeElement; return e.getAttribute('aria-label')"
            " ?? (e.labels?.[0]?.innerText || e.innerText) ?? ''; })()"
        )
        if label.strip().startswith(name):
            seen = page.evaluate(
                "(() => { const e = document.activeElement; const at = e.closest('.choice label') ?? e;"
                " return getComputedStyle(at).outlineStyle; })()"
            )
            assert seen != "none", f"nothing shows that {name!r} has the focus"
            return
    raise AssertionError(f"Tab never reaches {name!r}")

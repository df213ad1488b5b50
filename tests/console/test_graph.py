"""A graph of many nodes in a real Chromium: moved it shows its nodes alone, at rest all there is."""

import base64
from typing import Any

import pytest

from tests.console.conftest import Opened

pytestmark = pytest.mark.browser

GUESTS = 1_300
"""More than a graph may have that shows its edges while it moves."""
INK = """async data => {
  const image = await createImageBitmap(new Blob([Uint8Array.from(atob(data), one => one.charCodeAt(0))]));
  const pen = new OffscreenCanvas(image.width, image.height).getContext('2d');
  pen.drawImage(image, 0, 0);
  const shown = new Uint32Array(pen.getImageData(0, 0, image.width, image.height).data.buffer);
  return shown.reduce((sum, one) => sum + (one !== shown[10 * image.width + 10]), 0);
}"""
"""Pixels of a picture that are not its background."""


def ink(page: Any) -> int:
    picture = base64.b64encode(page.locator(".graph").screenshot()).decode()
    found: int = page.evaluate(INK, picture)
    return found


def add_guests(route: Any) -> None:
    """The entity's own answer, and its first fact once for each of many others."""
    response = route.fetch()
    found = response.json()
    far = 1_000_000
    found["facts"] += [
        found["facts"][0] | {"fact_id": far + at, "object": f"Guest {at}", "object_entity_id": far + at}
        for at in range(GUESTS)
    ]
    route.fulfill(response=response, json=found)


def test_edges_and_labels_are_drawn_again_at_rest(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, f"#/facts?c={curie}")
    fact = {"subject": "Acme", "predicate": "invites", "object": "Ana Diaz"}
    page.request.post(f"{service}/facts", data={"collection": curie, "source": "list", "facts": [fact]})
    page.route("**/entities/*", add_guests)
    page.get_by_label("Name or question").fill("Acme")
    page.get_by_role("button", name="Look").click()
    page.get_by_text(f"{GUESTS + 1:,} facts; ").wait_for()
    page.locator(".graph[data-settled='true']").wait_for()
    page.get_by_role("button", name="Show all").click()
    box = page.locator(".graph").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    whole = ink(page)
    page.mouse.down()
    page.mouse.move(box["x"] + 23, box["y"] + 22)
    page.locator(".graph.moving").wait_for()
    assert ink(page) < 0.8 * whole, "nodes alone"
    page.mouse.up()
    page.locator(".graph:not(.moving)").wait_for()
    assert ink(page) > 0.95 * whole

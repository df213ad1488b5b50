"""How many frames a second the console's graph has with so many nodes: the facts page in a real Chromium.

``python -m benchmarks.console_frames --nodes 2000 --seconds 5`` against a service that ``--url`` names. It states
the facts in a collection of its own, which it deletes at the end, waits until the nodes have found their places,
and then counts the frames while the graph is dragged.
"""

import argparse
import time
import uuid
from collections import Counter
from typing import Any

import httpx
import psutil

from tests.console.conftest import HEADLESS, chromium

PER_REQUEST = 100
COUNT = """([seconds, moving]) => new Promise(done => {
  const canvas = document.querySelector('.graph .sigma-mouse');
  const box = canvas.getBoundingClientRect();
  const say = (kind, at) => (kind === 'mousedown' ? canvas : document).dispatchEvent(new MouseEvent(kind, {
    bubbles: true, clientX: box.left + 200 + 80 * Math.sin(at / 9), clientY: box.top + 200 + 60 * Math.cos(at / 7),
  }));
  const began = performance.now(); let frames = 0, longest = 0, last = began;
  if (moving) say('mousedown', 0);
  const step = now => {
    longest = Math.max(longest, now - last); last = now; frames += 1;
    if (moving) say('mousemove', frames);
    if (now - began < seconds * 1000) { requestAnimationFrame(step); return; }
    if (moving) say('mouseup', frames);
    done({frames: Math.round(10 * frames / ((now - began) / 1000)) / 10, longest_ms: Math.round(longest)});
  };
  requestAnimationFrame(step);
})"""
"""Frames in so many seconds; moving, the graph is dragged a little before each, so that each is drawn anew."""


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--url", default="http://127.0.0.1:8000")
    options.add_argument("--nodes", type=int, default=2_000)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--screenshot")
    given = options.parse_args()
    name = f"frames-{uuid.uuid4().hex[:8]}"
    with httpx.Client(base_url=given.url, timeout=120) as service:
        state(service, name, given.nodes)
        try:
            print(measure(given.url, name, given.nodes, given.seconds, given.screenshot))
        finally:
            service.delete(f"/collections/{name}")


def state(service: httpx.Client, name: str, nodes: int) -> None:
    """A hub with hands, and fingers on each: a tree of so many entities."""
    service.post("/passages", params={"collection": name}, json={"passages": [{"id": "hub", "text": "The hub."}]})
    while service.get(f"/collections/{name}").status_code != 200:
        time.sleep(0.2)
    hands = max(1, min(nodes // 25, 900))
    facts = [{"subject": "Hub", "predicate": "has", "object": f"Hand {at}"} for at in range(hands)]
    facts += [
        {"subject": f"Hand {at % hands}", "predicate": "holds", "object": f"Finger {at}"}
        for at in range(nodes - hands - 1)
    ]
    for at in range(0, len(facts), PER_REQUEST):
        body = {"collection": name, "source": "benchmark", "facts": facts[at : at + PER_REQUEST]}
        service.post("/facts", json=body).raise_for_status()


def busy() -> Counter[str]:
    """Processor seconds that the browser's processes have taken, by what they do: the page, or drawing for it."""
    taken: Counter[str] = Counter()
    for child in psutil.Process().children(recursive=True):
        kind = next((part[7:] for part in child.cmdline() if part.startswith("--type=")), "other")
        times = child.cpu_times()
        taken[kind] += times.user + times.system
    return taken


def measure(url: str, name: str, nodes: int, seconds: float, screenshot: str | None) -> dict[str, Any]:
    """Open the hub, then all of its hands, and drag and zoom."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium(), args=[*HEADLESS, "--no-sandbox"])
        page = browser.new_page(viewport={"width": 1360, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(f"{url}/#/facts?c={name}")
        page.get_by_label("Name or question").fill("Hub")
        page.get_by_role("button", name="Look").click()
        page.locator(".factlist li").first.wait_for()
        page.get_by_role("button", name="Show neighbours of all").click()
        page.get_by_text(f"{nodes - 1:,} facts; ").wait_for()
        settling = page.evaluate(COUNT, [seconds, False])
        page.locator(".graph[data-settled='true']").wait_for()
        spent = busy()
        moving = page.evaluate(COUNT, [seconds, True])
        frames, after = moving["frames"] * seconds, busy()
        moving["processor_ms_a_frame"] = {
            kind: round(1000 * (after[kind] - spent[kind]) / frames, 1) for kind in ("renderer", "gpu-process")
        }
        if screenshot:
            page.screenshot(path=screenshot)
        renderer = page.evaluate(
            "(() => { const gl = document.createElement('canvas').getContext('webgl');"
            " return gl.getParameter(gl.getExtension('WEBGL_debug_renderer_info').UNMASKED_RENDERER_WEBGL); })()"
        )
        browser.close()
    return {"nodes": nodes, "settling": settling, "dragged": moving, "renderer": renderer}


if __name__ == "__main__":
    main()

"""How many frames a second the console's graph has with so many nodes: the facts page in a real Chromium.

``python -m benchmarks.console_frames --nodes 2000 --seconds 5`` against a service that ``--url`` names. It states
the facts in a collection of its own, which it deletes at the end, waits until the nodes have found their places,
and counts frames:

- ``nothing``: of the page while nothing moves, the floor of all others;
- ``canvas``: of the page while an empty WebGL canvas of the graph's size is drawn for each frame;
- ``dragged``: of the graph, moved a little before each frame; from 1,200 nodes or edges on it shows its nodes alone
  while it moves;
- ``whole``: of the graph at rest, with all edges and labels read and drawn anew for each frame;
- ``settling``: of the page while another thread still looks for the nodes' places.

The browser has the flags that a person's has. Without a graphics card, Chromium puts a page together without WebGL,
and draws WebGL by SwiftShader if ``--enable-unsafe-swiftshader`` lets it; ``--all-by-swiftshader`` has it do both.
"""

import argparse
import json
import time
import uuid
from collections import Counter
from typing import Any

import httpx
import psutil

from tests.console.conftest import HEADLESS, chromium

PER_REQUEST = 100
COUNT = """([seconds, what]) => new Promise(done => {
  const place = document.querySelector('.graph'), canvas = place.querySelector('.sigma-mouse');
  const box = canvas.getBoundingClientRect();
  const say = (kind, at) => (kind === 'mousedown' ? canvas : document).dispatchEvent(new MouseEvent(kind, {
    bubbles: true, clientX: box.left + 200 + 80 * Math.sin(at / 9), clientY: box.top + 200 + 60 * Math.cos(at / 7),
  }));
  const empty = document.createElement('canvas');
  empty.width = box.width; empty.height = box.height;
  empty.style.cssText = 'position: absolute; inset: 0';
  const pen = what === 'canvas' && empty.getContext('webgl2', {antialias: false});
  if (what === 'canvas') place.append(empty);
  const draw = {
    nothing: () => {},
    canvas: at => { pen.clearColor(0, 0, 0, at % 2 / 9); pen.clear(pen.COLOR_BUFFER_BIT); },
    dragged: at => say('mousemove', at),
    whole: () => dispatchEvent(new Event('engram-theme')),
  }[what];
  const began = performance.now(); let frames = 0, longest = 0, last = began;
  if (what === 'dragged') say('mousedown', 0);
  const step = now => {
    longest = Math.max(longest, now - last); last = now; frames += 1;
    draw(frames);
    if (now - began < seconds * 1000) { requestAnimationFrame(step); return; }
    if (what === 'dragged') say('mouseup', frames);
    empty.remove();
    const rate = Math.round(10 * frames / ((now - began) / 1000)) / 10;
    done({frames_a_second: rate, longest_ms: Math.round(longest), frames});
  };
  requestAnimationFrame(step);
})"""
"""Frames in so many seconds, the longest of them in ms, and how many there were."""


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--url", default="http://127.0.0.1:8000")
    options.add_argument("--nodes", type=int, default=2_000)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--all-by-swiftshader", action="store_true")
    options.add_argument("--screenshot")
    given = options.parse_args()
    name = f"frames-{uuid.uuid4().hex[:8]}"
    with httpx.Client(base_url=given.url, timeout=120) as service:
        state(service, name, given.nodes)
        try:
            print(json.dumps(measure(name, given), indent=2))
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


def measure(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Open the hub, then all of its hands, and count."""
    from playwright.sync_api import sync_playwright

    flags = HEADLESS if given.all_by_swiftshader else ["--enable-unsafe-swiftshader"]
    measured: dict[str, Any] = {"nodes": given.nodes, "load": psutil.getloadavg()[0]}
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium(), args=[*flags, "--no-sandbox"])
        page = browser.new_page(viewport={"width": 1360, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(f"{given.url}/#/facts?c={name}")
        page.get_by_label("Name or question").fill("Hub")
        page.get_by_role("button", name="Look").click()
        page.locator(".factlist li").first.wait_for()
        page.get_by_role("button", name="Show neighbours of all").click()
        page.get_by_text(f"{given.nodes - 1:,} facts; ").wait_for()
        settling = count_frames(page, given.seconds, "nothing")
        page.locator(".graph[data-settled='true']").wait_for()
        for what in ("nothing", "canvas", "dragged", "whole"):
            measured[what] = count_frames(page, given.seconds, what)
        measured["settling"] = settling
        if given.screenshot:
            page.screenshot(path=given.screenshot)
        measured["drawn_by"] = page.evaluate(
            "(() => { const gl = document.createElement('canvas').getContext('webgl');"
            " return gl.getParameter(gl.getExtension('WEBGL_debug_renderer_info').UNMASKED_RENDERER_WEBGL); })()"
        )
        measured["browser"] = browser.version
        browser.close()
    return measured


def count_frames(page: Any, seconds: float, activity: str) -> dict[str, Any]:
    """Frames while the page does so, and the processor time of each."""
    before = busy()
    found: dict[str, Any] = page.evaluate(COUNT, [seconds, activity])
    after, frames = busy(), found.pop("frames")
    for kind, title in (("renderer", "page_ms"), ("gpu-process", "drawing_ms")):
        found[title] = round(1000 * (after[kind] - before[kind]) / frames, 1)
    return found


if __name__ == "__main__":
    main()

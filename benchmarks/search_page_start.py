"""When the search page can be typed into on a slow phone: ``python -m benchmarks.search_page_start``.

A Chromium whose processor is four times slower opens the page of a service without keys over a slow network.
Prints the medians of five tries: milliseconds until the field is painted, and until the script has come.
"""

import argparse
import statistics
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from tests.console.conftest import chromium

NETWORKS = {
    "slow 4G of Lighthouse (150 ms, 1.6 Mbit/s)": (150, 1_600_000),
    "slow 4G of DevTools (562.5 ms, 1.44 Mbit/s)": (562.5, 1_440_000),
}
"""Name -> milliseconds that each request waits, and bits that arrive in a second."""
SLOWER = 4
TRIES = 5
NOTE_SCRIPT = """new MutationObserver(() => {
  if (document.querySelector("#answer > *")) window.started ??= performance.now();
}).observe(document, {childList: true, subtree: true});"""
READ_TIMES = "[performance.getEntriesByName('first-contentful-paint')[0]?.startTime, window.started]"


def open_page(browser: Browser, url: str, wait_ms: float, bits: float) -> list[float]:
    """Open the page in a new context; milliseconds to the first paint, which shows the field, and to its script."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    session = context.new_cdp_session(page)
    network = {"offline": False, "latency": wait_ms, "downloadThroughput": bits / 8, "uploadThroughput": bits / 16}
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", network)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    page.add_init_script(NOTE_SCRIPT)
    page.goto(f"{url}/search")
    page.locator("#answer > *").first.wait_for(state="attached")
    times: list[Any] = page.evaluate(READ_TIMES)
    context.close()
    return [float(one) for one in times]


def main() -> None:
    """Measure, and print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    options = parser.parse_args()
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for name, (wait_ms, bits) in NETWORKS.items():
            tries = [open_page(browser, options.url, wait_ms, bits) for _ in range(TRIES)]
            field, script = (statistics.median(times) for times in zip(*tries, strict=True))
            print(f"{name}: field after {field:.0f} ms, script after {script:.0f} ms")
        browser.close()


if __name__ == "__main__":
    main()

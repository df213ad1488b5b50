"""Ask a service all the time whether it lives; a line for each answer says how long it took."""

import sys
import time

import httpx

PAUSE_SECONDS = 0.25
PATIENCE_SECONDS = 90.0


def watch(url: str) -> None:
    """Until somebody ends the process."""
    while True:
        began = time.monotonic()
        try:
            status = httpx.get(f"{url}/healthz", timeout=PATIENCE_SECONDS, trust_env=False).status_code
            problem = "" if status == 200 else f" {status}"
        except httpx.HTTPError as error:
            problem = f" {type(error).__name__}"
        sys.stdout.write(f"{time.monotonic() - began:.3f}{problem}\n")
        sys.stdout.flush()
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    watch(sys.argv[1])

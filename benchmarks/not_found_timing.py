"""Does the time of a 404 tell another tenant that a thing exists?

    python benchmarks/not_found_timing.py [--pairs 2000]

A key of another tenant asks one API process, over one connection, for what is there and for what is nowhere, one
each in random order, so that whatever else the machine does falls on both. So does a key of the same tenant ask
for a passage that it may not read. For each route: the medians, and the
share of pairs (one of each) in which what exists took longer; 0.5 says that nothing can be told, and the
interval is the share's 95% (the variance of a Mann-Whitney statistic). With ``--control`` the owner asks as well,
who is told: so much a difference shows.
"""

import argparse
import math
import os
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import numpy as np

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from running import Service

COLLECTION = "owned"
PASSAGES = [
    {"id": f"p{at}", "text": f"Town {at} lies on the river {at}. It was founded in {1000 + at}."}
    for at in range(50)
]
HIDDEN = {"id": "hidden", "text": "Town 50 lies on the river 50. It was founded in 1050.", "readers": []}
HIDDEN_TARGETS = (f"/passages/hidden?collection={COLLECTION}", f"/passages/absent?collection={COLLECTION}")
JOB_SECONDS = 120.0
WARM = 50


def client(url: str, key: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"}, trust_env=False, timeout=60)


def list_owned_targets(owner: httpx.Client) -> Mapping[str, tuple[str, str]]:
    """Route -> (of something that exists, of the same that does not)."""
    body = {"collection": COLLECTION, "passages": [*PASSAGES, HIDDEN]}
    job = owner.post("/passages", json=body).raise_for_status().json()["job_id"]
    deadline = time.monotonic() + JOB_SECONDS
    while owner.get(f"/jobs/{job}").json()["status"] != "succeeded":
        if time.monotonic() > deadline:
            raise SystemExit("The passages were not ingested.")
        time.sleep(0.2)
    asked = {"query": "Where does Town 7 lie?", "collection": COLLECTION}
    query = owner.post("/query", json=asked).raise_for_status().json()["query_id"]
    verdict = {"query_id": query, "collection": COLLECTION, "none_helped": True}
    judged = owner.post("/feedback", json=verdict, headers={"idempotency-key": str(uuid.uuid4())})
    feedback = judged.raise_for_status().json()["feedback_id"]
    here, nowhere = f"?collection={COLLECTION}", "?collection=nowhere"
    other = uuid.UUID(int=uuid.UUID(query).int ^ 1)
    return {
        "GET /collections/{name}": (f"/collections/{COLLECTION}", "/collections/unheld"),
        "GET /queries/{query_id}": (f"/queries/{query}", f"/queries/{other}"),
        "GET /queries/{query_id}?collection=": (f"/queries/{query}{here}", f"/queries/{other}{nowhere}"),
        "GET /jobs/{job_id}": (f"/jobs/{job}", f"/jobs/{uuid.uuid4()}"),
        "GET /feedback/{feedback_id}": (f"/feedback/{feedback}", f"/feedback/{feedback + 10**6}"),
        "GET /passages/{passage_id}": (f"/passages/p7{here}", f"/passages/q7{nowhere}"),
    }


def measure_pairs(
    http: httpx.Client, targets: tuple[str, str], pairs: int, status: int
) -> tuple[list[float], list[float]]:
    """Milliseconds of either, in pairs."""
    dice = random.Random(1)
    took: tuple[list[float], list[float]] = ([], [])
    for at in range(pairs + WARM):
        for which in dice.sample((0, 1), 2):
            began = time.perf_counter()
            answer = http.get(targets[which])
            if at >= WARM:
                took[which].append((time.perf_counter() - began) * 1000.0)
            if answer.status_code != (status if which == 0 else 404):
                raise SystemExit(f"{targets[which]}: {answer.status_code} {answer.text}")
    return took


def compute_later_share(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Share of pairs in which the first took longer, and half its 95% interval."""
    a, b = np.asarray(first), np.sort(np.asarray(second))
    below = np.searchsorted(b, a, "left") + np.searchsorted(b, a, "right")
    share = float(below.mean() / (2 * len(b)))
    return share, 1.96 * math.sqrt((len(a) + len(b) + 1) / (12 * len(a) * len(b)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether the time of a 404 tells that a thing exists.")
    parser.add_argument("--pairs", type=int, default=2_000)
    parser.add_argument("--control", action="store_true", help="Ask with the owner's key as well.")
    arguments = parser.parse_args()
    os.environ |= {"ENGRAM_ACCESS": "keys"}
    with (
        tempfile.TemporaryDirectory(prefix="engram-timing-") as folder,
        Service(Path(folder)) as service,
        tenancy.allow_all_tenants(),
    ):
        app = Application(service.settings, service.addresses)
        keys = {
            name: app.auth.access_keys.make(LOCAL, AccessKeyRequest(name=name, scopes={"*": [scope]}), tenant).key
            for name, tenant, scope in (
                ("owner", "local", "admin"),
                ("stranger", "elsewhere", "admin"),
                ("reader", "local", "read"),
            )
        }
        app.close()
        with client(service.url, keys["owner"]) as owner, client(service.url, keys["stranger"]) as stranger:
            found = list_owned_targets(owner)
            rows = []
            for route, targets in found.items():
                for who, http, status in (("stranger", stranger, 404), ("owner", owner, 200)):
                    if who == "owner" and not arguments.control:
                        continue
                    there, nowhere = measure_pairs(http, targets, arguments.pairs, status)
                    share, half = compute_later_share(there, nowhere)
                    medians = (f"{statistics.median(one):.3f}" for one in (there, nowhere))
                    rows.append([route, who, *medians, f"{share:.3f} ± {half:.3f}"])
            with client(service.url, keys["reader"]) as reader:
                there, nowhere = measure_pairs(reader, HIDDEN_TARGETS, arguments.pairs, 404)
            share, half = compute_later_share(there, nowhere)
            medians = (f"{statistics.median(one):.3f}" for one in (there, nowhere))
            rows.append(["GET /passages/{passage_id}", "reader", *medians, f"{share:.3f} ± {half:.3f}"])
    common.table(["route", "asked by", "exists, ms", "does not, ms", "exists took longer"], rows)


if __name__ == "__main__":
    main()

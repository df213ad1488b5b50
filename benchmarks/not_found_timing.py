"""Does the time of a 404 tell another tenant that a thing exists?

    python benchmarks/not_found_timing.py [--pairs 2000]

A key of another tenant asks one API process, over one connection, for what is there and for what is nowhere, one
each in random order, so that whatever else the machine does falls on both. So does a key of the same tenant read,
judge and have explained a passage that it may not read, and judge an answer that found it. For each route: the
medians, and the share of pairs (one of each) in which what exists took longer; 0.5 says that nothing can be told,
and the interval is the share's 95% (the variance of a Mann-Whitney statistic). With ``--control`` the owner asks as
well, who is told: so much a difference shows.
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
from typing import Any

import httpx
import numpy as np

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from running import Service

Verdict = Mapping[str, Any] | None
Target = tuple[str, Verdict]
JUDGING = "POST /feedback, a passage"
COLLECTION = "owned"
PASSAGES = [
    {"id": f"p{at}", "text": f"Town {at} lies on the river {at}. It was founded in {1000 + at}."}
    for at in range(50)
]
HIDDEN = {"id": "hidden", "text": "Town 50 lies on the river 50. It was founded in 1050.", "readers": []}
HERE = f"?collection={COLLECTION}"
JOB_SECONDS = 120.0
WARM = 50


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
    nowhere = "?collection=nowhere"
    other = uuid.UUID(int=uuid.UUID(query).int ^ 1)
    return {
        "GET /collections/{name}": (f"/collections/{COLLECTION}", "/collections/unheld"),
        "GET /queries/{query_id}": (f"/queries/{query}", f"/queries/{other}"),
        "GET /queries/{query_id}?collection=": (f"/queries/{query}{HERE}", f"/queries/{other}{nowhere}"),
        "GET /jobs/{job_id}": (f"/jobs/{job}", f"/jobs/{uuid.uuid4()}"),
        "GET /feedback/{feedback_id}": (f"/feedback/{feedback}", f"/feedback/{feedback + 10**6}"),
        "GET /passages/{passage_id}": (f"/passages/p7{HERE}", f"/passages/q7{nowhere}"),
    }


def list_hidden_targets(owner: httpx.Client, reader: httpx.Client) -> Mapping[str, tuple[Target, Target]]:
    """Route -> (address and verdict about the hidden passage, the same about none)."""
    asked = {"query": "Where does Town 50 lie?", "collection": COLLECTION}
    own, others = (one.post("/query", json=asked).raise_for_status().json() for one in (reader, owner))
    assert "hidden" in {one["passage_id"] for one in others["passages"]}
    sentence = owner.get(f"/passages/hidden{HERE}").raise_for_status().json()["sentences"][0]

    def judge(passage: str) -> Verdict:
        named = {"passage_id": passage, "text": sentence["text"]}
        return {"query_id": own["query_id"], "collection": COLLECTION, "supporting": [named]}

    def judge_nothing(query: str) -> Verdict:
        return {"query_id": query, "collection": COLLECTION, "none_helped": True}

    sentence_id, other = sentence["sentence_id"], str(uuid.UUID(int=uuid.UUID(others["query_id"]).int ^ 1))
    return {
        "GET /passages/{passage_id}": ((f"/passages/hidden{HERE}", None), (f"/passages/absent{HERE}", None)),
        "GET /passages/{passage_id}/key": (
            (f"/passages/hidden/key{HERE}", None),
            (f"/passages/absent/key{HERE}", None),
        ),
        "GET /sentences/{sentence_id}/memory": (
            (f"/sentences/{sentence_id}/memory{HERE}", None),
            (f"/sentences/{sentence_id + 10**6}/memory{HERE}", None),
        ),
        JUDGING: (("/feedback", judge("hidden")), ("/feedback", judge("absent"))),
        "POST /feedback, another's answer": (
            ("/feedback", judge_nothing(others["query_id"])),
            ("/feedback", judge_nothing(other)),
        ),
    }


def measure_pairs(
    http: httpx.Client, targets: tuple[Target, Target], pairs: int, statuses: tuple[int, int]
) -> tuple[list[float], list[float]]:
    """Milliseconds of either, in pairs."""
    dice = random.Random(1)
    took: tuple[list[float], list[float]] = ([], [])
    for at in range(pairs + WARM):
        for which in dice.sample((0, 1), 2):
            url, verdict = targets[which]
            key = {} if verdict is None else {"idempotency-key": str(uuid.uuid4())}
            began = time.perf_counter()
            answer = http.request("GET" if verdict is None else "POST", url, json=verdict, headers=key)
            if at >= WARM:
                took[which].append((time.perf_counter() - began) * 1000.0)
            if answer.status_code != statuses[which]:
                raise SystemExit(f"{url}: {answer.status_code} {answer.text}")
    return took


def compute_later_share(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Share of pairs in which the first took longer, and half its 95% interval."""
    a, b = np.asarray(first), np.sort(np.asarray(second))
    below = np.searchsorted(b, a, "left") + np.searchsorted(b, a, "right")
    share = float(below.mean() / (2 * len(b)))
    return share, 1.96 * math.sqrt((len(a) + len(b) + 1) / (12 * len(a) * len(b)))


def compare(http: httpx.Client, targets: tuple[Target, Target], pairs: int, statuses: tuple[int, int]) -> list[str]:
    """The medians, and how often what exists took longer."""
    there, nowhere = measure_pairs(http, targets, pairs, statuses)
    share, half = compute_later_share(there, nowhere)
    return [*(f"{statistics.median(one):.3f}" for one in (there, nowhere)), f"{share:.3f} ± {half:.3f}"]


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
            name: app.auth.access_keys.make(LOCAL, AccessKeyRequest(name=name, scopes={"*": scopes}), tenant).key
            for name, tenant, scopes in (
                ("owner", "local", ["admin"]),
                ("stranger", "elsewhere", ["admin"]),
                ("reader", "local", ["query", "read", "judge", "audit"]),
            )
        }
        app.close()
        with (
            common.open_client(service.url, keys["owner"]) as owner,
            common.open_client(service.url, keys["stranger"]) as stranger,
        ):
            found = list_owned_targets(owner)
            rows = []
            for route, addresses in found.items():
                targets = (addresses[0], None), (addresses[1], None)
                for who, http, status in (("stranger", stranger, 404), ("owner", owner, 200)):
                    if who == "owner" and not arguments.control:
                        continue
                    rows.append([route, who, *compare(http, targets, arguments.pairs, (status, 404))])
            with common.open_client(service.url, keys["reader"]) as reader:
                for route, hidden in list_hidden_targets(owner, reader).items():
                    refused = 422 if route == JUDGING else 404
                    rows.append([route, "reader", *compare(reader, hidden, arguments.pairs, (refused, refused))])
    common.table(["route", "asked by", "exists, ms", "does not, ms", "exists took longer"], rows)


if __name__ == "__main__":
    main()

"""What a soak measured, as tables."""

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

import common
from running import Fault
from soak.asking import Asked, Askers
from soak.verdict_checks import Body

MOST_TIMES = 3.0
"""The 99th percentile while healthy may be so many times the quiet one."""
WARM_SECONDS = 20.0
"""Of all traffic that are not counted as quiet: processes open connections and read what they keep."""


def report(
    faults: Sequence[Fault],
    results: Sequence[Body],
    updates: Sequence[tuple[float, int]],
    drained: float,
    used: Mapping[str, float],
) -> None:
    """Say what became of the posts, and how long each fault lasted."""
    began, ended = min(r["began"] for r in results), max(r["ended"] for r in results)
    first: dict[str, float] = {}
    for result in results:
        first[result["key"]] = min(first.get(result["key"], result["ended"]), result["ended"])
    faulty = sum(max(0.0, min(f.ended, ended) - max(f.began, began)) for f in faults)

    def whole(at: float) -> bool:
        return began <= at <= ended and not any(f.began <= at <= f.ended for f in faults)

    span, calm = ended - began, ended - began - faulty
    during = sum(n for at, n in updates if at <= ended)
    print(f"posting {span:.1f} s, of which {faulty:.1f} s in a fault; drained {drained:.1f} s later\n")
    common.table(
        ["rate", "all the time", "without a fault"],
        [
            ["posts/s", len(results) / span, sum(whole(r["ended"]) for r in results) / calm],
            ["verdicts accepted/s", len(first) / span, sum(map(whole, first.values())) / calm],
            ["memory updates/s", during / span, sum(n for at, n in updates if whole(at)) / calm],
        ],
    )
    total = sum(n for _, n in updates)
    print(f"\n{total} memory updates, {total / (span + drained):.0f} a second until the last one was applied\n")
    common.table(
        ["processor time", "s", "share of all cores", "ms a post"],
        [
            [name, seconds, seconds / span / (os.cpu_count() or 1), 1000 * seconds / len(results)]
            for name, seconds in sorted(used.items(), key=lambda pair: -pair[1])
        ],
    )
    print()
    waits = sorted(first.values())
    common.table(
        ["killed", "after s", "all parts answer again after s", "longest wait for an accepted post s"],
        [[f.what, f.began - began, f.ended - f.began, _gap(waits, f)] for f in faults],
    )
    again = sum(result["tries"] > 1 for result in results)
    print(f"\n{len(results)} posts of {len(first)} verdicts, {again} sent more than once")


def _gap(accepted: Sequence[float], fault: Fault) -> float:
    around = [fault.began, *(at for at in accepted if fault.began <= at <= fault.ended), fault.ended]
    return max(later - earlier for earlier, later in pairwise(around))


def report_questions(faults: Sequence[Fault], alone: Askers, loaded: Askers) -> list[str]:
    """Say how long questions took; what is wrong with that."""
    first_kill = min((fault.began for fault in faults), default=np.inf)
    warm = WARM_SECONDS + min((asked.began for asked in loaded.answered), default=np.inf)
    quiet = [asked for asked in loaded.answered if warm <= asked.began and asked.ended < first_kill]
    healthy = [a for a in loaded.answered if a.ended >= first_kill and not _meets(a, faults)]
    kinds = {
        "one client alone": alone.answered,
        "all traffic, quiet: before the first kill": quiet,
        "all traffic, healthy: after it, in no fault": healthy,
        "all traffic, in a fault": [asked for asked in loaded.answered if _meets(asked, faults)],
    }
    base = _percentiles(quiet or alone.answered)
    print()
    common.table(
        ["questions", "number", "p50 ms", "p95 ms", "p99 ms", "most ms", "p50 / quiet", "p99 / quiet"],
        [_describe(name, asked, base) for name, asked in kinds.items() if asked],
    )
    _report_failures(faults, loaded)
    _report_waits(faults, loaded.answered)
    missing = np.inf if faults else 0.0
    times = _percentiles(healthy)[2] / base[2] if healthy else missing
    return [] if times <= MOST_TIMES else [f"p99 while healthy is {times:.2f} times the quiet one"]


def _meets(asked: Asked, faults: Sequence[Fault]) -> bool:
    return any(asked.began <= fault.ended and fault.began <= asked.ended for fault in faults)


def _percentiles(asked: Sequence[Asked]) -> tuple[float, float, float, float]:
    p50, p95, p99, most = np.percentile([each.seconds for each in asked], [50, 95, 99, 100])
    return float(p50), float(p95), float(p99), float(most)


def _describe(name: str, asked: Sequence[Asked], base: Sequence[float]) -> list[object]:
    found = _percentiles(asked)
    return [name, len(asked), *(1000 * each for each in found), found[0] / base[0], found[2] / base[2]]


def _report_failures(faults: Sequence[Fault], loaded: Askers) -> None:
    def in_fault(at: float) -> bool:
        return any(fault.began <= at <= fault.ended for fault in faults)

    counts: dict[str, Callable[[float], bool]] = {
        "in a fault": in_fault,
        "at other times": lambda at: not in_fault(at),
    }
    print(f"\n{loaded.closed} shown passages were not for everyone. Sent again until an answer stood:")
    for when, counting in counts.items():
        told = ", ".join(f"{n} {how}" for how, n in sorted(loaded.failures.count(counting).items()))
        print(f"- {when}: {told or 'nothing'}")


def _report_waits(faults: Sequence[Fault], answered: Sequence[Asked]) -> None:
    kinds = sorted({fault.what for fault in faults})
    print()
    rows = []
    for kind in kinds:
        met = [fault for fault in faults if fault.what == kind]
        waits = [asked.seconds for asked in answered if _meets(asked, met)]
        lasted = [fault.ended - fault.began for fault in met]
        rows.append([kind, len(met), float(np.median(lasted)), max(lasted), len(waits), max(waits, default=0.0)])
    common.table(
        ["killed", "times", "all parts again, median s", "at most s", "questions meanwhile", "longest s"], rows
    )

"""Metrics that are told of many values at once."""

import numpy as np
from prometheus_client import CollectorRegistry, Histogram

from engram.telemetry.metrics import Shares

BUCKETS = (0.1, 0.5, 1.0)


def test_batched_observations_count_as_single_ones() -> None:
    values = [0.0, 0.1, 0.1000001, 0.5, 0.75, 1.0, 1.5]  # bounds belong to their bucket; the last to none
    found = []
    for kind in (Shares, Histogram):
        registry = CollectorRegistry()
        of = kind("share", "Shares.", ["channel"], registry=registry, buckets=BUCKETS).labels("task")
        if isinstance(of, Shares):
            of.observe_all(np.array(values[:3]))
            of.observe_all(np.array(values[3:]))
        else:
            for value in values:
                of.observe(value)
        samples = [sample for metric in registry.collect() for sample in metric.samples]
        found.append({(s.name, s.labels.get("le")): s.value for s in samples if not s.name.endswith("_created")})
    assert found[0] == found[1]
    assert found[0]["share_bucket", "0.5"] == 4.0
    assert found[0]["share_count", None] == 7.0

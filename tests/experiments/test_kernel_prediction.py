"""What is predicted of a case once its launches are counted; the compiler's part: test_compile."""

import itertools

import pytest

from experiments import kernel_prediction
from experiments.harness.bench.shapes import PASSES
from experiments.harness.core import record
from lsa.cost import PEAKS

GPU = kernel_prediction.GPU


def case(shape=(1, 1024, 12, 64), kind="forward", normalized="no"):
    return {
        "shapes": "gpt2", **dict(zip(kernel_prediction.SHAPE, shape, strict=True)),
        "normalized": normalized, "pass": kind, "launches": 2, "least": 1e-5, "paced": 3e-5,
        "stored": 2e-5,
    }  # fmt: skip


def predictions(row, hosts):
    near = kernel_prediction.nearness(GPU)
    rows = kernel_prediction.expected(row, near, hosts, GPU)
    assert all([*one] == [*kernel_prediction.TABLES["expected"].columns] for one in rows)
    return {(one["implementation"], one["launch"]): one for one in rows}


@pytest.mark.parametrize(("kind", "normalized"), itertools.product(PASSES, ("no", "yes")))
def test_a_call_is_predicted_as_graph_and_from_python_and_its_peer_beside_it(kind, normalized):
    hosts = record.load("host_time")
    assert hosts
    found = predictions(case(kind=kind, normalized=normalized), hosts)
    assert set(found) == {("ours", "graph"), ("ours", "eager"), ("stored states", "graph")}
    graph, eager = found["ours", "graph"], found["ours", "eager"]
    host = kernel_prediction.host_seconds(hosts, case(kind=kind, normalized=normalized))
    assert 3e-5 < host[0] < host[1] < 1e-3
    assert eager["low"] == max(graph["low"], host[0])
    assert eager["high"] == graph["high"] + host[1]
    least = (8 if kind == "forward" else 22) * 64 * 1024 * 12 / PEAKS[GPU].bytes
    for one in found.values():
        assert 0 < one["low"] < one["high"]
        assert one["share_low"] == pytest.approx(least / one["high"])
        assert one["share_high"] == pytest.approx(least / one["low"])
    plain = predictions(case(kind=kind), [])
    assert ("ours", "eager") not in plain
    slower = found["stored states", "graph"]["low"] - plain["stored states", "graph"]["low"]
    assert (slower > 0) == (normalized == "yes")


def test_a_host_is_that_of_the_same_call():
    columns = ("call", "pass", "normalized", "feature_map", "low", "high")
    rows = [
        ("linear_attention", "forward", "no", "identity", 2.0, 3.0),
        ("linear_attention", "forward", "no", "elu_plus_one", 0.1, 9.0),
        ("linear_attention", "forward", "yes", "identity", 0.2, 9.0),
        ("linear_attention", "forward+backward", "no", "identity", 0.3, 9.0),
        ("empty", "forward", "no", "identity", 0.4, 9.0),
        ("linear_attention", "forward", "no", "identity", 1.0, 2.5),
    ]
    table = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    assert kernel_prediction.host_seconds([{"tables": {"rows": table}}], case()) == (1.0, 3.0)


def test_the_stored_prediction_holds_all_that_a_measurement_can_contradict():
    (stored,) = record.load("kernel_prediction")
    tables = stored["tables"]
    keys = ("implementation", "launch", "normalized", "pass", "shapes")
    found = set(zip(*(tables["expected"][key] for key in keys), strict=True))
    each = list(itertools.product(("no", "yes"), PASSES, ("ladder", "gpt2")))
    calls = [("ours", "graph"), ("ours", "eager"), ("stored states", "graph")]
    assert found == {(*call, *rest) for call in calls for rest in each}
    assert len(tables["expected"]["low"]) == 3 * len(tables["rows"]["least"])
    assert sorted(tables["hosts"]["record"]) == sorted(
        run["digest"] for run in record.load("host_time")
    )

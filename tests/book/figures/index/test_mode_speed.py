"""Limits beside measured curves, and what is shown of them when a record has none."""

import pytest

from book.figures.index import mode_speed
from book.figures.lib import records
from book.figures.three_modes import chunk_sizes, roofline
from experiments import mode_speed as experiment
from experiments.harness.core import record
from lsa.attention.compiled import CHUNK_SIZE
from lsa.cost import PEAKS, least_bytes, mode_cost, training_cost
from tests.book.figures.made_up import page_data

OLD = next(one for one in record.load("mode_speed") if one["provenance"]["device"]["kind"] == "cpu")


@pytest.fixture
def measured():
    """The stored record with limits and chunk sizes made up, as a new run would have them."""
    sizes = [16, 32, 64, 128]
    count = 2 * len(sizes)
    chunks = {
        "pass": ["forward"] * len(sizes) + ["forward+backward"] * len(sizes),
        "length": [4096] * count,
        "chunk_size": sizes * 2,
        "seconds": [0.004, 0.002, 0.001, 0.003] * 2,
        "low": [0.001] * count,
        "high": [0.005] * count,
        "repeats": [5] * count,
    }
    limits = {"copy": [20e9], "matmul": [200e9], "call": [1e-6]}
    rows = OLD["tables"]["rows"]
    return {**OLD, "tables": {"rows": rows, "limits": limits, "chunks": chunks}}


@pytest.fixture
def without(measured):
    return {**measured, "tables": {"rows": measured["tables"]["rows"]}}


def test_a_record_without_limits_has_no_roofline(without):
    assert mode_speed.limits(without) is None
    assert mode_speed.least_seconds(without, "chunked", 1024, "forward") is None
    assert (
        mode_speed.rooflines(records=[without])
        ._repr_markdown_()
        .startswith("*The speeds of a copy")
    )
    assert not chunk_sizes.figure(records=[without])
    with pytest.raises(LookupError, match="no chunk sizes measured at 4096"):
        chunk_sizes.level(without, 4096, "forward")


def test_every_curve_has_its_limit_and_lies_above_it(measured):
    figure = mode_speed.rooflines(records=[measured])
    curves = {(one.role, one.keys["mode"], one.keys["pass"]): one for one in figure.curves}
    assert len(curves) == 16
    for (role, mode, direction), curve in curves.items():
        assert curve.color == mode, "a limit has the colour of its curve"
        if role == "series":
            limit = curves["ceiling", mode, direction]
            assert limit.columns["length"] == curve.columns["length"]
            assert min(curve.columns["times"]) > 0


@pytest.mark.parametrize("mode", ["softmax", "attention", "recurrent", "chunked"])
def test_a_limit_is_the_arithmetic_of_the_timed_program_and_charges_no_call(measured, mode):
    measured["tables"]["limits"]["call"] = [1.0]
    cost = mode_cost(mode, 8192, 64, 64, chunk_size=CHUNK_SIZE, itemsize=4)
    found = mode_speed.least_seconds(measured, mode, 8192, "forward")
    assert found == pytest.approx(cost.flops / 200e9)


def test_traffic_that_cannot_be_avoided_is_inputs_and_outputs(measured):
    measured["tables"]["limits"]["matmul"] = [1e30]
    for direction, training in (("forward", False), ("forward+backward", True)):
        least = least_bytes(4096, 64, 64, itemsize=4, training=training) / 20e9
        found = mode_speed.least_seconds(measured, "chunked", 4096, direction)
        assert found == pytest.approx(least)


def test_all_heads_are_charged_and_steps_once(measured):
    measured["config"] = {**measured["config"], "heads": 12}
    one = training_cost("chunked", 1000, 64, 64, chunk_size=CHUNK_SIZE, itemsize=4)
    all_heads = mode_speed.cost(measured, "chunked", 1000, "forward+backward")
    assert all_heads.flops == 12 * one.flops
    assert all_heads.bytes == 12 * one.bytes
    assert all_heads.steps == one.steps


def test_the_fastest_chunk_and_the_prediction_beside_it(measured):
    assert 64 in chunk_sizes.level(measured, 4096, "forward")
    figure = chunk_sizes.figure(records=[measured])
    shown = {one.name for one in figure.curves}
    assert {"arithmetic", "traffic", "predicted, both"} < shown


def test_the_rooflines_stage_shows_data_sheets_and_stored_runs():
    script = roofline.data()
    devices = page_data(script)
    by_name = {one["name"]: one for one in devices}
    for name, peak in PEAKS.items():
        assert by_name[f"NVIDIA {name}"]["flops"] == peak.flops
        assert by_name[f"NVIDIA {name}"]["step"] == peak.step
    here = by_name[f"{records.device_name(OLD)} (measured here)"]
    points = records.rows(OLD, **{"pass": "forward"})
    assert [row["seconds"] for row in points] == [point[2] for point in here["points"]]
    assert here["item"] == mode_speed.ITEM_BYTES[OLD["config"]["dtype"]]
    assert {*mode_speed.ITEM_BYTES} >= {
        run.config["dtype"] for kind in ("cpu", "cuda") for run in experiment.runs(kind, False)
    }

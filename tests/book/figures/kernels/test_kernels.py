"""The chapter on kernels: its figures before and after a race, and the page without Triton."""

import math
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import jupytext
import pytest
import torch

from book.explorable.model import resolve
from book.explorable.page import page
from book.figures.kernels import design_bytes, kernel_prediction, kernel_speed
from experiments import kernel_speed as experiment
from experiments.harness.core import record
from tests.book.figures.made_up import made, store_run

ROOT = Path(__file__).resolve().parents[4]
WITHOUT_TRITON = """
import importlib.machinery
real = importlib.machinery.PathFinder.find_spec
def find_spec(name, path=None, target=None):
    return None if name.split(".")[0] == "triton" else real(name, path, target)
importlib.machinery.PathFinder.find_spec = find_spec
"""


def fabricated(run, rate):
    """A record such as a GPU would leave, with made-up times. For this test alone."""
    rows = {}
    for implementation in ("ours", "ours, normalised", "softmax, flash", "fla chunk"):
        for direction in experiment.PASSES:
            for launch in experiment.LAUNCHES:
                B, T, H, D = run.config["shape"]
                least = (8 if direction == "forward" else 22) * D * B * T * H
                seconds = least / rate
                row = {
                    "implementation": implementation, "pass": direction, "launch": launch,
                    "batch": B, "length": T, "heads": H, "width": D, "seconds": seconds,
                    "low": 0.9 * seconds, "high": 1.1 * seconds, "repeats": 7, "rate": rate,
                    "share": 0.25,
                }  # fmt: skip
                for column, value in row.items():
                    rows.setdefault(column, []).append(value)
    tables = {
        "errors": {"implementation": ["ours"], "tensor": ["o"], "error": [0.001]},
        "limits": {"cache": [2**26], "copy": [rate], "matmul": [rate]},
        "rows": rows,
    }
    device = {"kind": "cuda", "name": "Imagined", "count": 1, "memory_bytes": 2**36}
    return made("kernel_speed", run.name, run.config, tables, device)


def test_the_race_is_missing_until_it_is_run_and_then_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "load", partial(record.load, results=tmp_path))
    assert not kernel_speed.figure()
    for run in experiment.runs("cuda", smoke=False):
        store_run(tmp_path, fabricated(run, 1e12))
    figure = kernel_speed.figure()
    view = resolve(figure)
    assert {trace.curve.name for trace in view.traces} == {
        "ours", "ours, normalised", "softmax, flash", "fla chunk",
    }  # fmt: skip
    for trace in view.traces:
        # Forwards (8, 1024, 8, 64) moves 8 x 64 B a token and head: 34 MB, less than the cache.
        assert list(trace.y) == [
            kernel_speed.shape_label(*shape) + (" *" if shape == (8, 1024, 8, 64) else "")
            for shape in sorted(experiment.LADDER, key=math.prod)
        ]
        assert set(trace.x) == {25} and max(trace.low) < 25 < min(trace.high)
    both = resolve(figure, {"pass": "forward+backward"})
    assert not any(y.endswith("*") for y in both.traces[0].y)
    other = resolve(figure, {"shapes": "gpt2", "x": "ms"})
    assert len(other.traces[0].y) == len(experiment.GPT2)
    assert "Imagined" in page(figure)


def test_designs_are_drawn_as_they_are_counted():
    figure = design_bytes.figure()
    assert not figure.provenance  # nothing in it was measured
    view = resolve(figure, {"width": "128", "pass": "forward"})
    found = {trace.curve.name: trace for trace in view.traces}
    stored_states = found["every chunk's state stored"]
    assert set(stored_states.y) == {2.5 * 8 * 128}
    assert set(found["least possible"].y) == {8 * 128}
    segments = found["segments, three passes back"]
    assert min(segments.y) == 8 * 128 and segments.y[0] > stored_states.y[0]


def test_published_shares_are_those_of_the_least_traffic():
    """One by hand: 1 × 8192 × 96 × 128 forwards in 0.682 ms."""
    share = kernel_speed.published_share(1, 8192, 96, 128, 0.682, False)
    assert share == pytest.approx(100 * 8 * 128 * 8192 * 96 / 3.35e12 / 0.682e-3)
    assert 35 < share < 36
    figure = kernel_speed.published()
    for trace in resolve(figure).traces:
        assert all(0 < x < 50 for x in trace.x)


@pytest.mark.slow
def test_the_chapter_runs_without_triton(tmp_path):
    """With it, where it is installed, the built book runs the chapter."""
    notebook = jupytext.read(ROOT / "book" / "kernels.md")
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    (tmp_path / "chapter.py").write_text("\n".join([WITHOUT_TRITON, *cells]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "chapter.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'book'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "not run: Triton is not installed" in done.stdout


def test_the_package_plans_as_the_chapter_says():
    """The cuts of plain heads of 64, and the 30 d of normalised ones."""
    pytest.importorskip("triton")
    from lsa.attention.triton.tuning.gpu import HOPPER
    from lsa.attention.triton.tuning.plan import Case, plan

    def planned(heads, normalize):
        shape = (heads, design_bytes.FEW_LENGTH, 64, 64)
        return plan(Case(*shape, torch.bfloat16, normalize, "identity", False, HOPPER))

    cuts = [planned(heads, normalize=False).G for heads in (12, 132)]
    assert cuts == [design_bytes.numbers()["few_segments"], 1]
    many = planned(1024, normalize=True)
    # q, k, v in, o out; the pass for dq reads q too; one pass for dk and dv: 4 + 5 + 6 vectors.
    assert (many.G, many.one_pass) == (1, None)
    assert many.form_delta
    assert many.dkv


def test_one_pass_is_drawn_where_it_fits():
    curves = [curve for curve in design_bytes.figure().curves if "design" in curve.keys]
    assert {one.keys["width"] for one in curves if one.keys["design"] == "one pass"} == {"64"}


def test_a_measured_time_stands_beside_the_predicted_one(monkeypatch):
    (row, *_) = kernel_prediction.account()
    low, high = kernel_prediction.expected(row)
    assert 0 < low < high
    keys = ("batch", "length", "heads", "width", "pass")
    measured = {key: [row[key]] for key in keys} | {
        "implementation": ["ours"], "launch": ["graph"], "low": [low], "high": [high],
    }  # fmt: skip
    run = {
        "provenance": {"device": {"name": "NVIDIA H100 80GB HBM3"}},
        "tables": {"rows": measured},
    }
    monkeypatch.setattr(kernel_prediction, "have", lambda name: [run])
    assert kernel_prediction.measured(row) == (low, high)
    run["provenance"]["device"]["name"] = "NVIDIA H200"
    assert kernel_prediction.measured(row) is None


def test_a_bet_is_settled_by_the_measured_call(monkeypatch):
    monkeypatch.setattr(kernel_prediction, "measured", lambda row: None)
    open_bet = kernel_prediction.bet()
    assert open_bet["measured"] is None
    assert 0 < open_bet["fla"] < open_bet["low"] < open_bet["high"] <= 100
    monkeypatch.setattr(kernel_prediction, "measured", kernel_prediction.expected)
    settled = kernel_prediction.bet()
    assert open_bet["low"] < settled["measured"] < open_bet["high"]
    assert f'"measured":{settled["measured"]}' in kernel_prediction.data().data


def test_the_prediction_is_drawn_as_graph_and_from_python_with_normalised_peers():
    figure = kernel_prediction.figure()
    for launch, peers in (("graph", 2), ("eager", 0)):
        for shapes in kernel_speed.LADDERS:
            view = resolve(figure, {"launch": launch, "shapes": shapes})
            names = [trace.curve.name for trace in view.traces]
            assert sum("ours" in name for name in names) == 2
            assert sum("stored states" in name for name in names) == peers
            assert any("fla" in name for name in names) == (shapes == "ladder")

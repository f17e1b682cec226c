"""Kernel speed without a GPU: everything but the timing of graphs, which only CUDA has."""

import sys

import pytest

from experiments import kernel_speed
from experiments.harness.core.plan import DeviceLostError
from experiments.harness.core.tables import check_declared
from tests.experiments.command import bare_session, go_on
from tests.experiments.stand_in import libraries

SHAPE = [1, 65, 2, 16]
CONFIG = {"shape": SHAPE, "dtype": "bfloat16", "seed": 0}


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(
        kernel_speed, "limits", lambda _: {"cache": 2**16, "copy": 1e10, "matmul": 1e11}
    )
    return bare_session()


def test_a_race_compares_times_and_goes_on_where_one_fails(session, monkeypatch):
    def broken(q, k, v):
        raise ValueError("not for this shape\nsecond line")

    monkeypatch.setattr(
        kernel_speed,
        "implementations",
        lambda session, found=kernel_speed.implementations: {
            **found(session),
            "other": broken,
            "infinite": lambda q, k, v: v * float("inf") * q.sum() * k.sum(),
        },
    )
    outcome = kernel_speed.perform(CONFIG, session)
    assert outcome.complete
    tables = outcome.tables
    check_declared(tables, kernel_speed.TABLES, kernel_speed.EXPERIMENT.units, complete=True)
    assert set(tables["errors"]["implementation"]) == {"ours", "ours, normalised", "ours, fading"}
    assert max(tables["errors"]["error"]) <= 3.3e-3
    rows = tables["rows"]
    assert set(rows["launch"]) == {"eager"}  # a graph needs CUDA, and its absence is told
    assert len(rows["seconds"]) == 2 * 5
    for rate, seconds, pass_name in zip(rows["rate"], rows["seconds"], rows["pass"], strict=True):
        least = (8 if pass_name == "forward" else 22) * 16 * 65 * 2
        assert rate == pytest.approx(least / seconds, rel=1e-3)
    assert any("ValueError: not for this shape" in warning for warning in session.warnings)
    assert not any("second line" in warning for warning in session.warnings)
    assert any("infinite" in warning and "error of o" in warning for warning in session.warnings)


def test_a_race_goes_on_where_it_was_left_and_without_who_lost_the_device(session, monkeypatch):
    """A first attempt gets as far as one that loses the device; the second does all the rest."""
    called = []

    def fault(q, k, v):
        called.append("fault")
        raise DeviceLostError("an illegal memory access was encountered")

    ours = kernel_speed.implementations(session)["ours"]
    entered = {"ours": ours, "fault": fault, "after": ours}
    monkeypatch.setattr(kernel_speed, "implementations", lambda session: entered)
    kept = []
    session.save = kept.append
    with pytest.raises(DeviceLostError):
        kernel_speed.perform(CONFIG, session)
    tables = kept[-1]
    assert tables["lost"]["implementation"] == ["fault"]
    assert set(tables["errors"]["implementation"]) == {"ours"}

    go_on(session, tables)
    monkeypatch.setattr(kernel_speed, "limits", lambda _: pytest.fail("measured again"))
    turns = []
    whole = kernel_speed.measure_in_turns
    monkeypatch.setattr(kernel_speed, "measure_in_turns", lambda *a: turns.append(1) or whole(*a))
    outcome = kernel_speed.perform(CONFIG, session)
    assert outcome.complete and called == ["fault"] and len(turns) == 2
    check_declared(
        outcome.tables, kernel_speed.TABLES, kernel_speed.EXPERIMENT.units, complete=True
    )
    assert outcome.tables["errors"]["implementation"] == ["ours"] * 4 + ["after"] * 4
    assert set(outcome.tables["rows"]["implementation"]) == {"ours", "after"}

    go_on(session, outcome.tables)
    before = len(outcome.tables["rows"]["seconds"])
    assert len(kernel_speed.perform(CONFIG, session).tables["rows"]["seconds"]) == before
    assert len(turns) == 2


@pytest.fixture
def fla(monkeypatch):
    """A library that computes what ours does, under its own names and normalised if asked."""
    modules = libraries()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return modules["fla"]


@pytest.mark.parametrize(
    ("version", "races"),
    [("0.5.1", True), ("0.6", True), ("0.10.0rc1", True), ("0.5.0", False), ("0.4.2", False)],
)
def test_a_library_whose_gradient_is_wrong_is_left_out(version, races, fla, session):
    fla.__version__ = version
    name = "fla chunk, normalised"
    assert (name in kernel_speed.implementations(session)) == races
    left_out = f"{name}: ValueError: version {version}, whose gradient of k is wrong"
    assert any(warning.startswith(left_out) for warning in session.warnings) != races

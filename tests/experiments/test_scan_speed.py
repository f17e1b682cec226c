"""The selective scan's race, hardly timed, and its place in the plan of a GPU."""

import pytest

from experiments import scan_speed
from tests.experiments.command import bare_session, performed


def test_all_that_a_cpu_has_is_compared_and_timed(tmp_path):
    (run,) = performed(tmp_path, "scan_speed")
    tables = run["tables"]
    assert tables["rows"]["implementation"] == ["steps", "tree"] * 2
    assert tables["rows"]["pass"] == ["forward"] * 2 + ["forward+backward"] * 2
    assert len(tables["errors"]["error"]) == 2 * 6
    assert max(tables["errors"]["error"]) <= 1e-5
    least = [4 * 16 * (3 * 4 + 2 * 2)] * 2 + [4 * 16 * (8 * 4 + 6 * 2)] * 2
    for rate, seconds, size in zip(
        tables["rows"]["rate"], tables["rows"]["seconds"], least, strict=True
    ):
        assert rate == pytest.approx(size / seconds, rel=1e-3)


def test_mambas_own_sees_its_layout_and_one_that_fails_is_told(monkeypatch):
    """selective_scan_fn takes [B, D, T] and gives it back; its inputs are not turned on the way."""
    seen = []

    def selective_scan_fn(u, delta, A, B, C):
        seen.append(all(x.is_contiguous() for x in (u, delta, B, C)))
        y, _ = scan_speed.selective_scan(
            *(x.transpose(1, 2) for x in (u, delta)), A, *(x.transpose(1, 2) for x in (B, C))
        )
        return y.transpose(1, 2)

    def broken(*inputs):
        raise ValueError("no kernel here\nand a second line")

    names = {
        "mamba_ssm": lambda *x: scan_speed._by_mamba(selective_scan_fn, *x),
        "kernel": broken,
    }
    monkeypatch.setattr(scan_speed, "implementations", lambda device, session: names)
    monkeypatch.setattr(scan_speed, "copy_rate", lambda device, size: 1e10)
    (run,), session = scan_speed.runs("cpu", smoke=True), bare_session()
    tables = scan_speed.perform(run.config, session).tables
    assert all(seen)
    assert set(tables["errors"]["implementation"]) == {"mamba_ssm"}
    assert max(tables["errors"]["error"]) <= 1e-5
    assert tables["rows"]["implementation"] == ["mamba_ssm"] * 2
    assert any("kernel: ValueError: no kernel here" in told for told in session.warnings)

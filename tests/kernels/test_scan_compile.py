"""The selective scan's kernels as the compiler makes them, on a machine without a GPU."""

import pytest

pytest.importorskip("triton")

from experiments import scan_build
from experiments.harness.bench.compiling import build, kernel_digests, record_launches
from experiments.harness.core import record
from lsa.scans import kernels
from lsa.scans.kernels.selective import segments


def test_stored_kernels_are_these_and_spill_nothing():
    """scan_build compiles what layers launch, for Ampere and Hopper.

    Where this fails for a digest: python -m experiments run scan_build --force, and commit it.
    """
    stored = list(record.load("scan_build"))
    assert {run["config"]["arch"] for run in stored} == {80, 90}
    for run in stored:
        sources = run["tables"]["sources"]
        assert dict(zip(sources["file"], sources["digest"], strict=True)) == kernel_digests(kernels)
        rows = run["tables"]["rows"]
        assert set(rows["spilled"]) == {0}
        assert set(rows["warnings"]) == {"none"}
        assert {name.split(":")[0] for name in rows["kernel"]} == {
            "ends_kernel", "carry_kernel", "outputs_kernel", "gradients_kernel",
        }  # fmt: skip


def test_the_state_stays_in_registers_of_one_lane():
    """No shared memory, nothing spilled, and no more instructions than the exponentials hide."""
    config = {"batch": 1, "length": 1024, "channels": 1536, "segments": 1}
    made = record_launches(lambda: scan_build.call(config, "euler", "float32", 16))
    assert [launched.name for launched in made] == ["outputs_kernel", "gradients_kernel"]
    built = build(made[0], 90)
    assert (built.spilled, built.shared) == (0, 0)
    assert scan_build.instructions(made[0], built, 16) <= 8


def test_segments_fill_the_device_and_cover_the_sequence():
    for warps in (1, 48, 96, 400, 1056, 5000):
        for T in (1, 63, 64, 1000, 4096, 65537):
            G, L = segments(warps, T, 132)
            assert L % 8 == 0
            assert (G - 1) * L < T <= G * L
            assert G == 1 or L >= 64 or T // G >= 56
            assert G == 1 or warps < 1056
    assert segments(48, 65536, 132)[0] * 48 >= 8 * 132

"""How sequences are cut, by the account of kernel_prediction for the compiled kernels."""

from itertools import product
from math import ceil

import pytest
import torch

pytest.importorskip("triton")

from experiments.harness import record
from lsa.cost import PEAKS, design_cost
from lsa.cost.rooflines import DEPENDENT_CYCLES
from lsa.linear_attention.kernels.gpu import HOPPER
from lsa.linear_attention.kernels.plans import NEEDED, Case, plan
from lsa.linear_attention.kernels.segments import LONGEST_RECOVERED, SEGMENT_MULTIPLE

PEAK, SLOTS = PEAKS["H100 SXM"], HOPPER.multiprocessors
CALLS = list(product((64, 128), (False, True), ("identity", "elu_plus_one")))


def compiled(width, normalize, feature_map):
    """The stored rows of a call that walk over the tokens, by kernel."""
    run = next(
        run
        for run in record.load("kernel_build")
        if run["config"]["arch"] == 90 and run["config"]["triton"] == "3.7.1"
    )
    rows = run["tables"]["rows"]
    wanted = {
        "mode": "chunked", "decay": "no", "width": width, "feature_map": feature_map,
        "normalized": "yes" if normalize else "no",
    }  # fmt: skip
    found = (dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True))
    return {
        row["kernel"]: row
        for row in found
        if row["instructions"] and all(row[key] == value for key, value in wanted.items())
    }


def seconds(rows, planned, heads, T, width, G, L):
    """s of a call, forwards and with its gradients."""
    launches = {
        "forward_kernel": planned.forward, "dq_kernel": planned.dq, "dkv_kernel:dk": planned.dk,
        "dkv_kernel:dv": planned.dv, "dkv_kernel:dk dv": planned.dkv,
        "one_pass_kernel": planned.one_pass,
    }  # fmt: skip
    design = "one pass" if planned.one_pass else "three passes"
    spent = [
        design_cost(design, T, heads, width, gradients=gradients, cut=(G, L)).states
        * heads * T / PEAK.bytes
        for gradients in (False, True)
    ]  # fmt: skip
    for kernel, row in rows.items():
        sums = kernel.startswith("sums")
        if sums and G == 1:
            continue
        if sums:
            segments, blocks = G - 1, ceil(width / 64) * ceil(width / 128)
            bytes_ = 4 * width * (T - L if kernel.endswith("R") else (G - 1) * L) / T
        else:
            launch = launches[kernel]
            segments, blocks = G, ceil(width / launch.BK) * ceil(width / launch.BV)
            bytes_ = row["traffic"]
        programs = heads * segments * blocks
        walk = row["instructions"] / (row["warps"] * blocks) * min(L, T) / PEAK.clock
        longest = max(
            bytes_ * heads * T / PEAK.bytes,
            walk * row["warps"] / 4 * ceil(programs / SLOTS),
            walk * DEPENDENT_CYCLES * ceil(programs / (row["resident"] * SLOTS)),
        )
        spent[1] += longest
        if kernel in ("sums_kernel", "forward_kernel"):
            spent[0] += longest
    return spent


def cuts(T, longest):
    least = 1 if longest is None else ceil(T / longest)
    for G in range(least, max(least, min(T // SEGMENT_MULTIPLE, 64)) + 1):
        L = ceil(T / (G * SEGMENT_MULTIPLE)) * SEGMENT_MULTIPLE
        yield ceil(T / L), L


def planned_call(width, normalize, feature_map, heads, T):
    case = Case(
        heads, T, width, width, torch.bfloat16, normalize, feature_map, False, HOPPER
    )  # fmt: skip
    return plan(case)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_no_other_cut_is_much_faster_by_account(call):
    rows, lost = compiled(*call), []
    for heads in (1, 2, 3, 6, 8, 12, 16, 24, 40, 48, 64, 96, 128, 132, 160, 256, 512):
        for T in (1024, 2048, 8192, 16384, 65536, 131072):
            planned = planned_call(*call, heads, T)
            longest = LONGEST_RECOVERED if planned.one_pass else None
            here = (rows, planned, heads, T, call[0])
            best = min(seconds(*here, *cut)[1] for cut in cuts(T, longest))
            lost.append(seconds(*here, planned.G, planned.L)[1] / best - 1)
    assert sum(lost) / len(lost) < 0.02
    assert max(lost) < 0.17


def test_programs_that_are_all_resident_are_not_cut():
    """192 programs on 132 multiprocessors: forwards 240 µs, in two segments 304."""
    planned = planned_call(128, False, "identity", 96, 8192)
    assert planned.G == 1
    rows = compiled(128, False, "identity")
    here = (rows, planned, 96, 8192, 128)
    uncut, cut = (seconds(*here, G, 8192 // G)[0] for G in (1, 2))
    assert uncut == pytest.approx(240e-6, rel=0.01) and cut > 1.2 * uncut


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_programs_that_memory_needs_are_as_many_as_compiled(call):
    width, normalize, feature_map = call
    speed = PEAK.bytes / (PEAK.clock * SLOTS)
    needed = [
        DEPENDENT_CYCLES * row["instructions"] / row["warps"] / row["traffic"] * speed
        for kernel, row in compiled(*call).items()
        if not kernel.startswith("sums")
    ]
    stated = NEEDED[True, width][2 * normalize + (feature_map != "identity")]
    assert sum(needed) / len(needed) == pytest.approx(stated, rel=0.15)

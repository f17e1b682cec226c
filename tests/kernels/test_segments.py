"""How sequences are cut, by the account of kernel_prediction for the compiled kernels."""

from dataclasses import replace
from functools import cache
from itertools import product
from math import ceil

import pytest
import torch

pytest.importorskip("triton")

from experiments.harness.bench.compiling import build, record_launches
from experiments.harness.bench.traffic import traffic
from experiments.harness.core import record
from experiments.kernel_build import instructions
from lsa.attention.call import Call
from lsa.attention.triton.chunked import passes as chunked
from lsa.attention.triton.tuning.gpu import HOPPER
from lsa.attention.triton.tuning.plan import Case, plan, plan_of
from lsa.attention.triton.tuning.segments import LONGEST_RECOVERED, SEGMENT_MULTIPLE
from lsa.attention.triton.tuning.tables import NEEDED, NEEDED_TOGETHER
from lsa.cost import PEAKS, design_cost
from lsa.cost.rooflines import DEPENDENT_CYCLES

PEAK, SLOTS = PEAKS["H100 SXM"], HOPPER.multiprocessors
CALLS = list(product((64, 128), (False, True), ("identity", "elu_plus_one")))


def stored(width, normalize, feature_map):
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


@cache
def compiled(width, normalize, feature_map, together):
    """The rows of a call: those stored, and compiled where it was not stored in this way.

    together: dk and dv in one pass.
    """
    rows = stored(width, normalize, feature_map)
    wanted = {"dkv_kernel:dk dv"} if together else {"dkv_kernel:dk", "dkv_kernel:dv"}
    config = {"batch": 1, "length": 4096, "heads": 32}
    q = torch.empty(1, 4096, 32, width, dtype=torch.bfloat16, device="meta")
    problem = Call(q, q, q, normalize=normalize, feature_map=feature_map)
    planned = plan_of(problem, (4, 1024))
    if planned.one_pass:
        return rows
    if not together:
        planned = replace(planned, dkv=None)
    elif not planned.dkv:
        alike = problem._replace(q=q.expand(8, -1, -1, -1), v=q.expand(8, -1, -1, -1))
        planned = replace(planned, dkv=plan_of(alike, (1, 4096)).dkv)
    rows = {name: row for name, row in rows.items() if not name.startswith("dkv") or name in wanted}

    def call():
        out = chunked.forward(problem, plan=planned)
        chunked.backward(problem, out, q, None, None, plan=planned)

    for launched in record_launches(call):
        if launched.name in wanted - set(rows):
            built = build(launched, 90)
            rows[launched.name] = {
                "instructions": instructions(launched, built, config),
                "warps": launched.options["num_warps"],
                "resident": built.resident,
                "traffic": traffic(launched.arguments, launched.name),
            }
    return rows


def seconds(rows, planned, heads, T, width, G, L):
    """s of a call, forwards and with its gradients."""
    launches = {
        "forward_kernel": planned.forward, "dq_kernel": planned.dq, "dkv_kernel:dk": planned.dk,
        "dkv_kernel:dv": planned.dv, "dkv_kernel:dk dv": planned.dkv or planned.dk,
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
    lost = []
    for heads in (1, 2, 3, 6, 8, 12, 16, 24, 40, 48, 64, 96, 128, 132, 160, 256, 512):
        for T in (1024, 2048, 8192, 16384, 65536, 131072):
            planned = planned_call(*call, heads, T)
            longest = LONGEST_RECOVERED if planned.one_pass else None
            rows = compiled(*call, bool(planned.dkv))
            here = (rows, planned, heads, T, call[0])
            best = min(seconds(*here, *cut)[1] for cut in cuts(T, longest))
            lost.append(seconds(*here, planned.G, planned.L)[1] / best - 1)
    assert sum(lost) / len(lost) < 0.02
    assert max(lost) < 0.17


def test_programs_that_are_all_resident_are_not_cut():
    """192 programs on 132 multiprocessors: forwards 240 µs, in two segments 304."""
    planned = planned_call(128, False, "identity", 96, 8192)
    assert planned.G == 1
    here = (compiled(128, False, "identity", bool(planned.dkv)), planned, 96, 8192, 128)
    uncut, cut = (seconds(*here, G, 8192 // G)[0] for G in (1, 2))
    assert uncut == pytest.approx(240e-6, rel=0.01) and cut > 1.2 * uncut


@pytest.mark.parametrize(("heads", "T", "together"), [(256, 4096, True), (64, 2048, False)])
def test_dk_and_dv_share_a_pass_where_heads_are_many(heads, T, together):
    """By account 1.12 ms for 1.28, but of 64 heads uncut longer than apart."""
    call = (128, False, "identity")
    planned = planned_call(*call, heads, T)
    assert bool(planned.dkv) == together
    other = replace(planned, dkv=None if together else planned_call(*call, 256, 4096).dkv)
    found, otherwise = (
        seconds(compiled(*call, bool(one.dkv)), one, heads, T, 128, planned.G, planned.L)[1]
        for one in (planned, other)
    )
    assert found < 0.95 * otherwise


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_programs_that_memory_needs_are_as_many_as_compiled(call):
    width, normalize, feature_map = call
    column = 2 * normalize + (feature_map != "identity")

    def needed(row):
        speed = PEAK.bytes / (PEAK.clock * SLOTS)
        return DEPENDENT_CYCLES * row["instructions"] / row["warps"] / row["traffic"] * speed

    together = planned_call(*call, 512, 4096)
    for kernel, row in compiled(*call, bool(together.dkv)).items():
        if kernel in ("dkv_kernel:dk dv", "one_pass_kernel"):
            assert needed(row) == pytest.approx(NEEDED_TOGETHER[True, width][column], rel=0.1)
    if together.one_pass or (width, column) == (64, 1):
        return
    apart = [
        needed(row)
        for kernel, row in compiled(*call, False).items()
        if not kernel.startswith("sums")
    ]
    assert sum(apart) / len(apart) == pytest.approx(NEEDED[True, width][column], rel=0.15)

"""What a call of chunked mode launches, decided once for its shapes and its GPU, and kept.

And the tiles of attention mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, cast

import torch
import triton

from .gpu import Gpu, gpu_of
from .problem import Precision, Problem, block, follows_tf32, precision
from .segments import LONGEST_RECOVERED, Pass, reach, segments, vectors_moved

# The gradient of the decay reads the states around every so many tokens. All chunks divide it.
KEPT = 64


class Case(NamedTuple):
    """All that a plan depends on. heads: B H."""

    heads: int
    T: int
    K: int
    V: int
    dtype: torch.dtype
    normalize: bool
    feature_map: str
    tf32: bool
    gpu: Gpu
    decay: bool = False

    @property
    def mapped(self) -> bool:
        """Whether q and k pass through a feature map on the way."""
        return self.feature_map != "identity"


@dataclass(frozen=True)
class Launch:
    """C tokens a chunk, BK features and BV values a program; precision: of its products."""

    C: int
    BK: int
    BV: int
    num_warps: int
    num_stages: int
    precision: Precision

    @property
    def kinds(self) -> tuple[str, str, str]:
        """The last three arguments of every kernel."""
        return self.precision.OPERAND, self.precision.WIDE, self.precision.PRECISION


@dataclass(frozen=True)
class Plan:
    """G segments of L tokens, each program adding `reach` of them; then each kernel's launch.

    form_delta: δ is formed in the dq pass. exact: o is kept unrounded, to form it from there.
    dkv: one pass for dk and dv, in place of the passes dk and dv. one_pass: for all three.
    """

    G: int
    L: int
    reach: int
    form_delta: bool
    exact: bool
    forward: Launch
    dq: Launch
    dk: Launch
    dv: Launch
    dkv: Launch | None
    one_pass: Launch | None


def case_of(problem: Problem) -> Case:
    """The case of a problem on its device."""
    B, T, H, K = problem.q.shape
    dtype = problem.q.dtype
    return Case(
        B * H, T, K, problem.v.shape[-1], dtype, problem.normalize, problem.feature_map,
        follows_tf32(dtype), gpu_of(problem.q.device), problem.g is not None,
    )  # fmt: skip


# For bf16: tokens a chunk, features of the output a program, warps, stages. By kernel and the
# wider of K and V, for the sum alone, the same of mapped q and k, and both normalised. Chosen
# among chunks of 16, 32 and 64, blocks of 32, 64 and 128, 4 and 8 warps, 2 and 3 stages: of those
# that spill nothing and are not serialised the one with the fewest instructions a token, which
# with four warps leaves two programs to a multiprocessor. kernel_build keeps both numbers. All of
# it holds for Triton 3.6 and 3.7, which make different code of the same kernel.
# dk and dv together: at 128 R takes 128 registers a thread of four warps, half as many of eight.
# Chunks of 16 leave room for the products of both: 116 instructions a token of the plain sum,
# with two programs resident, for 139 apart; mapped 283 for 534, normalised 242 for 251, both 395
# for 426. Chunks of 32 spill with four warps; normalised with eight they would take 186, but spill
# where the returned state has a gradient, unless nothing is loaded ahead (one stage).
# At 256 two blocks of 128 features read the other tensors twice, four of 64 four times: dq, dk and
# dv of the plain sum take 342 to 347 instructions for 520, mapped dq 575 for 770 and dv 721 for
# 1,286. The others spill so. Chunks of 32 with blocks of 64 would take 364 to 369, and of the
# forward pass 368 for 500, but that spills, as blocks of 128 do there (335).
LARGE = {
    ("forward", 64): ((64, 64, 4, 2), (64, 64, 4, 2), (64, 64, 4, 2), (64, 64, 4, 2)),
    ("forward", 128): ((64, 64, 4, 2), (64, 64, 8, 2), (32, 128, 8, 2), (32, 128, 8, 2)),
    ("forward", 256): ((16, 64, 8, 2),) * 4,
    ("dq", 64): ((64, 64, 4, 2), (64, 64, 4, 2), (64, 64, 4, 2), (32, 64, 4, 2)),
    ("dq", 128): ((64, 64, 4, 2), (32, 64, 4, 2), (32, 128, 8, 2), (16, 128, 8, 3)),
    ("dq", 256): ((16, 128, 8, 2), (16, 128, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dk", 64): ((64, 64, 4, 2), (64, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2)),
    ("dk", 128): ((64, 64, 4, 2), (64, 64, 8, 2), (32, 128, 8, 2), (32, 128, 8, 2)),
    ("dk", 256): ((16, 128, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dv", 64): ((64, 64, 4, 2), (64, 64, 4, 2), (64, 64, 4, 2), (32, 64, 4, 2)),
    ("dv", 128): ((64, 64, 4, 2), (64, 64, 8, 2), (32, 64, 4, 2), (32, 128, 8, 2)),
    ("dv", 256): ((16, 128, 8, 2), (16, 128, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dkv", 64): ((64, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2)),
    ("dkv", 128): ((16, 128, 4, 2), (32, 128, 8, 2), (16, 128, 8, 2), (16, 128, 8, 2)),
    ("one_pass", 64): ((64, 64, 4, 3), None, None, None),
}
SMALL = {
    ("forward", 64): ((32, 64, 4, 2), (32, 64, 8, 2), (32, 64, 8, 2), (32, 64, 8, 2)),
    ("forward", 128): ((32, 64, 4, 2), (16, 64, 8, 2), (16, 64, 4, 2), (16, 64, 8, 2)),
    ("forward", 256): ((16, 32, 8, 2),) * 4,
    ("dq", 64): ((32, 64, 4, 2), (32, 32, 4, 2), (32, 64, 4, 3), (16, 64, 8, 2)),
    ("dq", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 128, 8, 3), (16, 64, 8, 2)),
    ("dq", 256): ((16, 32, 8, 2), (16, 32, 8, 2), (16, 32, 8, 2), (16, 32, 4, 2)),
    ("dk", 64): ((32, 64, 4, 2), (32, 32, 4, 2), (32, 64, 4, 2), (16, 64, 8, 2)),
    ("dk", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 32, 8, 2), (16, 32, 8, 2)),
    ("dk", 256): ((16, 32, 8, 2), (16, 32, 8, 2), (16, 32, 8, 2), (16, 16, 4, 2)),
    ("dv", 64): ((32, 64, 4, 2), (32, 64, 8, 2), (32, 64, 4, 2), (32, 64, 8, 2)),
    ("dv", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 4, 2), (16, 64, 8, 2)),
    ("dv", 256): ((16, 32, 8, 2), (16, 32, 8, 2), (16, 32, 4, 2), (16, 32, 4, 2)),
    ("dkv", 64): ((16, 64, 4, 2), None, None, None),
}


# The same with decay, whose weights and faded tiles take registers of their own.
LARGE_FADED = {
    ("forward", 64): ((64, 64, 4, 3), (32, 64, 4, 2), (64, 64, 4, 3), (32, 64, 4, 2)),
    ("forward", 128): ((32, 64, 4, 2), (32, 64, 8, 2), (32, 64, 8, 2), (32, 64, 8, 2)),
    ("forward", 256): ((16, 32, 8, 2),) * 4,
    ("dq", 64): ((64, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 8, 2)),
    ("dq", 128): ((32, 64, 4, 3), (32, 64, 4, 2), (16, 128, 8, 2), (16, 128, 8, 2)),
    ("dk", 64): ((64, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 3)),
    ("dk", 128): ((32, 64, 4, 3), (32, 64, 4, 2), (32, 64, 8, 2), (16, 128, 8, 2)),
    ("dv", 64): ((64, 64, 4, 2), (64, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2)),
    ("dv", 128): ((32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2)),
    **{(name, 256): ((16, 64, 8, 2),) * 4 for name in ("dq", "dk", "dv")},
    ("dkv", 64): ((32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2)),
    ("dkv", 128): ((32, 128, 8, 2), (16, 128, 8, 2), (16, 128, 8, 2), (16, 128, 8, 2)),
}
SMALL_FADED = {
    ("forward", 64): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("forward", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 32, 8, 2), (16, 64, 8, 2)),
    ("dq", 64): ((16, 64, 8, 2), (16, 32, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dq", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dk", 64): ((16, 64, 8, 2), (16, 32, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dk", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 32, 8, 2), (16, 32, 8, 2)),
    ("dv", 64): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dv", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
}

# Triton before 3.7 needs more registers for the same kernel. Where a launch that it can do would
# cost 3.7 more than 5% of its instructions, it has one of its own. By Gpu.large, decay, kernel,
# width and column of the tables above.
BEFORE_3_7 = {
    (True, False, "dq", 64, 2): (32, 64, 4, 2),
    (True, False, "dv", 128, 0): (32, 64, 4, 2),
    (True, True, "dkv", 64, 2): (32, 64, 4, 1),
    (True, True, "dkv", 64, 3): (32, 64, 4, 1),
    (True, True, "dkv", 128, 0): (16, 128, 8, 2),
    (True, True, "dq", 128, 1): (32, 64, 8, 2),
    (True, True, "dk", 128, 1): (32, 64, 8, 2),
    (True, True, "dv", 128, 3): (16, 64, 4, 2),
    (True, True, "dq", 256, 3): (16, 32, 8, 2),
    (True, True, "dk", 256, 3): (16, 64, 8, 1),
}
IS_BEFORE_3_7 = tuple(int(part) for part in triton.__version__.split(".")[:2]) < (3, 7)


def _by_table(case: Case, kernel: str, width: int) -> tuple[int, int, int, int] | None:
    """The row of the tables for a kernel; None where it would not fit."""
    table = LARGE if case.gpu.large else SMALL
    key, column = (kernel, max(64, width)), 2 * case.normalize + case.mapped
    if IS_BEFORE_3_7 and (own := BEFORE_3_7.get((case.gpu.large, case.decay, *key, column))):
        return own
    if not case.decay:
        row = table.get(key)
        return row and row[column]
    faded = LARGE_FADED if case.gpu.large else SMALL_FADED
    if key in faded or kernel == "dkv":
        row = faded.get(key)
        return row and row[column]
    # Past 128 the fewest tokens that a product takes, and eight warps.
    _, features, _, num_stages = table[key][column]
    return 16, features, 8, num_stages


def _configuration(case: Case, kernel: str, forms_delta: bool) -> tuple[int, int, int, int] | None:
    """Tokens, features of the output, warps and stages; None where the kernel would not fit."""
    width = block(max(case.K, case.V))
    if kernel == "one_pass" and case.decay:
        return None  # It would have to divide by what has faded.
    if case.dtype == torch.bfloat16:
        return _by_table(case, kernel, width)
    if kernel in ("dkv", "one_pass"):
        return None
    other = block(case.K if kernel in ("forward", "dv") else case.V)
    if case.dtype == torch.float32:
        # Without tensor cores, whose place the operands take in registers: past 128 it spills.
        return 16, 64 if other <= 64 else 16, 4 if other <= 32 else 8, 1
    whole = kernel == "dq" and forms_delta
    if other > 128:
        return 16, 256 if whole else 32, 8, 2
    features = 128 if whole else 64
    if not case.gpu.large:
        return 32 if width <= 64 else 16, features, 8, 3 if whole else 2
    return 16 if whole and width > 64 else 32, features, 8, 2


def _launch(case: Case, kernel: str, forms_delta: bool, exact: bool) -> Launch | None:
    found = _configuration(case, kernel, forms_delta)
    if found is None:
        return None
    C, features, num_warps, num_stages = found
    BK, BV = block(case.K), block(case.V)
    if kernel in ("forward", "dv"):
        BV = min(BV, features)
    elif kernel == "dk" or (kernel == "dq" and not forms_delta):
        BK = min(BK, features)
    kinds = precision(case.dtype, case.tf32)
    # dq of wide normalised heads needs more of S than bf16 holds: nothing takes out what that
    # leaves along q. S enters in two tiles (1,316 instructions a token for 1,798), or where
    # registers are too few for them in tf32. The o that δ comes from sums in tf32 too, for what δ
    # has to take out may be large beside what is left: from an o summed in bf16 dq would be off by
    # up to 5e-3.
    in_two = case.gpu.large and not case.mapped and not case.decay
    if exact and (kernel == "forward" or (kernel == "dq" and not in_two)):
        kinds = replace(kinds, WIDE="tf32", PRECISION="tf32")
    return Launch(C, BK, BV, num_warps, num_stages, kinds)


def _forms_delta(case: Case) -> bool:
    """Whether a program of the dq pass holds all of K, and so forms δ by itself.

    float32 inputs have no need of it: their o is not rounded, and δ comes from there.
    """
    rounded = case.dtype != torch.float32
    # With a map or decay it takes φ(k) in two tiles, for which registers are too few beside wide
    # values, and on an Ampere past 64.
    split = (case.mapped or case.decay) and case.dtype == torch.bfloat16
    if case.V > 128:
        most = 0 if split else 64
    else:
        most = 64 if split and not case.gpu.large else 128
    return case.normalize and rounded and most >= case.K


def exact_is_kept(case: Case) -> bool:
    """Whether o is kept unrounded, to form δ from; for any number of heads and tokens."""
    return case.normalize and case.dtype != torch.float32 and not _forms_delta(case)


# How many programs a multiprocessor has to hold for memory to be what they wait for, if each
# instruction of a warp takes DEPENDENT_CYCLES: instructions over bytes, in kernel_build. By
# Gpu.large and width, columns as above: of the passes forward, dq, dk and dv the mean; of those
# that form more than one gradient. Decay doubles it. More than are resident says that memory
# waits for the programs.
NEEDED = {
    (True, 64): (0.9, 2.1, 1.3, 2.8),
    (True, 128): (1.0, 2.1, 1.0, 1.8),
    (True, 256): (1.3, 2.8, 3.6, 5.5),
    (False, 64): (1.2, 2.8, 2.0, 3.6),
    (False, 128): (2.2, 4.3, 3.8, 6.8),
    (False, 256): (5.0, 9.0, 10.0, 18.0),
}
NEEDED_TOGETHER = {
    (True, 64): (1.0, 2.2, 1.4, 2.8),
    (True, 128): (1.05, 1.3, 1.1, 1.8),
    (False, 64): (1.8,),
}
NEEDED_OTHERWISE = 4.0  # of other dtypes, whose products are slower


def _passes(case: Case, launches: dict[str, Launch]) -> tuple[Pass, ...]:
    """Launches by kernel, as `segments` has to know them."""
    vectors = {"dq": 5 if case.normalize else 4, "dkv": 6, "one_pass": 7}
    column, width = 2 * case.normalize + case.mapped, max(64, block(max(case.K, case.V)))
    found = []
    for kernel, launch in launches.items():
        programs = case.heads * -(-case.K // launch.BK) * -(-case.V // launch.BV)
        needed = NEEDED_OTHERWISE
        if case.dtype == torch.bfloat16:
            table = NEEDED_TOGETHER if kernel in ("dkv", "one_pass") else NEEDED
            needed = table[case.gpu.large, width][column] * (2 if case.decay else 1)
        # Eight warps with all the registers that a thread may have fill a multiprocessor.
        found.append(Pass(programs, 8 // launch.num_warps, needed, vectors.get(kernel, 4)))
    return tuple(found)


@lru_cache(maxsize=4096)
def plan(case: Case, cut: tuple[int, int] | None = None) -> Plan:
    """The plan of a case. cut: G and L, in place of what `segments` says."""
    forms_delta = _forms_delta(case)
    exact = exact_is_kept(case)
    dkv, one_pass = (_launch(case, name, forms_delta, exact) for name in ("dkv", "one_pass"))
    # These there are for every case.
    forward, dq, dk, dv = (
        cast("Launch", _launch(case, name, forms_delta, exact))
        for name in ("forward", "dq", "dk", "dv")
    )
    # dk and dv together move less, but few heads may have too few programs so.
    ways = [{"dq": dq, "dk": dk, "dv": dv}]
    if dkv:
        ways.append({"dq": dq, "dkv": dkv})
    if one_pass:
        ways = [{"one_pass": one_pass}]
    longest = LONGEST_RECOVERED if one_pass else None
    gpu, width = case.gpu.multiprocessors, block(max(case.K, case.V))

    def account(way: dict[str, Launch]) -> tuple[float, int, int]:
        passes = _passes(case, {"forward": forward, **way})
        G, L = cut or segments(passes, width, case.T, gpu, longest)
        return vectors_moved(passes, width, case.T, gpu, G, L), G, L

    (_, G, L), best = min(((account(way), way) for way in ways), key=lambda one: one[0])
    dkv = best.get("dkv")
    return Plan(G, L, reach(G), forms_delta, exact, forward, dq, dk, dv, dkv, one_pass)


def plan_of(problem: Problem, cut: tuple[int, int] | None = None) -> Plan:
    """The plan of a problem on its device."""
    return plan(case_of(problem), cut)


# The tiles of attention mode that Triton before 3.7 can have no more than half as long. By
# Gpu.large, decay, role, width and column as above.
HALVED_BEFORE_3_7 = {
    (True, False, "dq", 64, 3),
    (True, True, "dk", 64, 3),
    (False, False, "dq", 256, 2),
    (False, False, "dv", 256, 3),
    (False, True, "dv", 64, 1),
    (False, True, "dk", 64, 2),
    (False, True, "dv", 64, 2),
    (False, True, "dk", 64, 3),
    (False, True, "dv", 64, 3),
    (False, True, "dk", 128, 3),
    (False, True, "o", 256, 1),
    (False, True, "dv", 256, 1),
    (False, True, "o", 256, 3),
    (False, True, "dv", 256, 3),
}


class Tiles(NamedTuple):
    """C tokens and BD features of the output a program of attention mode, and its warps."""

    C: int
    BD: int
    num_warps: int


def tiles_of(problem: Problem) -> dict[str, Tiles]:
    """By role, the tiles of a problem on its device."""
    return role_tiles(case_of(problem))


@lru_cache(maxsize=4096)
def role_tiles(case: Case) -> dict[str, Tiles]:
    """By role, the largest tiles that spill nothing, on Ampere and on Hopper."""
    column, width = 2 * case.normalize + case.mapped, max(64, block(max(case.K, case.V)))
    found = {}
    for role in ("o", "dq", "dk", "dv"):
        C, BD, num_warps = _tiles(case, role)
        key = (case.gpu.large, case.decay, role, width, column)
        halved = IS_BEFORE_3_7 and case.dtype == torch.bfloat16 and key in HALVED_BEFORE_3_7
        found[role] = Tiles(C // 2 if halved else C, BD, num_warps)
    return found


def _tiles(case: Case, role: str) -> tuple[int, int, int]:
    A, D = (case.K, case.V) if role in ("o", "dv") else (case.V, case.K)
    A = block(A)
    if case.dtype != torch.bfloat16:
        BD = block(D) if role == "dq" and case.normalize else block(D, 64)
        return 32, BD, 4 if max(A, BD) <= 64 else 8
    # A mapped third factor enters in two tiles.
    split = role in ("dq", "dk") and case.mapped
    if role == "dq" and case.normalize and case.decay:
        BD = block(D)
        return 16 if split and BD == 256 else 32, BD, 4 if BD <= 128 else 8
    if role == "dq" and case.normalize:
        BD = block(D)
        most = 64 if split else 128
        C = 64 if most >= BD else 32
        return C, BD, 4 if max(A, BD) <= 64 else 8
    BD = block(D, 32 if split and A > 128 else 128 if A <= 128 and not split else 64)
    return 64, BD, 4 if max(A, BD) <= 64 else 8

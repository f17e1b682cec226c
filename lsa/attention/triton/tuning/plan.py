"""Launch plans of chunked mode, made once for a call's shapes and its GPU, and cached.

Also the tiles of attention mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, cast

import torch
import triton

from ...call import Call
from ..arguments import Precision, block, follows_tf32, precision
from .gpu import Gpu, gpu_of
from .segments import LONGEST_RECOVERED, Pass, reach, segments, vectors_moved
from .tables import (
    BEFORE_3_7,
    HALVED_BEFORE_3_7,
    LARGE,
    LARGE_FADED,
    NEEDED,
    NEEDED_OTHERWISE,
    NEEDED_TOGETHER,
    SMALL,
    SMALL_FADED,
)

# The gradient of the decay reads the states around every KEPT tokens. All chunks divide it.
KEPT = 64
IS_BEFORE_3_7 = tuple(int(part) for part in triton.__version__.split(".")[:2]) < (3, 7)


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
        """Whether the kernels apply a feature map to q and k."""
        return self.feature_map != "identity"


@dataclass(frozen=True)
class Launch:
    """A launch: C tokens a chunk, BK features and BV values a program, precision of products."""

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
    """G segments of L tokens, `reach` sums that each program adds, and each kernel's launch.

    form_delta: δ is formed in the dq pass. exact: o is saved unrounded, to form δ from it.
    dkv: one pass for dk and dv instead of two. one_pass: one pass for all three.
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


def case_of(call: Call) -> Case:
    """The case of a call on its device."""
    B, T, H, K = call.q.shape
    dtype = call.q.dtype
    return Case(
        B * H, T, K, call.v.shape[-1], dtype, call.normalize, call.feature_map,
        follows_tf32(dtype), gpu_of(call.q.device), call.g is not None,
    )  # fmt: skip


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
    # Past 128, the fewest tokens that a product can have, and eight warps.
    _, features, _, num_stages = table[key][column]
    return 16, features, 8, num_stages


def _configuration(case: Case, kernel: str, forms_delta: bool) -> tuple[int, int, int, int] | None:
    """Tokens, features of the output, warps and stages; None where the kernel would not fit."""
    width = block(max(case.K, case.V))
    if kernel == "one_pass" and case.decay:
        return None  # it would have to divide by the decay
    if case.dtype == torch.bfloat16:
        return _by_table(case, kernel, width)
    if kernel in ("dkv", "one_pass"):
        return None
    other = block(case.K if kernel in ("forward", "dv") else case.V)
    if case.dtype == torch.float32:
        # Without tensor cores, operands need registers: past 128 they spill.
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
    # dq of wide normalised heads needs more digits of S than bf16 holds, since nothing removes the
    # rounding error along q. S enters in two tiles (1,316 instructions a token instead of 1,798),
    # or in tf32 if registers are too few. The o that δ is formed from is summed in tf32 too: δ may
    # remove a part that is large beside the rest. From an o summed in bf16, dq would be off by up
    # to 5e-3.
    in_two = case.gpu.large and not case.mapped and not case.decay
    if exact and (kernel == "forward" or (kernel == "dq" and not in_two)):
        kinds = replace(kinds, WIDE="tf32", PRECISION="tf32")
    return Launch(C, BK, BV, num_warps, num_stages, kinds)


def _forms_delta(case: Case) -> bool:
    """Whether a program of the dq pass holds all of K, and so forms δ itself.

    float32 inputs do not need it: their o is not rounded, and δ is formed from it.
    """
    rounded = case.dtype != torch.float32
    # With a map or decay it takes φ(k) in two tiles. Registers are too few for both beside wide
    # values, and on Ampere past 64.
    split = (case.mapped or case.decay) and case.dtype == torch.bfloat16
    if case.V > 128:
        most = 0 if split else 64
    else:
        most = 64 if split and not case.gpu.large else 128
    return case.normalize and rounded and most >= case.K


def exact_is_kept(case: Case) -> bool:
    """Whether o is saved unrounded, to form δ from it; for any number of heads and tokens."""
    return case.normalize and case.dtype != torch.float32 and not _forms_delta(case)


def _passes(case: Case, launches: dict[str, Launch]) -> tuple[Pass, ...]:
    """The launches as `segments` needs them."""
    vectors = {"dq": 5 if case.normalize else 4, "dkv": 6, "one_pass": 7}
    column, width = 2 * case.normalize + case.mapped, max(64, block(max(case.K, case.V)))
    found = []
    for kernel, launch in launches.items():
        programs = case.heads * -(-case.K // launch.BK) * -(-case.V // launch.BV)
        needed = NEEDED_OTHERWISE
        if case.dtype == torch.bfloat16:
            table = NEEDED_TOGETHER if kernel in ("dkv", "one_pass") else NEEDED
            needed = table[case.gpu.large, width][column] * (2 if case.decay else 1)
        # Eight warps with the most registers a thread fill a multiprocessor.
        found.append(Pass(programs, 8 // launch.num_warps, needed, vectors.get(kernel, 4)))
    return tuple(found)


@lru_cache(maxsize=4096)
def plan(case: Case, cut: tuple[int, int] | None = None) -> Plan:
    """The plan of a case. cut: G and L, in place of what `segments` says."""
    forms_delta = _forms_delta(case)
    exact = exact_is_kept(case)
    dkv, one_pass = (_launch(case, name, forms_delta, exact) for name in ("dkv", "one_pass"))
    # These four exist for every case.
    forward, dq, dk, dv = (
        cast("Launch", _launch(case, name, forms_delta, exact))
        for name in ("forward", "dq", "dk", "dv")
    )
    # dk and dv together move fewer bytes, but with few heads there may be too few programs.
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


def plan_of(call: Call, cut: tuple[int, int] | None = None) -> Plan:
    """The plan of a call on its device."""
    return plan(case_of(call), cut)


class Tiles(NamedTuple):
    """The tiles of attention mode: C tokens and BD features of the output a program; its warps."""

    C: int
    BD: int
    num_warps: int


def tiles_of(call: Call) -> dict[str, Tiles]:
    """The tiles of a call on its device, by role."""
    return role_tiles(case_of(call))


@lru_cache(maxsize=4096)
def role_tiles(case: Case) -> dict[str, Tiles]:
    """The largest tiles that spill nothing on Ampere and on Hopper, by role."""
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

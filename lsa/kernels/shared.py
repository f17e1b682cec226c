"""What the kernels of all three modes share: one sum in four roles, tiles, segment states.

Linear attention and its three gradients are the same causal sum,

    out_x = f_x [ sum_{y<=x} w_y (a_x·b_y + α_x + β_y) c_y  +  a_x M_0 + ... ]

read forwards in time, or backwards with y >= x:

    role  a    b    c    direction   w_y  α_x  β_y   f_x          state M
    o     q    k    v    forwards    1    0    0     scale / n_x  S   [K, V], z
    dq    do   v    k    forwards    1    δ_x  0     scale / n_x  S^T [V, K], z
    dk    v    do   q    backwards   r_y  0    δ_y   scale        R^T [V, K], m
    dv    k    q    do   backwards   r_y  0    0     scale        R   [K, V]

with n the normaliser plus eps, r = 1 / n and δ_x = -do_x·o_x (n = r = 1 and δ = 0 when nothing
is normalised). R = sum_y r_y q_y do_y^T and m = sum_y r_y δ_y q_y run backwards in time; they
start from the gradients of the returned state, divided by scale. So a mode needs one kernel, and
the gradient of the initial state is what is left in R and m after the first token.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import torch
import triton
import triton.language as tl
from torch import Tensor

INTERPRETING = triton.knobs.runtime.interpret
MAPS = ("identity", "elu_plus_one", "relu", "softplus")


@triton.jit
def feature(x, MAP: tl.constexpr):
    """The feature map of x, in float32."""
    if MAP == "elu_plus_one":
        x = tl.where(x > 0, x + 1.0, tl.exp(tl.minimum(x, 0.0)))
    elif MAP == "relu":
        x = tl.maximum(x, 0.0)
    elif MAP == "softplus":
        # log(1 + e) loses e below the rounding of 1; the quotient gives back what was lost.
        e = tl.exp(-tl.abs(x))
        u = 1.0 + e
        rounded = u - 1.0
        safe = tl.where(rounded == 0.0, 1.0, rounded)
        x = tl.maximum(x, 0.0) + tl.where(rounded == 0.0, e, tl.log(u) * (e / safe))
    return x


@triton.jit
def slope(x, MAP: tl.constexpr):
    """The derivative of the feature map at x, in float32."""
    if MAP == "elu_plus_one":
        x = tl.where(x > 0, 1.0, tl.exp(tl.minimum(x, 0.0)))
    elif MAP == "relu":
        x = tl.where(x > 0, 1.0, 0.0)
    else:
        e = tl.exp(-tl.abs(x))
        x = tl.where(x > 0, 1.0, e) / (1.0 + e)
    return x


@triton.jit
def enter(x, KIND: tl.constexpr):
    """x as it enters a product; the kinds are those of Precision."""
    if KIND == "fp16":
        x = x.to(tl.float16)
    elif KIND == "bf16":
        x = x.to(tl.bfloat16)
    else:
        x = x.to(tl.float32)
        if KIND == "bf16 in fp32":
            i = x.to(tl.int32, bitcast=True)
            i = (i + 0x7FFF + ((i >> 16) & 1)) & -0x10000
            x = i.to(tl.float32, bitcast=True)
        elif KIND == "tf32":
            i = x.to(tl.int32, bitcast=True)
            x = ((i + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return x


@triton.jit
def tile_mask(o_t, o_d, length, D: tl.constexpr, BD: tl.constexpr):
    """Which elements of a tile exist; a question of tokens alone where blocks divide D."""
    m = (o_t < length)[:, None]
    if D % BD != 0:
        m = m & (o_d < D)[None, :]
    return m


@triton.jit
def load_tile(
    p, start, end, s_t, s_d, first,
    D: tl.constexpr, MAP: tl.constexpr, C: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Tokens start .. start + C and features first .. first + BD of one head; zeros outside.

    The jump to the first token is taken in int64; inside a tile, offsets fit in int32.
    """
    o_t = tl.arange(0, C)
    o_d = first + tl.arange(0, BD)
    m = tile_mask(o_t, o_d, end - start, D, BD)
    p += start.to(tl.int64) * s_t
    x = tl.load(p + (o_t[:, None] * s_t + o_d[None, :] * s_d), mask=m, other=0.0)
    if MAP != "identity":
        # A map may be positive at zero, and what is not there must weigh nothing.
        x = tl.where(m, feature(x.to(tl.float32), MAP), 0.0)
    return x


@triton.jit
def store_tile(
    x, p, start, end, s_t, s_d, first, D: tl.constexpr, C: tl.constexpr, BD: tl.constexpr
):
    """The counterpart of load_tile."""
    o_t = tl.arange(0, C)
    o_d = first + tl.arange(0, BD)
    m = tile_mask(o_t, o_d, end - start, D, BD)
    p += start.to(tl.int64) * s_t
    tl.store(p + (o_t[:, None] * s_t + o_d[None, :] * s_d), x.to(p.dtype.element_ty), mask=m)


@triton.jit
def load_tokens(p, start, end, s_t, other, C: tl.constexpr):
    """One float32 a token: start .. start + C, `other` past the end."""
    o_t = tl.arange(0, C)
    p += start.to(tl.int64) * s_t
    return tl.load(p + o_t * s_t, mask=o_t < end - start, other=other)


@triton.jit
def store_tokens(x, p, start, end, s_t, C: tl.constexpr):
    """The counterpart of load_tokens."""
    o_t = tl.arange(0, C)
    p += start.to(tl.int64) * s_t
    tl.store(p + o_t * s_t, x, mask=o_t < end - start)


@triton.jit(do_not_specialize=["T", "N", "H", "L", "G", "first_segment"])
def sums_kernel(
    p_b, p_c, p_o, p_den, p_delta, p_sums,
    s_bb, s_bt, s_bh, s_bd,
    s_cb, s_ct, s_ch, s_cd,
    s_ob, s_ot, s_oh, s_od,
    T, N, H, L, G, first_segment, eps, K: tl.constexpr, V: tl.constexpr,
    REVERSE: tl.constexpr, NORMALIZE: tl.constexpr, WITH_Z: tl.constexpr, FROM_O: tl.constexpr,
    MAP: tl.constexpr, C: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    OPERAND: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """What a segment adds to a state: sum w b c^T and sum w β b. G sums for each of N heads.

    Forwards b, c = k, v and w = β = 1. Backwards b, c = q, do, w = r and β = δ, which is read,
    or formed from o where BV holds all of its features (FROM_O).
    """
    n_k, n_v = tl.cdiv(K, BK), tl.cdiv(V, BV)
    pid = tl.program_id(0)
    i_v = pid % n_v
    i_k = pid // n_v % n_k
    i_g = pid // (n_v * n_k) % G
    i_bh = (pid // (n_v * n_k * G)).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    p_b += i_b * s_bb + i_h * s_bh
    p_c += i_b * s_cb + i_h * s_ch
    p_o += i_b * s_ob + i_h * s_oh
    p_den += i_b * T * H + i_h
    p_delta += i_b * T * H + i_h
    begin = (i_g + first_segment) * L
    end = tl.minimum(T, begin + L)

    b_S = tl.zeros([BK, BV], dtype=tl.float32)
    b_z = tl.zeros([BK], dtype=tl.float32)
    for i in range(tl.cdiv(end - begin, C)):
        start = begin + i * C
        b_b = load_tile(p_b, start, end, s_bt, s_bd, i_k * BK, K, MAP, C, BK)
        b_c = load_tile(p_c, start, end, s_ct, s_cd, i_v * BV, V, "identity", C, BV)
        if REVERSE and NORMALIZE:
            b_b = b_b.to(tl.float32) / (load_tokens(p_den, start, end, H, 1.0, C) + eps)[:, None]
            b_S += tl.dot(tl.trans(enter(b_b, WIDE)), enter(b_c, WIDE), input_precision=PRECISION)
            if WITH_Z:
                if FROM_O:
                    b_o = load_tile(p_o, start, end, s_ot, s_od, 0, V, "identity", C, BV)
                    b_delta = -tl.sum(b_o.to(tl.float32) * b_c.to(tl.float32), axis=1)
                else:
                    b_delta = load_tokens(p_delta, start, end, H, 0.0, C)
                b_z += tl.sum(b_b * b_delta[:, None], axis=0)
        else:
            b_S += tl.dot(
                tl.trans(enter(b_b, OPERAND)), enter(b_c, OPERAND), input_precision=PRECISION
            )
            if WITH_Z and not REVERSE:
                b_z += tl.sum(b_b.to(tl.float32), axis=0)

    o_k = i_k * BK + tl.arange(0, BK)
    o_v = i_v * BV + tl.arange(0, BV)
    m_k, m_v = o_k < K, o_v < V
    p_sums += (i_g.to(tl.int64) * N + i_bh) * (K * V + K)
    tl.store(p_sums + o_k[:, None] * V + o_v[None, :], b_S, mask=m_k[:, None] & m_v[None, :])
    tl.store(p_sums + K * V + o_k, b_z, mask=m_k & (i_v == 0))


@triton.jit(do_not_specialize=["N", "KV", "SIZE", "G"])
def scan_kernel(
    p_sums, p_S, p_z, N, KV, SIZE, G, factor,
    REVERSE: tl.constexpr, FIRST_S: tl.constexpr, FIRST_Z: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Running sums over the G segments, in place, started from factor times a state.

    Each of the N * SIZE elements (SIZE = K V + K a head) is a scan of its own.
    """
    o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = o < N.to(tl.int64) * SIZE
    i_bh, i = o // SIZE, o % SIZE
    b = tl.zeros([BLOCK], dtype=tl.float32)
    if FIRST_S:
        b += tl.load(p_S + i_bh * KV + i, mask=m & (i < KV), other=0.0) * factor
    if FIRST_Z:
        b += tl.load(p_z + i_bh * (SIZE - KV) + (i - KV), mask=m & (i >= KV), other=0.0) * factor
    for j in range(G):
        i_g = (G - 1 - j) if REVERSE else j
        p = p_sums + i_g.to(tl.int64) * N * SIZE + o
        b += tl.load(p, mask=m, other=0.0)
        tl.store(p, b, mask=m)


@triton.jit(do_not_specialize=["T", "H"])
def delta_kernel(
    p_o, p_do, p_delta,
    s_ob, s_ot, s_oh, s_od,
    s_db, s_dt, s_dh, s_dd,
    T, H,
    V: tl.constexpr, C: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """δ_x = -do_x·o_x: what the normaliser's gradient needs of each token. 4 V bytes in bf16."""
    n_t = tl.cdiv(T, C)
    pid = tl.program_id(0)
    i_bh = (pid // n_t).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    start = (pid % n_t) * C
    b_o = load_tile(
        p_o + i_b * s_ob + i_h * s_oh, start, T, s_ot, s_od, 0, V, "identity", C, BV
    ).to(tl.float32)
    b_do = load_tile(
        p_do + i_b * s_db + i_h * s_dh, start, T, s_dt, s_dd, 0, V, "identity", C, BV
    ).to(tl.float32)
    o_t = start + tl.arange(0, C)
    p_delta += i_b * T * H + i_h + o_t.to(tl.int64) * H
    tl.store(p_delta, -tl.sum(b_o * b_do, axis=1), mask=o_t < T)


@dataclass(frozen=True)
class Precision:
    """How products are formed. The names are constexpr arguments of every kernel.

    OPERAND: the kind in which inputs enter a product with another input.
    WIDE: the kind for products with a sum: fp16 would overflow there, so it takes tf32,
        which rounds like fp16 but reaches as far as float32.

    Kinds are "fp32", "fp16", "bf16"; "tf32", which is rounded here, since tensor cores only cut
    off the bits that they do not read; and "bf16 in fp32", which rounds like bf16 where a tile
    of bf16 cannot be multiplied.
    """

    OPERAND: str
    WIDE: str
    PRECISION: str

    def arguments(self) -> dict[str, object]:
        return {"OPERAND": self.OPERAND, "WIDE": self.WIDE, "PRECISION": self.PRECISION}


def precision(dtype: torch.dtype, tf32: bool | None = None) -> Precision:
    """The precision for inputs of this dtype; tf32 defaults to torch's own switch."""
    if dtype == torch.float32:
        if tf32 is None:
            tf32 = torch.backends.cuda.matmul.fp32_precision == "tf32"
        return Precision("tf32", "tf32", "tf32") if tf32 else Precision("fp32", "fp32", "ieee")
    if dtype == torch.float16:
        return Precision("fp16", "tf32", "tf32")
    # The interpreter multiplies bf16 tiles wrongly, so there they are widened after the load.
    kind = "bf16 in fp32" if INTERPRETING else "bf16"
    return Precision(kind, kind, "ieee")


@dataclass(frozen=True)
class Problem:
    """One call: inputs in the public layout and what to do with them.

    q, k [B, T, H, K]; v [B, T, H, V]; S [B, H, K, V] and z [B, H, K] float32 or None.
    feature_map: one of MAPS, applied to q and k as they are loaded.
    tf32: whether float32 products may be rounded to it; None follows torch's switch.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    S: Tensor | None
    z: Tensor | None
    scale: float
    eps: float
    normalize: bool
    feature_map: str = "identity"
    with_z: bool = True
    tf32: bool | None = None

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """B, T, H, K, V."""
        return (*self.q.shape, self.v.shape[-1])

    def precision(self) -> Precision:
        return precision(self.q.dtype, self.tf32)


@dataclass(frozen=True)
class Role:
    """One of the four sums, ready to be launched; see the head of this file.

    raw: q in role dq, k in role dk: what the slope of the feature map is taken at, if any.
    first, first_z: the state before the first token in the role's direction, or None.
    last, last_z: where the state after the last token goes, or None.
    first_factor, last_factor: multiply them (R is kept divided by scale).
    with_z: whether the role needs, or has to return, z (or m).
    """

    name: str
    a: Tensor
    b: Tensor
    c: Tensor
    out: Tensor
    maps: tuple[str, str, str]
    slope: str = "identity"
    raw: Tensor | None = None
    first: Tensor | None = None
    first_z: Tensor | None = None
    last: Tensor | None = None
    last_z: Tensor | None = None
    first_factor: float = 1.0
    last_factor: float = 1.0
    with_z: bool = False

    def state_strides(self, V: int) -> tuple[int, int]:
        """Of the state's two axes: it is stored [K, V], and dq and dk use its transpose."""
        return (1, V) if self.name in ("dq", "dk") else (V, 1)


def arithmetic_fits(x: Tensor) -> Tensor:
    """x, or a contiguous copy when the strides of a tile would leave int32."""
    widest = 256 * max(abs(s) for s in x.stride()[1::2]) if x.numel() else 0
    return x.contiguous() if widest + 128 * abs(x.stride(1)) >= 2**31 else x


def prepare(problem: Problem) -> Problem:
    """The problem with inputs whose addresses the kernels can form, and contiguous states."""
    q, k, v = (arithmetic_fits(x) for x in (problem.q, problem.k, problem.v))
    S, z = (None if s is None else s.to(torch.float32).contiguous() for s in (problem.S, problem.z))
    return replace(problem, q=q, k=k, v=v, S=S, z=z)


def block(size: int, most: int = 256) -> int:
    """The smallest power of two that holds `size` features: 16 .. most."""
    return min(most, max(16, triton.next_power_of_2(size)))


def forward_role(problem: Problem, out: Outputs) -> Role:
    """o itself."""
    f = problem.feature_map
    return Role(
        "o", problem.q, problem.k, problem.v, out.o, (f, f, "identity"),
        first=problem.S, first_z=problem.z,
        last=out.S_T, last_z=out.z_T if problem.with_z else None, with_z=problem.with_z,
    )  # fmt: skip


def dq_role(problem: Problem, do: Tensor, grads: Gradients) -> Role:
    """The attention of (do, v, k)."""
    f = problem.feature_map
    return Role(
        "dq", do, problem.v, problem.k, grads.dq, ("identity", "identity", f), slope=f,
        raw=problem.q, first=problem.S, first_z=problem.z, with_z=problem.normalize,
    )  # fmt: skip


def dk_role(
    problem: Problem, do: Tensor, grads: Gradients, dS: Tensor | None, dz: Tensor | None
) -> Role:
    """The reversed attention of (v, do, q); it leaves dz."""
    f = problem.feature_map
    return Role(
        "dk", problem.v, do, problem.q, grads.dk, ("identity", "identity", f), slope=f,
        raw=problem.k, first=dS, first_z=dz, last_z=grads.dz,
        first_factor=1.0 / problem.scale, last_factor=problem.scale,
        with_z=problem.normalize or dz is not None,
    )  # fmt: skip


def dv_role(problem: Problem, do: Tensor, grads: Gradients, dS: Tensor | None) -> Role:
    """The reversed attention of (k, q, do); it leaves dS."""
    f = problem.feature_map
    return Role(
        "dv", problem.k, problem.q, do, grads.dv, (f, f, "identity"), first=dS, last=grads.dS,
        first_factor=1.0 / problem.scale, last_factor=problem.scale,
    )  # fmt: skip


def pointer(x: Tensor | None, like: Tensor) -> Tensor:
    """x, or any other tensor where a kernel takes a pointer that it will not follow."""
    return like if x is None else x


@dataclass(frozen=True)
class Machine:
    """What a launch is planned for: the compute capability, and how many multiprocessors."""

    capability: tuple[int, int]
    multiprocessors: int


AMPERE, HOPPER = Machine((8, 0), 108), Machine((9, 0), 132)  # an A100; an H100 or H200
_stand_in = ContextVar("stand_in", default=HOPPER)


@contextmanager
def planned_for(machine: Machine) -> Iterator[None]:
    """Inside, calls on tensors that are on no GPU are planned as they would be on `machine`."""
    token = _stand_in.set(machine)
    try:
        yield
    finally:
        _stand_in.reset(token)


def multiprocessors(device: torch.device) -> int:
    """How many programs run at once, at least."""
    if device.type != "cuda":
        return _stand_in.get().multiprocessors
    return torch.cuda.get_device_properties(device).multi_processor_count


def large(device: torch.device) -> bool:
    """Whether a program may use 227 KiB of shared memory and wgmma: Hopper, and its successor."""
    if device.type != "cuda":
        capability = _stand_in.get().capability
    else:
        capability = torch.cuda.get_device_capability(device)
    return capability[0] in (9, 10)


def segment_sums(
    problem: Problem, L: int, G: int, *, do: Tensor | None = None,
    o: Tensor | None = None, den: Tensor | None = None, delta: Tensor | None = None,
    first: Tensor | None = None, first_z: Tensor | None = None, scan: bool = True,
) -> Tensor:  # fmt: skip
    """The states between G segments of L tokens, [G - 1, B H, K V + K]; S first, then z.

    Forwards (do is None) entry j is the state after segment j. Backwards it is R and m before
    segment j + 1 is left, that is, summed over the segments after j. first, first_z: the state
    to start from. o: where δ is not at hand, to form it. With scan=False all G segments are
    summed, each on its own, and returned.
    """
    B, T, H, K, V = problem.sizes
    reverse = do is not None
    n = G - 1 if scan else G
    sums = torch.empty(n, B * H, K * V + K, dtype=torch.float32, device=problem.q.device)
    if not sums.numel():
        return sums
    b, c = (problem.q, do) if reverse else (problem.k, problem.v)
    from_o = o is not None and problem.normalize
    wide = problem.q.dtype == torch.bfloat16
    BK, BV = block(K, 64), block(V) if from_o else block(V, 128 if wide else 64)
    grid = (triton.cdiv(K, BK) * triton.cdiv(V, BV) * n * B * H,)
    sums_kernel[grid](
        b, c, pointer(o, c), pointer(den, sums), pointer(delta, sums), sums,
        *b.stride(), *c.stride(), *pointer(o, c).stride(),
        T, B * H, H, L, n, 1 if reverse and scan else 0, problem.eps, K=K, V=V,
        REVERSE=reverse, NORMALIZE=problem.normalize, WITH_Z=problem.with_z,
        FROM_O=from_o, MAP=problem.feature_map, C=64 if wide else 32, BK=BK, BV=BV,
        **problem.precision().arguments(), num_warps=4, num_stages=3 if wide else 2,
    )  # fmt: skip
    if scan:
        elements = B * H * (K * V + K)
        scan_kernel[(triton.cdiv(elements, 1024),)](
            sums, pointer(first, sums), pointer(first_z, sums), B * H, K * V, K * V + K, n,
            1.0 / problem.scale if reverse else 1.0,
            REVERSE=reverse, FIRST_S=first is not None, FIRST_Z=first_z is not None,
            BLOCK=1024, num_warps=4,
        )  # fmt: skip
    return sums


def output_delta(problem: Problem, o: Tensor, do: Tensor) -> Tensor | None:
    """δ [B, T, H], or None when nothing is normalised."""
    if not problem.normalize:
        return None
    B, T, H, _, V = problem.sizes
    delta = torch.empty(B, T, H, dtype=torch.float32, device=o.device)
    C = 32
    delta_kernel[(triton.cdiv(T, C) * B * H,)](
        o, do, delta, *o.stride(), *do.stride(), T, H, V=V, C=C, BV=block(V), num_warps=4
    )
    return delta


@dataclass(frozen=True)
class Outputs:
    """What the forward pass leaves. All but o and S_T are empty where they have no use.

    o [B, T, H, V]; den [B, T, H], the normaliser without eps; S_T [B, H, K, V]; z_T [B, H, K];
    states [G - 1, B H, K V + K], the states between segments; exact, o before it was rounded.
    All but o in float32.
    """

    o: Tensor
    den: Tensor
    S_T: Tensor
    z_T: Tensor
    states: Tensor
    exact: Tensor


def stored(dtype: torch.dtype) -> torch.dtype:
    """What kernels store for this dtype: the interpreter would cut bf16 off, not round it."""
    return torch.float32 if INTERPRETING and dtype == torch.bfloat16 else dtype


def empty_outputs(problem: Problem, exact: bool) -> Outputs:
    """Room for the results, uninitialised. exact: o shall be stored as float32 first."""
    B, T, H, K, V = problem.sizes
    device = problem.q.device

    def new(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=device)

    return Outputs(
        o=new(B, T, H, V, dtype=torch.float32 if exact else stored(problem.v.dtype)),
        den=new(*(B, T, H) if problem.normalize else (0,)),
        S_T=new(B, H, K, V),
        z_T=new(*(B, H, K) if problem.with_z else (0,)),
        states=new(0, B * H, K * V + K),
        exact=new(0),
    )


def rounded_outputs(problem: Problem, out: Outputs, exact: bool) -> Outputs:
    """out with o in v's dtype, and kept as it was where that is asked for."""
    kept = out.o if exact else out.exact
    return replace(out, o=out.o.to(problem.v.dtype), exact=kept)


@dataclass(frozen=True)
class Gradients:
    """dq, dk, dv in the inputs' dtypes; dS, dz of the initial state in float32."""

    dq: Tensor
    dk: Tensor
    dv: Tensor
    dS: Tensor
    dz: Tensor


def empty_gradients(problem: Problem) -> Gradients:
    """Room for the gradients, uninitialised and contiguous."""
    B, T, H, K, V = problem.sizes
    device = problem.q.device
    return Gradients(
        *(torch.empty(x.shape, dtype=stored(x.dtype), device=device)
          for x in (problem.q, problem.k, problem.v)),
        dS=torch.empty(B, H, K, V, dtype=torch.float32, device=device),
        dz=torch.empty(B, H, K, dtype=torch.float32, device=device),
    )  # fmt: skip


def rounded_gradients(problem: Problem, grads: Gradients) -> Gradients:
    """grads with dq, dk, dv in the inputs' dtypes."""
    dtype = problem.q.dtype
    return replace(
        grads, dq=grads.dq.to(dtype), dk=grads.dk.to(dtype), dv=grads.dv.to(dtype)
    )  # fmt: skip

"""The selective scan on a GPU: the state in registers, sequences cut if channels are few.

    h_t = exp(Δ_t A) ∘ h_{t-1} + w_t B_t u_t        y_t = C_t · h_t

with w_t = Δ_t (Euler) or (exp(Δ_t A) - 1) / A (zero-order hold).

Costs below are per token and channel, at Mamba-130M's D = 1,536 and N = 16, in float32. They are
for an H100: 3.35e12 B/s, and 132 multiprocessors at 1.76 GHz. Each multiprocessor has 4 schedulers,
with one instruction of a warp a cycle each, and 8 cycles for one of exponentials.

Bytes. With all states in memory, as in plain torch, each array of them takes 4 N = 64 bytes. The
least possible is to read u and Δ and write y: 12 bytes, 3.6 ps; gradients take 20 more for u, Δ,
dy, du, dΔ, 6 ps. B and C are 8 N / D bytes, and each block of channels reads them again from
caches. For the gradients the forward pass stores the state before every CHUNK = 8 tokens: 8 bytes
written and 8 read. Storing every state would take 64 and 64. dB and dC are sums over channels. A
program adds up its 16 channels and stores the sum, 8 N / 16 = 8 bytes; torch adds these: 8 read
again. Atomic additions would save them, but give another result every time.

Instructions. Forwards, each number of the state takes a product, an exponential, a product and two
multiply-adds: 4 + 1. So the 8 cycles of exponentials decide: 16 * 8 / 32 lanes, 4.3 ps over the
whole GPU. scan_build counts 7.7 with the surrounding code. With inputs in 16 bits the kernel is
bound by exponentials, not by bytes. A scan along lanes as a tree (`tl.associative_scan`) would take
7 instructions, and 33 more shared by the tokens of a lane: 11 at 8 tokens, 5.9 ps. It would also
load B and C again for each channel. Backwards: the same again to form the states, then 9, a second
exponential, and four sums. With 16 numbers or channels on one axis each sum would take 8 to 10
instructions a number. On the tile of selective_backward.py all four take 10.5. scan_build counts 35
in all: 19 ps, and the 44 bytes take 13. So backwards, instructions are the limit.

Latency. A lane's 16 numbers are independent, so one warp keeps a scheduler's exponentials busy, and
two hide its loads. Programs are a warp of 32 channels; D = 1,536 and one sequence are 48 warps for
528 schedulers. So few are cut into G segments, which run in parallel. A segment multiplies a number
of the state by exp(A ΣΔ), for any tokens. The first launch computes the sums of all segments but
one, the second carries them from one segment to the next, the third computes y. That is 1.7 times
the work in 1 / G of the time, so G = 1 is best from 1,056 warps, 22 sequences, on. Backwards, the
gradient of the state crosses segments the same way.

Sums are taken in a fixed order, so every result is reproducible, gradients included.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
import triton
from torch import Tensor

from .selective_backward import gradients_kernel
from .selective_forward import carry_kernel, ends_kernel, outputs_kernel

CHUNK = 8  # tokens between stored states
CHANNELS = 32  # of a program forwards
SHORTEST = 64  # tokens of a segment
WARPS = 8  # a multiprocessor, two a scheduler
HOPPERS = 132  # multiprocessors of the H100 that is planned for if there is no GPU
INTERPRETING = triton.knobs.runtime.interpret


@dataclass(frozen=True)
class Problem:
    """One call: u, delta [B, T, D], A [D, N], B, C [B, T, N], h [B, D, N] or None.

    Prepared for the kernels, A is [N, D] and h [B, N, D].
    """

    u: Tensor
    delta: Tensor
    A: Tensor
    B: Tensor
    C: Tensor
    h: Tensor | None
    input_rule: str


@lru_cache(maxsize=1024)
def segments(warps: int, T: int, multiprocessors: int) -> tuple[int, int]:
    """Number of segments G that a sequence is cut into, and their length L, a multiple of CHUNK.

    warps: their number without a cut. G gives the best utilisation of the GPU for the work that a
    cut adds, at most (2 G - 1) / G times; the smallest G if several are equal.
    """
    wanted = WARPS * multiprocessors

    def speed(G: int) -> float:
        return min(1.0, warps * G / wanted) * G / (2 * G - 1)

    most = max(1, min(T // SHORTEST, -(-wanted // warps)))
    G = max(range(1, most + 1), key=lambda G: (round(speed(G), 3), -G))
    L = max(1, -(-T // (G * CHUNK))) * CHUNK
    return max(1, -(-T // L)), L


def _multiprocessors(device: torch.device) -> int:
    if device.type != "cuda":
        return HOPPERS
    return torch.cuda.get_device_properties(device).multi_processor_count


def kept_shape(B: int, T: int, D: int, N: int) -> tuple[int, int, int, int]:
    """Shape of the states stored for the gradients: one before every CHUNK tokens."""
    return B, -(-T // CHUNK), N, D


def _rows(x: Tensor) -> Tensor:
    """x [B, T, ...], or a copy whose rows are contiguous."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _turned(x: Tensor) -> Tensor:
    """[..., D, N] as [..., N, D], or back, in float32: in kernels, channels are adjacent."""
    return x.float().transpose(-1, -2).contiguous()


def _prepared(problem: Problem) -> Problem:
    p = problem
    h = None if p.h is None else _turned(p.h)
    return Problem(
        *map(_rows, (p.u, p.delta)), _turned(p.A), *map(_rows, (p.B, p.C)), h, p.input_rule
    )


def _stored(dtype: torch.dtype) -> torch.dtype:
    """The dtype that kernels store. The interpreter would truncate to bf16 instead of rounding."""
    return torch.float32 if INTERPRETING and dtype == torch.bfloat16 else dtype


def _block(N: int) -> int:
    return 1 << (N - 1).bit_length()


def _warps(N: int) -> int:
    """Warps of a forward program: 16 numbers of each array a lane, or 8 if warps share them."""
    return 1 if N <= 16 else _block(N) // 8


def _cut(
    problem: Problem, channels: int, warps: int, cut: tuple[int, int] | None
) -> tuple[int, int]:
    if cut:
        return cut
    B, T, D = problem.u.shape
    programs = B * triton.cdiv(D, channels)
    return segments(programs * warps, T, _multiprocessors(problem.u.device))


def _edges(
    problem: Problem, x: Tensor, w: Tensor, first: Tensor | None, G: int, L: int, *, reverse: bool
) -> Tensor | None:
    """The state before each segment [B, G, N, D], or None; reverse: its gradient after each."""
    (B, T, D), N = problem.u.shape, problem.A.shape[0]
    if G == 1:
        return first
    edges = problem.A.new_empty(B, G, N, D)
    sums = problem.A.new_empty(B, G, D)
    delta = problem.delta
    ends_kernel[(B * (G - 1) * triton.cdiv(D, CHANNELS),)](
        x, delta, problem.A, w, edges, sums,
        *x.stride()[:2], *delta.stride()[:2], *w.stride()[:2],
        T, D, G, L, N, problem.input_rule, reverse, CHUNK, _block(N), CHANNELS,
        num_warps=_warps(N),
    )  # fmt: skip
    size = B * D * N
    carry_kernel[(triton.cdiv(size, 256),)](
        edges, sums, problem.A, edges if first is None else first, size, D, G, N,
        first is not None, reverse, 256, num_warps=4,
    )  # fmt: skip
    return edges


def forward(
    problem: Problem, *, keep: bool = False, cut: tuple[int, int] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """y in u's dtype, h_T [B, D, N], and the states stored for the gradients, empty if not `keep`.

    cut: G and L, in place of what `segments` says.
    """
    dtype = problem.u.dtype
    problem = _prepared(problem)
    u, delta, A, B_, C_ = problem.u, problem.delta, problem.A, problem.B, problem.C
    (B, T, D), N = u.shape, A.shape[0]
    G, L = _cut(problem, CHANNELS, _warps(N), cut)
    first = _edges(problem, u, B_, problem.h, G, L, reverse=False)
    y = torch.empty(B, T, D, dtype=_stored(dtype), device=u.device)
    last = A.new_empty(B, N, D)
    kept = A.new_empty(kept_shape(B, T, D, N) if keep else 0)
    outputs_kernel[(B * G * triton.cdiv(D, CHANNELS),)](
        u, delta, A, B_, C_, y, A if first is None else first, last, kept,
        *u.stride()[:2], *delta.stride()[:2], *B_.stride()[:2], *C_.stride()[:2],
        T, D, G, L, N, problem.input_rule, first is not None, keep, CHUNK, _block(N), CHANNELS,
        num_warps=_warps(N),
    )  # fmt: skip
    return y.to(dtype), _turned(last), kept


def tile(N: int, input_rule: str) -> tuple[int, int, int]:
    """R, BN, BL of the backward pass: 256 numbers, 8 a thread, at least 4 lanes of channels.

    Zero-order hold needs more registers, so it has half as many numbers.
    """
    BN = _block(N)
    BL = max(4, min(32, 64 // BN))
    return max(1, (256 if input_rule == "euler" else 128) // (BN * BL)), BN, BL


def backward(
    problem: Problem, kept: Tensor, dy: Tensor, dh: Tensor | None,
    *, cut: tuple[int, int] | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """du, dΔ, dA, dB, dC, dh_0, from what forward kept and the gradients of y and h_T (or None).

    dA and dh_0 in float32, the others in the dtypes of their inputs.
    """
    given = problem
    problem, dy = _prepared(problem), _rows(dy)
    dh = None if dh is None else _turned(dh)
    u, delta, A, B_, C_ = problem.u, problem.delta, problem.A, problem.B, problem.C
    (B, T, D), N = u.shape, A.shape[0]
    R, BN, BL = tile(N, problem.input_rule)
    blocks = triton.cdiv(D, R * BL)
    G, L = _cut(problem, R * BL, 1, cut)
    last = _edges(problem, dy, C_, dh, G, L, reverse=True)
    du, ddelta = (torch.empty(B, T, D, dtype=_stored(x.dtype), device=x.device) for x in (u, delta))
    dA, dfirst = A.new_empty(B, G, N, D), A.new_empty(B, N, D)
    dB, dC = A.new_empty(2, blocks, B, T, N)
    gradients_kernel[(B * G * blocks,)](
        u, delta, A, B_, C_, dy, kept, A if last is None else last,
        du, ddelta, dA, dB, dC, dfirst,
        *u.stride()[:2], *delta.stride()[:2], *B_.stride()[:2], *C_.stride()[:2], *dy.stride()[:2],
        T, D, G, L, N, problem.input_rule, last is not None, CHUNK, BN, R, BL, num_warps=1,
    )  # fmt: skip
    return (
        du.to(given.u.dtype), ddelta.to(given.delta.dtype), _turned(dA.sum((0, 1))),
        dB.sum(0).to(given.B.dtype), dC.sum(0).to(given.C.dtype), _turned(dfirst),
    )  # fmt: skip

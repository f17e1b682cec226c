"""The selective scan of Mamba (S6): a diagonal state space whose step, B and C depend on the input.

Gu and Dao (2023), algorithm 2. For each of D channels a state of N numbers,

    h_t = exp(Δ_t A) ∘ h_{t-1} + B̄_t u_t        y_t = C_t · h_t

with A fixed and negative, and Δ_t, B_t, C_t from the input. A is discretised by zero-order hold.
B̄_t = Δ_t B_t (Euler), as the published code has it, or (exp(Δ_t A) - 1) / A B_t (zero-order hold),
as the paper's equation 4 does.

Letters: u [B, T, D] the input, Δ [B, T, D] > 0 the step, A [D, N] < 0, B and C [B, T, N] shared by
the channels, h [B, D, N] the state.
"""

from __future__ import annotations

from torch import Tensor

from ..checks import floating, one_of, whole
from ..compat import is_transformed
from . import selective_operator as operator
from .reference import SCANS
from .selective_plain import in_chunks, selective_step, state_dtype

INPUT_RULES = ("euler", "zoh")
MODES = ("auto", "kernel", *SCANS)
LAYOUTS = ("[B, T, D]", "[B, T, D]", "[D, N]", "[B, T, N]", "[B, T, N]", "[B, D, N]")

__all__ = ["INPUT_RULES", "MODES", "selective_scan", "selective_step"]


def selective_scan(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    *,
    initial_state: Tensor | None = None,
    input_rule: str = "euler",
    mode: str = "auto",
    chunk_size: int = 64,
) -> tuple[Tensor, Tensor]:
    """All ticks: u, delta [B, T, D], A [D, N], B, C [B, T, N] to y [B, T, D] and h_T [B, D, N].

    initial_state: h_0 [B, D, N] (a batch of one is enough); zeros by default.
    input_rule: "euler" or "zoh", how B is discretised.
    mode: "kernel", Triton kernels on CUDA, which never store all states (no float64, N up to 64);
        "steps" or "tree", plain torch, the mode of `scan` inside a chunk. "auto" takes the kernels
        if they accept the call. Else it takes steps on a CPU, which the state keeps busy, and a
        tree on a GPU, which waits between steps.
    chunk_size: tokens whose states [B, C, D, N] exist at the same time (plain torch only).

    y has u's dtype. Everything is computed, and h_T returned, in float32, or in float64 if an input
    is float64. Raises ValueError for an unknown input_rule or mode, a chunk_size below 1, and
    shapes, dtypes or devices that do not fit. mode="kernel" also raises it for calls that the
    kernels do not take.
    """
    one_of("input_rule", input_rule, INPUT_RULES)
    one_of("mode", mode, MODES)
    whole("chunk_size", chunk_size)
    h = initial_state
    given = (u, delta, A, B, C) if h is None else (u, delta, A, B, C, h)
    for name, layout, x in zip(operator.NAMES, LAYOUTS, given, strict=False):
        floating(name, x, layout)
        if x.device != u.device:
            raise ValueError(f"{name}: expected u's device {u.device}, got {x.device}")
    if h is not None and h.dim() == 3 and h.shape[0] == 1:
        h = h.expand(u.shape[0], -1, -1)
    if wrong := operator.wrong_shape(u, delta, A, B, C, h):
        raise ValueError(wrong)
    if mode in ("auto", "kernel"):
        x = (u, delta, A, B, C, h)
        reason = operator.why_not(*x)
        if not reason and is_transformed(x):
            reason = "mode: expected auto, steps or tree inside torch.func or forward mode"
            reason += f", got {mode!r}"
        if not reason:
            return operator.selective_scan(*x, input_rule)
        if mode == "kernel":
            raise ValueError(reason)
        mode = "tree" if u.device.type == "cuda" else "steps"
    dtype = state_dtype(u, delta, A, B, C, *(() if h is None else (h,)))
    h = u.new_zeros(u.shape[0], *A.shape, dtype=dtype) if h is None else h.to(dtype)
    wide = (x.to(dtype) for x in (u, delta, A, B, C))
    y, h = in_chunks(*wide, h=h, input_rule=input_rule, mode=mode, chunk_size=chunk_size)
    return y.to(u.dtype), h

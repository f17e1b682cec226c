"""Linear attention over whole sequences: the one entry point to its three modes.

From q, k [B, T, H, K] and v [B, T, H, V] it computes o [B, T, H, V]. It is causal: o[:, i]
depends on k and v up to i only.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, overload

import torch
from torch import Tensor

from ..checks import boolean, finite, floating, is_at_hand, one_of, tensor, whole
from ..documents import document_starts
from .call import EPS, Call, accumulator_dtype
from .dispatch import FUSED_MAPS
from .feature_maps import FEATURE_MAPS
from .operator import attend

MODES = ("attention", "recurrent", "chunked")
DTYPES = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
RESET = {torch.float32: -112.0, torch.float64: -768.0}  # exp is zero a little above
LONGEST_CHUNK = 2**63 - 1  # the largest whole number that torch takes


class LinearState(NamedTuple):
    """The state of linear attention: S [B, H, K, V], the sum of k v^T, and z [B, H, K], of k."""

    S: Tensor
    z: Tensor


@overload
def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mode: str = ...,
    chunk_size: int | None = ...,
    normalize: bool = ...,
    scale: float | None = ...,
    eps: float = ...,
    initial_state: LinearState | None = ...,
    return_state: Literal[True],
    feature_map: str | None = ...,
    log_decay: Tensor | None = ...,
    cu_seqlens: Tensor | None = ...,
) -> tuple[Tensor, LinearState]: ...
@overload
def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mode: str = ...,
    chunk_size: int | None = ...,
    normalize: bool = ...,
    scale: float | None = ...,
    eps: float = ...,
    initial_state: LinearState | None = ...,
    return_state: Literal[False] = ...,
    feature_map: str | None = ...,
    log_decay: Tensor | None = ...,
    cu_seqlens: Tensor | None = ...,
) -> Tensor: ...
def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mode: str = "chunked",
    chunk_size: int | None = None,
    normalize: bool = True,
    scale: float | None = None,
    eps: float = EPS,
    initial_state: LinearState | None = None,
    return_state: bool = False,
    feature_map: str | None = None,
    log_decay: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> Tensor | tuple[Tensor, LinearState]:
    """Causal linear attention, o_i = sum_j w_ij (q_i·k_j) v_j / (sum_j w_ij q_i·k_j + eps), j <= i.

    Katharopoulos et al. (2020), eqs. 9-12 and 16-20, where every w_ij is 1. On CUDA it runs as
    Triton kernels, on a CPU as compiled C++ where that was built: `lsa.backends()`.

    q, k: [B, T, H, K]. With normalize=True the products of their features must not be negative.
    v: [B, T, H, V]. q, k and v have one dtype. Under autocast they may differ, and are cast.
    mode: "attention", "recurrent" or "chunked". The same function at different costs.
    chunk_size: tokens in a chunk (chunked mode only; the GPU kernels choose their own).
    normalize: divide by the sum of the weights.
    scale: multiplies the features of q; K ** -0.5 by default. When normalized it cancels, but for
        eps: for features so small that their products come near eps, set scale=1 or eps=0.
    eps: added to the normaliser; 0 or more. scale and eps must be finite in float32 (float64 for
        float64).
    initial_state: the state left by the tokens before; zeros by default.
    return_state: also return the state after the last token, in float32 (float64 for float64).
    feature_map: a name in `lsa.attention.feature_maps.FEATURE_MAPS`, applied to q and k; None if
        they are mapped already. The Triton kernels apply "elu_plus_one", "relu", "softplus" and
        "identity" as they load q and k, and store no features.
    log_decay: g, [H] or [B, T, H], at most 0; None for no decay. Token t multiplies the state by
        exp(g_t) before it enters, so w_ij = exp(g_{j+1} + ... + g_i). With one number a head this
        is eq. 6 of Sun et al. (2023). Numbers below -112 (-768 for float64), -inf included, are an
        exact reset: no earlier token counts from there on, and g has no gradient there. The range
        check runs on CPU tensors only: on CUDA it would force a sync, and torch.compile and
        torch.func have no values to check.
    cu_seqlens: int32 or int64 [N + 1]: 0, then the end of each document, counted through the B rows
        laid end to end, up to B T. The state is reset at the first token of each document, and each
        row begins one. The returned state is that of each row's last document. Not together with
        initial_state.

    A NaN in q spoils its own token; one in k or v spoils all later tokens. A NaN in v may also
    spoil earlier tokens: all of them in attention mode (on CUDA and compiled those of its tile),
    those of its chunk in chunked mode, none in recurrent mode. With log_decay so may a NaN in k.

    Returns o [B, T, H, V] in the dtype of v, or (o, state).
    Raises ValueError for shapes, dtypes, devices or numbers that do not fit, or an unknown mode.
    """
    q, k, v = alike_under_autocast(q, k, v)
    check_qkv(q, k, v)
    feature_map = "identity" if feature_map is None else feature_map
    one_of("mode", mode, MODES)
    one_of("feature_map", feature_map, FEATURE_MAPS)
    boolean("normalize", normalize)
    boolean("return_state", return_state)
    if chunk_size is not None:
        whole("chunk_size", chunk_size, most=LONGEST_CHUNK)
    if scale is not None:  # a tensor would lose its gradient: multiply q by it instead
        scale = finite("scale", scale, dtype=accumulator_dtype(q.dtype))
    if eps is not EPS:
        expected, dtype = "a finite number, 0 or more,", accumulator_dtype(q.dtype)
        eps = finite("eps", eps, expected, low=0, dtype=dtype)
    if feature_map not in FUSED_MAPS:
        q, k = (FEATURE_MAPS[feature_map](x).to(v.dtype) for x in (q, k))
        feature_map = "identity"
    B, _, H, K = q.shape
    S, z = None, None
    if initial_state is not None:
        S, z = check_state(initial_state, (B, H, K, v.shape[-1]), q.device)
    scale = float(K**-0.5) if scale is None else scale
    g = None if log_decay is None else check_decay(log_decay, q)
    if cu_seqlens is not None:
        if initial_state is not None:
            raise ValueError("initial_state: expected none beside cu_seqlens, which begin anew")
        dtype, starts = accumulator_dtype(q.dtype), document_starts(cu_seqlens, q).unsqueeze(-1)
        g = torch.where(starts, RESET[dtype], q.new_zeros(H, dtype=dtype) if g is None else g)
    o, S, z = attend(
        Call(
            q, k, v, S, z, g, mode=mode, chunk_size=chunk_size or 0, normalize=normalize,
            scale=scale, eps=eps, feature_map=feature_map, with_z=return_state,
        )
    )  # fmt: skip
    return (o, LinearState(S, z)) if return_state else o


def alike_under_autocast(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v, in autocast's dtype where theirs differ, as for scaled_dot_product_attention."""
    if not all(isinstance(x, Tensor) for x in (q, k, v)) or q.dtype is k.dtype is v.dtype:
        return q, k, v
    kind = q.device.type
    floats = all(x.is_floating_point() for x in (q, k, v))
    if not floats or q.is_meta or not torch.is_autocast_enabled(kind):
        return q, k, v
    dtype = torch.get_autocast_dtype(kind)
    q, k, v = (x if x.dtype is torch.float64 else x.to(dtype) for x in (q, k, v))
    return q, k, v


def check_decay(log_decay: Tensor, q: Tensor) -> Tensor:
    """log_decay as [B, T, H], or as [1, 1, H] when it is the same for all tokens."""
    B, T, H, _ = q.shape
    if not isinstance(log_decay, Tensor) or not log_decay.is_floating_point():
        got = log_decay.dtype if isinstance(log_decay, Tensor) else type(log_decay).__name__
        raise ValueError(f"log_decay: expected a floating tensor, got {got}")
    if tuple(log_decay.shape) not in ((H,), (B, T, H)):
        raise ValueError(f"log_decay: expected [{H}] or {[B, T, H]}, got {list(log_decay.shape)}")
    if log_decay.device != q.device:
        raise ValueError(f"log_decay: expected q's device {q.device}, got {log_decay.device}")
    # Below `lowest` exp is zero. Clamping there keeps the digits of later sums.
    g, lowest = log_decay, RESET[accumulator_dtype(q.dtype)]
    least = -math.inf
    if is_at_hand(g) and g.numel():
        low, high = g.detach().aminmax()
        least, most = low.item(), high.item()
        if not most <= 0:
            raise ValueError(f"log_decay: expected numbers at most 0, got {most}")
    g = g if least >= lowest else g.clamp(min=lowest)
    return g.view(1, 1, H) if g.dim() == 1 else g


def check_qkv(q: Tensor, k: Tensor, v: Tensor, *, longer_keys: bool = False) -> None:
    """Raise ValueError, naming the argument, unless q, k, v fit together as [B, T, H, K or V]."""
    if (
        type(q) is type(k) is type(v) is Tensor
        and (shape := q.shape) == k.shape == v.shape
        and q.dtype is k.dtype is v.dtype in DTYPES
        and q.device == k.device == v.device
        and len(shape) == 4
        and shape[-1] > 0
    ):
        return  # the usual case; in a short call every further test would show
    shapes = []  # read once: torch builds a new tuple at each access
    for name, x in (("q", q), ("k", k), ("v", v)):
        floating(name, x, "[B, T, H, features]")
        shape = x.shape
        if len(shape) != 4:
            raise ValueError(f"{name}: expected [B, T, H, features], got {list(shape)}")
        if shape[-1] == 0:
            raise ValueError(f"{name}: expected at least one feature, got {list(shape)}")
        shapes.append(shape)
    (B, T, H, K), *others = shapes
    dtype, device = q.dtype, q.device
    for name, x, shape in zip("kv", (k, v), others, strict=True):
        if x.dtype != dtype:
            raise ValueError(f"{name}: expected q's dtype {dtype}, got {x.dtype}")
        if x.device != device:
            raise ValueError(f"{name}: expected q's device {device}, got {x.device}")
        if shape[0] != B:
            raise ValueError(f"{name}: expected q's batch {B}, got {shape[0]}")
        if shape[2] != H:
            raise ValueError(f"{name}: expected q's heads {H}, got {shape[2]}")
    (_, length, _, features), (_, values, _, _) = others
    if length != T and not (longer_keys and length > T):
        raise ValueError(f"k: expected q's length {T}, got {length}")
    if values != length:
        raise ValueError(f"v: expected k's length {length}, got {values}")
    if features != K:
        raise ValueError(f"k: expected q's features {K}, got {features}")


def checked_scale(scale: float | None, dtype: torch.dtype) -> float | None:
    """The scale of softmax scores of a dtype. Raises ValueError unless it is above 0, and finite.

    Given another number, torch would return NaN or zeros.
    """
    if scale is None:
        return None
    dtype = accumulator_dtype(dtype)
    least = torch.finfo(dtype).tiny
    return finite("scale", scale, "a finite number above 0", low=least, dtype=dtype)


def check_state(
    state: LinearState, shape: tuple[int, int, int, int], device: torch.device
) -> LinearState:
    """Raise ValueError unless state is (S, z) of shape [B, H, K, V] and [B, H, K], on `device`."""
    if not isinstance(state, tuple) or len(state) != 2:
        raise ValueError(f"initial_state: expected (S, z), got {type(state).__name__}")
    S, z = state
    # The layouts are words: torch.compile cannot write a list of symbols.
    each = ("S", S, shape, "[B, H, K, V]"), ("z", z, shape[:3], "[B, H, K]")
    for name, x, expected, layout in each:
        where = f"initial_state.{name}"
        tensor(where, x, layout)
        if tuple(x.shape) != expected:
            raise ValueError(f"{where}: expected {list(expected)}, got {list(x.shape)}")
        if not x.is_floating_point():
            raise ValueError(f"{where}: expected a floating dtype, got {x.dtype}")
        if x.device != device:
            raise ValueError(f"{where}: expected q's device {device}, got {x.device}")
    return LinearState(S, z)

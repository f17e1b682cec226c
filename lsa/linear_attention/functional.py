"""Linear attention over whole sequences: the one entry point to its three modes.

It takes q, k [B, T, H, K] and v [B, T, H, V] and returns o [B, T, H, V], causally: o[:, i]
depends on k and v up to i only.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .feature_maps import FEATURE_MAPS
from .operator import FUSED_MAPS, attend
from .operator import accumulator_dtype as accumulator_dtype

MODES = ("attention", "recurrent", "chunked")
EPS = 1e-6


class LinearState(NamedTuple):
    """What linear attention remembers: S [B, H, K, V], the sum of k v^T, and z [B, H, K], of k."""

    S: Tensor
    z: Tensor


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
) -> Tensor | tuple[Tensor, LinearState]:
    """Causal linear attention, o_i = sum_{j<=i} (q_i·k_j) v_j / (sum_{j<=i} q_i·k_j + eps).

    Katharopoulos et al. (2020), eqs. 9-12 and 16-20. On CUDA it runs as Triton kernels.

    q, k: [B, T, H, K]. With normalize=True the products of their features must not be negative.
    v: [B, T, H, V].
    mode: "attention", "recurrent" or "chunked". The same function at different costs.
    chunk_size: tokens in a chunk (chunked mode in plain torch only; the kernels know theirs).
    normalize: divide by the sum of the weights.
    scale: multiplies q; K ** -0.5 by default. It cancels when normalized.
    eps: added to the normaliser.
    initial_state: the state left by the tokens before; zeros by default.
    return_state: also return the state after the last token, in float32 (float64 for float64).
    feature_map: a name in `feature_maps.FEATURE_MAPS`, applied to q and k; None when they are
        mapped already. All but `exp` are computed on the way, and never stored.

    Returns o [B, T, H, V] in the dtype of v, or (o, state).
    Raises ValueError for shapes, dtypes or devices that do not fit, or an unknown mode.
    """
    check_qkv(q, k, v)
    if mode not in MODES:
        raise ValueError(f"mode: expected one of {', '.join(MODES)}, got {mode!r}")
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"chunk_size: expected at least 1, got {chunk_size}")
    feature_map = feature_map or "identity"
    if feature_map not in FEATURE_MAPS:
        raise ValueError(
            f"feature_map: expected one of {', '.join(FEATURE_MAPS)}, got {feature_map!r}"
        )
    if feature_map not in FUSED_MAPS:
        q, k = (FEATURE_MAPS[feature_map](x).to(v.dtype) for x in (q, k))
        feature_map = "identity"
    B, _, H, K = q.shape
    S, z = (None, None)
    if initial_state is not None:
        S, z = check_state(initial_state, (B, H, K, v.shape[-1]))
    scale = float(K**-0.5 if scale is None else scale)
    options = (mode, chunk_size or 0, normalize, scale, float(eps), feature_map, return_state)
    o, S, z = attend(q, k, v, S, z, *options)[:3]
    return (o, LinearState(S, z)) if return_state else o


def check_qkv(q: Tensor, k: Tensor, v: Tensor, *, longer_keys: bool = False) -> None:
    """Raise ValueError, naming the argument, unless q, k, v fit together as [B, T, H, K or V]."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dim() != 4:
            raise ValueError(f"{name}: expected [B, T, H, features], got {list(x.shape)}")
        if not x.is_floating_point():
            raise ValueError(f"{name}: expected a floating dtype, got {x.dtype}")
    for name, x in (("k", k), ("v", v)):
        if x.dtype != q.dtype:
            raise ValueError(f"{name}: expected q's dtype {q.dtype}, got {x.dtype}")
        if x.device != q.device:
            raise ValueError(f"{name}: expected q's device {q.device}, got {x.device}")
        for axis, size in ((0, "batch"), (2, "heads")):
            if x.shape[axis] != q.shape[axis]:
                raise ValueError(
                    f"{name}: expected q's {size} {q.shape[axis]}, got {x.shape[axis]}"
                )
    if k.shape[1] != q.shape[1] and not (longer_keys and k.shape[1] > q.shape[1]):
        raise ValueError(f"k: expected q's length {q.shape[1]}, got {k.shape[1]}")
    if v.shape[1] != k.shape[1]:
        raise ValueError(f"v: expected k's length {k.shape[1]}, got {v.shape[1]}")
    if k.shape[-1] != q.shape[-1]:
        raise ValueError(f"k: expected q's features {q.shape[-1]}, got {k.shape[-1]}")


def check_state(state: LinearState, shape: tuple[int, int, int, int]) -> LinearState:
    """Raise ValueError unless state is (S, z) of shape [B, H, K, V] and [B, H, K]."""
    S, z = state
    if tuple(S.shape) != shape:
        raise ValueError(f"initial_state.S: expected {list(shape)}, got {list(S.shape)}")
    if tuple(z.shape) != shape[:3]:
        raise ValueError(f"initial_state.z: expected {list(shape[:3])}, got {list(z.shape)}")
    return LinearState(S, z)

"""Linear attention of a sequence over several ranks, each with a contiguous part."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..attention import api
from ..attention.feature_maps import FEATURE_MAPS
from ..checks import boolean, instance, one_of
from .ranks import Exchange, Ranks
from .transitions import transition_of


def start(
    k: Tensor,
    v: Tensor,
    *,
    ranks: Ranks,
    feature_map: str | None = None,
    initial_state: api.LinearState | None = None,
    log_decay: Tensor | None = None,
) -> Exchange:
    """Start the exchange of this rank's effect on the state [S z], [B, H, K, V + 1]."""
    dtype = api.accumulator_dtype(k.dtype)
    phi = FEATURE_MAPS[feature_map or "identity"]
    g = None
    if log_decay is not None:
        g = log_decay.to(dtype).clamp(min=api.RESET[dtype])
        g = (g.view(1, 1, -1) if g.dim() == 1 else g).unsqueeze(-1)
    state = None
    if initial_state is not None:
        S, z = initial_state
        state = torch.cat((S, z.unsqueeze(-1)), -1).to(dtype)
    return ranks.start(
        transition_of(phi(k.to(dtype)), F.pad(v.to(dtype), (0, 1), value=1.0), g), state
    )


def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    ranks: Ranks,
    feature_map: str | None = None,
    initial_state: api.LinearState | None = None,
    return_state: bool = False,
    log_decay: Tensor | None = None,
    **options: Any,
) -> Any:
    """`lsa.linear_attention` of a sequence over ranks: q, k, v, log_decay are this rank's part.

    Each rank sums up its part and sends the others its effect on a state: B H K (V + 1) numbers,
    with decay B H more, for any T. Then each attends, starting from the state before it. Parts may
    differ in length, and be empty. A log_decay of -inf at a token begins a document.

    initial_state: that of the whole sequence; only the first rank's is used.
    return_state: also the state after the whole sequence, on every rank; see `Exchange.after`.
    options: mode, chunk_size, normalize, scale and eps, as in `lsa.linear_attention`.

    Returns o [B, T, H, V] of this rank's part, or (o, state). Raises ValueError like it.
    """
    api.check_qkv(q, k, v)
    instance("ranks", ranks, Ranks)
    if log_decay is not None:
        api.check_decay(log_decay, q)  # before other ranks are told anything
    boolean("return_state", return_state)
    one_of("feature_map", feature_map or "identity", FEATURE_MAPS)
    if options.get("cu_seqlens") is not None:
        raise ValueError("cu_seqlens: expected none with ranks; log_decay -inf begins a document")
    if initial_state is not None:
        B, _, H, K = q.shape
        initial_state = api.check_state(initial_state, (B, H, K, v.shape[-1]), q.device)
    fixed = {"feature_map": feature_map, "log_decay": log_decay}
    exchange = start(k, v, ranks=ranks, initial_state=initial_state, **fixed)
    before = exchange.before()
    o = read(q, k, v, before, **fixed, **options)
    if not return_state:
        return o
    after = exchange.after(before)
    return o, api.LinearState(after[..., :-1], after[..., -1])


def resets(starts: Tensor, k: Tensor, log_decay: Tensor | None = None) -> Tensor:
    """log_decay [B, T, H] with resets. starts [B, T]: first tokens of documents; log_decay [H]."""
    if log_decay is None:
        log_decay = k.new_zeros(k.shape[2], dtype=api.accumulator_dtype(k.dtype))
    return torch.where(starts.unsqueeze(-1), -torch.inf, log_decay)


def read(q: Tensor, k: Tensor, v: Tensor, before: Tensor, **options: Any) -> Tensor:
    """o of this rank's part from the state [S z] before it. options: of `lsa.linear_attention`."""
    state = api.LinearState(before[..., :-1], before[..., -1])
    return api.linear_attention(q, k, v, initial_state=state, **options)

"""The three modes of linear attention in plain torch: the definition that kernels are tested on.

With features q_i, k_j in R^K and values v_j in R^V, all three compute

    num_i = sum_{j<=i} w_ij (q_i·k_j) v_j + w_i0 q_i S_0    den_i = the same with 1 for v, z for S
    o_i   = num_i / (den_i + eps)                            or num_i alone when eps is None

and the state after the last token, S = w_T0 S_0 + sum_j w_Tj k_j v_j^T, and z likewise. Without
decay every w is 1. With it, token t multiplies the state by exp(g_t) before it enters:

    S_t = exp(g_t) S_{t-1} + k_t v_t^T                       w_ij = exp(g_{j+1} + ... + g_i)

With one g a head it is RetNet (Sun et al., 2023, eq. 6); with one a token and head, Mamba-2 (Dao
and Gu, 2024). Exponentials are taken of such sums only, never of a whole prefix, so with g <= 0
none of them overflows in any text. Each sum is taken on its own: a difference of two running sums
would lose all digits after a reset, a g so low that exp(g) is zero.

The modes differ in what they form: every product q_i·k_j (attention), every state S_i (recurrent),
or a few of both (chunked).

Shapes here: q, k [B, H, T, K]; v, o [B, H, T, V]; S [B, H, K, V]; z [B, H, K]. log_decay, g above:
None, [B, H, T], or [1, H, 1] if it is the same for all tokens. Everything can be differentiated,
any number of times.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


def _divide(num: Tensor, den: Tensor, eps: float | None) -> Tensor:
    return num if eps is None else num / (den + eps).unsqueeze(-1)


class Decay(NamedTuple):
    """Weights of decay inside a stretch of C tokens.

    between [..., C, C]: w_ij for j <= i, zero above the diagonal.
    since [..., C, 1]: the factor at each token of the state before the stretch.
    until [..., C, 1]: the factor of each token at the end of the stretch.
    whole [..., 1, 1]: the factor of the state over the whole stretch.
    """

    between: Tensor
    since: Tensor
    until: Tensor
    whole: Tensor


def decay_between(g: Tensor) -> Tensor:
    """exp(sum of g_l over j < l <= i), 0 for j > i. g [..., C, P] to [..., C, C, P], i first."""
    C = g.shape[-2]
    i_after_j = torch.ones(C, C, dtype=torch.bool, device=g.device).tril(-1).unsqueeze(-1)
    sums = torch.where(i_after_j, g.unsqueeze(-2), 0).cumsum(-3)
    return sums.masked_fill(i_after_j.transpose(-3, -2), -math.inf).exp()


def decay_inside(log_decay: Tensor, C: int) -> Decay:
    """The decay weights of C tokens. log_decay [..., C], or [..., 1] for C equal tokens."""
    g = log_decay.expand(*log_decay.shape[:-1], C).unsqueeze(-1)
    between, since = decay_between(g).squeeze(-1), g.cumsum(-2).exp()
    if C == 0:
        return Decay(between, since, since, since.new_ones(*g.shape[:-2], 1, 1))
    return Decay(between, since, between[..., -1, :].unsqueeze(-1), since[..., -1:, :])


def attention_mode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    S: Tensor,
    z: Tensor,
    eps: float | None,
    log_decay: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Every product at once: 2 T^2 (K + V) FLOPs a head, one step. Returns o, S, z."""
    # 1. All T x T products; the future is masked away.
    A = (q @ k.transpose(-1, -2)).tril()  # [B, H, T, T]
    if log_decay is not None:
        decay = decay_inside(log_decay, q.shape[2])
        A = A * decay.between
        q, k = q * decay.since, k * decay.until
    # 2. The masked products weigh the values.
    num = A @ v + q @ S
    # 3. The normaliser is the same sum over the constant value 1.
    den = A.sum(-1) + (q @ z.unsqueeze(-1)).squeeze(-1)
    if log_decay is not None:
        S, z = S * decay.whole, z * decay.whole.squeeze(-1)
    return _divide(num, den, eps), S + k.transpose(-1, -2) @ v, z + k.sum(-2)


def recurrent_mode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    S: Tensor,
    z: Tensor,
    eps: float | None,
    log_decay: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """One state, updated T times: 4 T K V FLOPs a head, T steps. Returns o, S, z."""
    o = []
    T = q.shape[2]
    decays: tuple[Tensor | None, ...] = (None,) * T
    if log_decay is not None:
        decays = log_decay.expand(*log_decay.shape[:2], T).exp().unbind(2)
    # unbind, not q[:, :, t]: the gradient of T slices would be T arrays as long as q.
    tokens = zip(q.unbind(2), k.unbind(2), v.unbind(2), decays, strict=True)
    for q_t, k_t, v_t, decay in tokens:
        o_t, S, z = recurrent_step(q_t, k_t, v_t, S, z, eps, decay)
        o.append(o_t)
    return (torch.stack(o, dim=2) if o else q @ S), S, z


def recurrent_step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    S: Tensor,
    z: Tensor,
    eps: float | None,
    decay: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """One tick. q, k [B, H, K]; v, o [B, H, V]; decay, exp(g), [B, H]. Returns o, S, z."""
    # 1. The state fades, and the token enters it.
    if decay is not None:
        S, z = S * decay[..., None, None], z * decay[..., None]
    S = S + k.unsqueeze(-1) * v.unsqueeze(-2)
    z = z + k
    # 2. The query reads it.
    num = (q.unsqueeze(-2) @ S).squeeze(-2)
    return _divide(num, (q * z).sum(-1), eps), S, z


def chunked_mode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    S: Tensor,
    z: Tensor,
    eps: float | None,
    chunk_size: int,
    log_decay: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention inside chunks of C tokens, a state between them. Returns o, S, z.

    2 T C (K + V) + 4 T K V FLOPs a head, T / C steps.
    """
    T = q.shape[2]
    C = max(1, min(chunk_size, T))
    N = -(-T // C)
    if log_decay is not None:
        return _chunked_with_decay(q, k, v, S, z, eps, C, log_decay)
    # A token of zeros adds nothing to a state, so zeros fill the last chunk.
    q, k, v = (F.pad(x, (0, 0, 0, N * C - T)).unflatten(2, (N, C)) for x in (q, k, v))
    # 1. Terms that each chunk adds to the state.
    dS, dz = k.transpose(-1, -2) @ v, k.sum(-2)  # [B, H, N, K, V], [B, H, N, K]
    # 2. The state before each chunk, and after the last: a running sum over the chunks.
    S = torch.cat((S.unsqueeze(2), dS), dim=2).cumsum(2)
    z = torch.cat((z.unsqueeze(2), dz), dim=2).cumsum(2)
    # 3. Inside each chunk, attention mode.
    A = (q @ k.transpose(-1, -2)).tril()  # [B, H, N, C, C]
    # 4. The past through the state, the chunk through its products.
    num = q @ S[:, :, :N] + A @ v
    den = (q @ z[:, :, :N].unsqueeze(-1)).squeeze(-1) + A.sum(-1)
    o = _divide(num, den, eps).flatten(2, 3)[:, :, :T]
    return o, S[:, :, N], z[:, :, N]


def _chunked_with_decay(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    S: Tensor,
    z: Tensor,
    eps: float | None,
    C: int,
    log_decay: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Chunked mode with decay: the same four steps; the running sum becomes a recurrence."""
    T = q.shape[2]
    if T == 0:
        return q @ S, S.clone(), z.clone()  # the caller's state stays the caller's
    whole = T // C * C
    if whole < T:
        # A tail of zeros would decay the state, so the tail is a shorter chunk of its own.
        parts = []
        for part in (slice(whole), slice(whole, T)):
            g = log_decay if log_decay.shape[2] == 1 else log_decay[:, :, part]
            size = min(C, T - whole) if part.start else C
            tokens = q[:, :, part], k[:, :, part], v[:, :, part]
            o, S, z = _chunked_with_decay(*tokens, S, z, eps, size, g)
            parts.append(o)
        return torch.cat(parts, dim=2), S, z
    N = T // C
    q, k, v = (x.unflatten(2, (N, C)) for x in (q, k, v))
    # If all tokens have one g, all chunks have the same weights.
    constant = log_decay.shape[2] == 1
    decay = decay_inside(log_decay.unsqueeze(2) if constant else log_decay.unflatten(2, (N, C)), C)
    # 1. Terms that each chunk adds to the state, decayed to the chunk's end.
    kept = k * decay.until
    dS, dz = kept.transpose(-1, -2) @ v, kept.sum(-2)
    # 2. The state before each chunk: the one before it decayed, plus what was added.
    left = decay.whole.expand(-1, -1, N, -1, -1).unbind(2)
    before_S, before_z = [], []
    for added_S, added_z, factor in zip(dS.unbind(2), dz.unbind(2), left, strict=True):
        before_S.append(S)
        before_z.append(z)
        S, z = S * factor + added_S, z * factor.squeeze(-1) + added_z
    # 3. Inside each chunk, attention mode.
    A = (q @ k.transpose(-1, -2)) * decay.between
    # 4. The past through the decayed state, the chunk through its products.
    read = q * decay.since
    num = read @ torch.stack(before_S, 2) + A @ v
    den = (read @ torch.stack(before_z, 2).unsqueeze(-1)).squeeze(-1) + A.sum(-1)
    return _divide(num, den, eps).flatten(2, 3), S, z

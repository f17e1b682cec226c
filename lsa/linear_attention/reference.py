"""The three modes of linear attention in plain torch: the definition that kernels must agree with.

With features q_i, k_j in R^K and values v_j in R^V, all three compute

    num_i = sum_{j<=i} (q_i·k_j) v_j + q_i S_0          den_i = sum_{j<=i} q_i·k_j + q_i·z_0
    o_i   = num_i / (den_i + eps)                        or num_i alone when eps is None

and the state after the last token, S = S_0 + sum_j k_j v_j^T and z = z_0 + sum_j k_j.
They differ in what is formed on the way: every product q_i·k_j (attention), every state S_i
(recurrent), or a few of both (chunked).

Shapes here: q, k [B, H, T, K]; v, o [B, H, T, V]; S [B, H, K, V]; z [B, H, K].
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def _divide(num: Tensor, den: Tensor, eps: float | None) -> Tensor:
    return num if eps is None else num / (den + eps).unsqueeze(-1)


def attention_mode(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor, eps: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Every product at once: 2 T^2 (K + V) FLOPs a head, one step. Returns o, S, z."""
    # 1. All T x T products; the future is masked away.
    A = (q @ k.transpose(-1, -2)).tril()  # [B, H, T, T]
    # 2. The masked products weigh the values.
    num = A @ v + q @ S
    # 3. The normaliser is the same sum over the constant value 1.
    den = A.sum(-1) + (q @ z.unsqueeze(-1)).squeeze(-1)
    return _divide(num, den, eps), S + k.transpose(-1, -2) @ v, z + k.sum(-2)


def recurrent_mode(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor, eps: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """One state, updated T times: 4 T K V FLOPs a head, T steps. Returns o, S, z."""
    o = []
    # unbind, not q[:, :, t]: the gradient of T slices would be T arrays as long as q.
    for q_t, k_t, v_t in zip(q.unbind(2), k.unbind(2), v.unbind(2), strict=True):
        o_t, S, z = recurrent_step(q_t, k_t, v_t, S, z, eps)
        o.append(o_t)
    return (torch.stack(o, dim=2) if o else q @ S), S, z


def recurrent_step(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor, eps: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """One tick. q, k [B, H, K]; v, o [B, H, V]. Returns o, S, z."""
    # 1. The token enters the state.
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
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention inside chunks of C tokens, a state between them. Returns o, S, z.

    2 T C (K + V) + 4 T K V FLOPs a head, T / C steps.
    """
    T = q.shape[2]
    C = max(1, min(chunk_size, T))
    N = -(-T // C)
    # A token of zeros adds nothing to a state, so the tail is filled with them.
    q, k, v = (F.pad(x, (0, 0, 0, N * C - T)).unflatten(2, (N, C)) for x in (q, k, v))
    # 1. What each chunk adds to the state.
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

"""The scan h_t = a_t h_{t-1} + b_t in plain torch, elementwise: the definition, and a tree.

Two tokens in a row are one token: after (a, b) and then (a', b') the state is

    a' (a h + b) + b' = (a' a) h + (a' b + b'),

so tokens combine by (a, b) ∘ (a', b') = (a' a, a' b + b'), which is associative. A scan is all
prefixes of that product. In order it takes T steps; as a tree, 2 log2 T steps.

Shapes here: a, b, h [B, T, ...], a broadcasting against b; h_0 [B, ...].
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..checks import floating, one_of


def steps(a: Tensor, b: Tensor) -> Tensor:
    """The scan token by token, from h_0 = 0: T steps of one multiply-add an entry. [B, T, ...]."""
    h, states = torch.zeros_like(b[:, 0]), []
    # unbind, not a[:, t]: the gradient of T slices would be T arrays as long as a.
    for a_t, b_t in zip(a.unbind(1), b.unbind(1), strict=True):
        h = a_t * h + b_t
        states.append(h)
    return torch.stack(states, dim=1)


def tree(a: Tensor, b: Tensor) -> Tensor:
    """The scan as a tree, from h_0 = 0: 2 log2 T steps, 3 T multiply-adds an entry. [B, T, ...].

    Blelloch (1990), in the order of Brent and Kung (1982). Neighbours are combined and the sequence
    of pairs is scanned. The first token of a pair then starts from the state of the pair before.
    Only products of the a are formed, never quotients, so decays below 1 cannot overflow.
    """
    T = b.shape[1]
    if T == 1:
        return b
    # 1. Up: each pair becomes one token. A single token at the end stays out.
    pairs = T // 2
    a_first, a_second = a[:, : 2 * pairs].unflatten(1, (pairs, 2)).unbind(2)
    b_first, b_second = b[:, : 2 * pairs].unflatten(1, (pairs, 2)).unbind(2)
    h_second = tree(a_second * a_first, a_second * b_first + b_second)
    # 2. Down: the firsts, from the seconds before them.
    inner = a[:, 2::2] * h_second[:, : (T - 1) // 2] + b[:, 2::2]
    h_first = torch.cat((b[:, :1], inner), dim=1)
    if h_first.shape[1] == pairs:
        return torch.stack((h_first, h_second), dim=2).flatten(1, 2)
    both = torch.stack((h_first[:, :-1], h_second), dim=2).flatten(1, 2)
    return torch.cat((both, h_first[:, -1:]), dim=1)


SCANS = {"steps": steps, "tree": tree}


def scan(
    a: Tensor, b: Tensor, *, initial_state: Tensor | None = None, mode: str = "tree"
) -> Tensor:
    """All states of h_t = a_t h_{t-1} + b_t, elementwise.

    a: [B, T, ...], broadcasting against b. b: [B, T, ...].
    initial_state: h_0 [B, ...] (a batch of one is enough); zeros by default.
    mode: "steps", one after the other, or "tree", in 2 log2 T steps. The same function.

    Returns h [B, T, ...]. Raises ValueError for another mode, numbers that are neither floating nor
    complex, or lengths, dtypes or devices that differ.
    """
    one_of("mode", mode, SCANS)
    for name, x in (("a", a), ("b", b)):
        if not (isinstance(x, Tensor) and x.is_complex()):
            floating(name, x, "[B, T, ...]")
        if x.dim() < 2:
            raise ValueError(f"{name}: expected [B, T, ...], got {list(x.shape)}")
    if a.dtype != b.dtype:
        raise ValueError(f"a: expected b's dtype {b.dtype}, got {a.dtype}")
    if a.device != b.device:
        raise ValueError(f"a: expected b's device {b.device}, got {a.device}")
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"a: expected b's length {b.shape[1]}, got {a.shape[1]}")
    if b.shape[1] == 0:
        return b
    if initial_state is not None:
        # The initial state is one more term of the first token.
        b = torch.cat((b[:, :1] + a[:, :1] * initial_state.unsqueeze(1), b[:, 1:]), dim=1)
    return SCANS[mode](a, b) if b.shape[1] > 1 else b.clone()

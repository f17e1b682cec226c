"""What tests of the operation and of layers share: bounds, errors, definitions, counts."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lsa.attention import reference
from lsa.attention.feature_maps import FEATURE_MAPS

# All but the slowest of opcheck's, which has a compiler go through the body in plain torch.
OPERATOR_RULES = ("test_schema", "test_autograd_registration", "test_faketensor")
RELATIVE = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 3.3e-3}


def relative_rms(found, wanted):
    """The RMS of the error over the RMS of what is wanted."""
    if wanted.numel() == 0:
        return 0.0
    wanted = wanted.double()
    error = (found.double() - wanted).square().mean().sqrt()
    return (error / wanted.square().mean().sqrt().clamp_min(1e-300)).item()


def counted(call):
    """What a call returns, and its FLOPs by torch, which counts none of fused attention's."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        found = call()
    return found, counter.get_total_flops()


def in_pieces(machine, x, cuts):
    """The state after x, and all outputs, of a machine that reads x in pieces of these lengths."""
    state, pieces = machine.initial_state, []
    for piece in x.split(cuts, dim=1):
        state, y = machine.prefill(state, piece)
        pieces.append(y)
    return state, torch.cat(pieces, 1)


def recurrence(q, k, v, S, z, g=None, *, scale=None, eps=1e-6, normalize=True):
    """o, S, z as the docstring of linear_attention reads, token by token.

    g: log_decay, [H] or [B, T, H].
    """
    (B, T, H, K), o = q.shape, [v[:, :0]]
    scale = K**-0.5 if scale is None else scale
    a = torch.ones(B, T, H).to(q) if g is None else g.expand(B, T, H).exp()
    for t in range(T):
        S = a[:, t, :, None, None] * S + torch.einsum("bhk,bhv->bhkv", k[:, t], v[:, t])
        z = a[:, t, :, None] * z + k[:, t]
        num = torch.einsum("bhk,bhkv->bhv", q[:, t], S) * scale
        den = (q[:, t] * z).sum(-1, keepdim=True) * scale + eps if normalize else 1.0
        o.append((num / den).unsqueeze(1))
    return torch.cat(o, 1), S, z


def definition(q, k, v, S, z, *, scale, eps, normalize, feature_map, g=None):
    """reference.attention_mode in the public layout: o, S, z. g: log_decay, [B, T, H]."""
    phi = FEATURE_MAPS[feature_map]
    heads = (x.transpose(1, 2) for x in (phi(q) * scale, phi(k), v))
    decay = None if g is None else g.transpose(1, 2)
    o, S, z = reference.attention_mode(*heads, S, z, eps if normalize else None, decay)
    return o.transpose(1, 2), S, z

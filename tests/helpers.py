"""What tests of the operation share: bounds, errors, and the definition in float64."""

import torch

from lsa.attention import reference
from lsa.attention.feature_maps import FEATURE_MAPS

RELATIVE = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 3.3e-3}


def relative_rms(found, wanted):
    """The RMS of the error over the RMS of what is wanted."""
    if wanted.numel() == 0:
        return 0.0
    wanted = wanted.double()
    error = (found.double() - wanted).square().mean().sqrt()
    return (error / wanted.square().mean().sqrt().clamp_min(1e-300)).item()


def definition(q, k, v, S, z, *, scale, eps, normalize, feature_map, g=None):
    """reference.attention_mode in the public layout: o, S, z. g: log_decay, [B, T, H]."""
    phi = FEATURE_MAPS[feature_map]
    heads = (x.transpose(1, 2) for x in (phi(q) * scale, phi(k), v))
    decay = None if g is None else g.transpose(1, 2)
    o, S, z = reference.attention_mode(*heads, S, z, eps if normalize else None, decay)
    return o.transpose(1, 2), S, z

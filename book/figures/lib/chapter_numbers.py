"""Small computations that a chapter's prose states; they run with the build, without results."""

from __future__ import annotations

import math
from random import Random
from statistics import fmean, stdev
from typing import Any

import torch
from torch import nn

from lsa import (
    BidirectionalAttention,
    SoftmaxAttention,
    all_prefixes,
    gpt_config,
    linear_attention,
    take_last,
    tape,
    unroll,
)
from lsa.attention.feature_maps import elu_plus_one
from lsa.machines import state_bytes
from lsa.sequences import Counted, autoregressive, sample_by_walking, sequences


def walks(t: int = 10, draws: int = 200) -> dict[str, str]:
    """Calls of g when sampling the slow way: two letters, fair and loaded, texts in two orders."""
    texts = list(sequences("ab", t))
    fair = Counted(lambda prefix: {"a": 0.5, "b": 0.5})
    probability, rng, calls = autoregressive(fair, t), Random(0), []
    for _ in range(draws):
        before = fair.calls
        sample_by_walking(probability, texts, rng)
        calls.append(fair.calls - before)
    loaded = autoregressive(lambda prefix: {"a": 0.9, "b": 0.1}, t)
    in_order = sum(place * loaded(x) for place, x in enumerate(texts, 1))
    backwards = sum(place * loaded(x) for place, x in enumerate(reversed(texts), 1))
    return {
        "fair_draws": f"{draws}",
        "fair_dumb": f"{fmean(calls):,.0f} ± {stdev(calls) / math.sqrt(draws):,.0f}",
        "fair_expected": f"{t * (2**t + 1) / 2:,.0f}",
        "loaded_order": f"{t * in_order:,.0f}",
        "loaded_backwards": f"{t * backwards:,.0f}",
    }


@torch.no_grad()
def prefixes_of_attention() -> dict[str, str]:
    """Cost of non-causal attention on every prefix over causal attention, in one and two layers."""
    torch.manual_seed(0)
    x = torch.randn(1, 8, 16)
    layers = [(BidirectionalAttention(16, 2), SoftmaxAttention(16, 2)) for _ in range(2)]
    for without_mask, causal in layers:
        causal.load_state_dict(without_mask.state_dict())
    first, first_causal = layers[0]
    one_layer = all_prefixes(take_last(first))(x) - first_causal(x)
    both, both_causal = (nn.Sequential(*each) for each in zip(*layers, strict=True))
    expected = both_causal(x)
    two_layers = all_prefixes(take_last(both))(x) - expected
    return {
        "one_layer": f"{one_layer.abs().max().item():.0e}",
        "two_layers": f"{two_layers.abs().max().item() / expected.abs().max().item():.0%}",
    }


@torch.no_grad()
def rebuilt_cache(ticks: int = 50) -> dict[str, str]:
    """State of a KV cache, and of the machine that P∘L∘U makes of it."""
    cache = SoftmaxAttention(64, 1).machine()
    texts = {}
    for name, machine in (("cache", cache), ("around", tape(take_last(unroll(cache))))):
        state = machine.initial_state
        for _ in range(ticks):
            state, _ = machine.step(state, torch.ones(1, 64))
        texts[f"state_{name}"] = f"{state_bytes(state) / 1e3:.1f} kB"
    return texts


def gpt_cache() -> dict[str, str]:
    """Numbers per token in the caches of GPT-2 124M: a key and a value in each layer."""
    config = gpt_config("124M")
    return {"gpt_cache_numbers": f"{2 * config.n_layer * config.d_model:,}"}


def equal_keys(length: int = 100) -> dict[str, str]:
    """Equal keys and values: the normalised output stays the value, and the plain sum grows."""
    torch.manual_seed(0)
    q, k = elu_plus_one(torch.randn(length, 4)), elu_plus_one(torch.randn(4))
    v = torch.randn(3)

    def attended(q: torch.Tensor, **options: Any) -> torch.Tensor:
        heads = (x[None, :, None] for x in (q, k.expand(length, 4), v.expand(length, 3)))
        return linear_attention(*heads, **options)[0, :, 0]

    plain = attended(q[:1].expand(length, 4), normalize=False)
    return {
        "same_spread": f"{(attended(q) - v).abs().max().item():.0e}",
        "same_growth": f"{(plain[-1] / plain[0]).mean().item():.0f}",
    }


def forgetting(tokens: int = 100, decay: float = 0.97) -> dict[str, str]:
    """One value among many: how much of it remains with decay, and its share in a plain sum."""
    under_one_key = [decay**age for age in range(tokens + 1)]
    return {
        "forgetting_left": f"{decay**tokens:.1%}",
        "forgetting_share": f"{1 / (tokens + 1):.1%}",
        "forgetting_decayed": f"{1 / sum(under_one_key):.1%}",
    }


def held_state(half_life: int = 70, tokens: int = 10_000) -> dict[str, str]:
    """Share of a state that remains after noise: with one rate for all tokens, and with a gate.

    As logarithms, since the share with a fixed rate underflows a float.
    """
    power = -tokens / half_life * math.log10(2)
    return {
        "held_fixed": f"10 to the power of {power:.0f}",
        "held_selective": f"{0.5 ** (tokens / half_life / 1000):.0%}",
    }

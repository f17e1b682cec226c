"""Measurements of a trained model: loss by position, continuations of a text, attention.

Attention is stored as weights (`attention_weights`), and as the effective number of tokens
(`attended`).
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from lsa.gpt import GPT
from lsa.sampling import sample

from ..core.tables import Tables, append
from .batches import VALIDATION_SPANS, held_out_tokens
from .corpora import Corpus
from .precision import autocast

WINDOW = 16384  # tokens of each held-out novel in the mean loss
PROMPT = "It was a bright cold evening in November, and the old gentleman "
LOOKED_AT = 32  # tokens of the prompt whose weights are stored


@torch.no_grad()
def loss_by_position(
    model: GPT, corpus: Corpus, *, context: int, device: torch.device, window: int = WINDOW
) -> Tables:
    """Mean loss of held-out text by the number of tokens before a token.

    Every model reads the same `VALIDATION_SPANS` spans of `window` tokens twice: in windows of its
    own context ("own"), and each as one text ("whole"). The latter is longer than any training
    text, unless the context was the window. A row is for the positions first .. last, counted from
    1, where both bounds double.
    """
    tables: Tables = {}
    windows = {"own": context}
    if model.config.n_positions is None:
        windows["whole"] = window
    for reading, length in windows.items():
        inputs, targets = held_out_tokens(
            corpus.splits["validation"], span=window, context=length, spans=VALIDATION_SPANS
        )
        losses = []
        for tokens, wanted in zip(
            inputs.chunk(VALIDATION_SPANS), targets.chunk(VALIDATION_SPANS), strict=True
        ):
            with autocast(device):
                logits = model(tokens.to(device)).float()
            loss = F.cross_entropy(
                logits.flatten(0, 1), wanted.to(device).flatten().long(), reduction="none"
            )
            losses.append(loss.view(wanted.shape).cpu())
        by_position = torch.cat(losses).double()
        first = 1
        while first <= length:
            last = min(2 * first - 1, length)
            part = by_position[:, first - 1 : last]
            row = {
                "reading": reading,
                "first": first,
                "last": last,
                "tokens": part.numel(),
                "loss": round(part.mean().item(), 5),
            }
            append(tables, "positions", row)
            first = last + 1
    return tables


def continuations(model: GPT, device: torch.device, length: int) -> dict[str, str]:
    """`length` bytes that a byte model writes after PROMPT: most likely, and drawn with seed 0."""
    prompt = torch.frombuffer(bytearray(PROMPT.encode()), dtype=torch.uint8)[None].to(device)
    written = {}
    for kind, temperature in (("greedy", 0.0), ("sampled", 0.8)):
        tokens = sample(model.machine(), prompt, max_tokens=length, temperature=temperature, seed=0)
        written[kind] = bytes(int(token) for token in tokens).decode("utf-8", errors="replace")
    return written


@torch.no_grad()
def attention_weights(model: GPT, device: torch.device) -> list[dict[str, Any]]:
    """Attention weights of each head of a byte model: a row for each head and token of the prompt.

    `weights`: the weights of the tokens up to this one, in whole thousandths separated by spaces.
    """
    tokens = torch.frombuffer(bytearray(PROMPT.encode()), dtype=torch.uint8)
    x = model.embed(tokens[None, :LOOKED_AT].long().to(device))
    rows = []
    for layer, block in enumerate(model.blocks):
        weights = getattr(block.attn, "weights", None)
        if weights is None:
            return []
        for head, A in enumerate(weights(block.ln_1(x))[0].float().cpu()):
            for i, line in enumerate(A.tolist()):
                shares = " ".join(str(round(1000 * share)) for share in line[: i + 1])
                rows.append({"layer": layer, "head": head, "token": i, "weights": shares})
        x = block(x)
    return rows


@torch.no_grad()
def attended(
    model: GPT, corpus: Corpus, *, context: int, device: torch.device
) -> list[dict[str, Any]]:
    """Effective number of tokens in each head's attention, and its distance from uniform attention.

    A row for each layer and head, over the queries in the second half of one window of `context`
    tokens from each held-out novel.

    `effective`: exponential of the entropy of a query's weights, which is n for n equal weights;
        the geometric mean over queries.
    `alike`: the same for equal scores; less than the number of tokens if the head has a decay.
    `moved`: the share of a query's weights that is elsewhere than for equal scores; the mean.

    Empty for a layer without weights, or one whose weights may be negative.
    """
    inputs, _ = held_out_tokens(
        corpus.splits["validation"], span=context, context=context, spans=VALIDATION_SPANS
    )
    sums: dict[tuple[int, int], list[float]] = {}
    for tokens in inputs.split(1):
        x = model.embed(tokens.to(device))
        for layer, block in enumerate(model.blocks):
            attn: Any = block.attn
            if not (hasattr(attn, "weights") and hasattr(attn, "faded")):
                return []
            A = attn.weights(block.ln_1(x))[0, :, context // 2 :].float()
            if (A < 0).any():
                return []
            flat = attn.faded(torch.ones(1, attn.n_heads, context, context, device=device))[0]
            flat = (flat / flat.sum(-1, keepdim=True))[:, context // 2 :]
            told = (_log_effective(A), _log_effective(flat), (A - flat).abs().sum(-1).mean(-1) / 2)
            for head, values in enumerate(zip(*(one.tolist() for one in told), strict=True)):
                before = sums.setdefault((layer, head), [0.0, 0.0, 0.0])
                sums[layer, head] = [a + b for a, b in zip(before, values, strict=True)]
            x = block(x)
    rows = []
    for (layer, head), (effective, alike, moved) in sums.items():
        n = len(inputs)
        rows.append({
            "layer": layer,
            "head": head,
            "effective": round(math.exp(effective / n), 3),
            "alike": round(math.exp(alike / n), 3),
            "moved": round(moved / n, 5),
        })  # fmt: skip
    return rows


def _log_effective(A: torch.Tensor) -> torch.Tensor:
    """Mean entropy over queries, in nats, of weights [H, Q, T]: [H]."""
    return torch.special.entr(A).sum(-1).mean(-1)

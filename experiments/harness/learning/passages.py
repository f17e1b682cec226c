"""Losses on held-out novels: by position, and on a passage that occurred before in the text."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from lsa.gpt import GPT

from ..core.tables import table
from .batches import VALIDATION_SPANS, held_out_tokens
from .corpora import Corpus
from .precision import autocast

# Of `passage_gains`, at intervals of a training.
AGAIN = table(
    update=("updates", "after how many updates"),
    distance=("tokens", "from a passage to its second coming"),
    place=("number", "which passage, from 0; novels take turns"),
    loss=("nats/token", "of the passage when it comes again, without its first bytes"),
    gain=("nats/token", "the same with another passage before it, minus this loss"),
)
# Of `loss_by_novel`.
BY_NOVEL: dict[str, Any] = {
    "novel": ("number", "which of the held-out novels, from 0"),
    "first": ("tokens", "the first position in a window, counted from 1"),
    "last": ("tokens", "the last position"),
    "loss": ("nats/token", "mean loss at these positions"),
}


@torch.no_grad()
def losses(model: GPT, tokens: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Loss in nats of every token but the first of texts [n, T + 1]: float64 [n, T]."""
    found = []
    # Some layers form T x T weights: at most 300 MB a head at 4,224 tokens.
    for part in tokens.split(max(1, 2**14 // tokens.shape[1])):
        part = part.to(device)
        with autocast(device):
            logits = model(part[:, :-1]).float()
        each = F.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten(), reduction="none")
        found.append(each.view(part.shape[0], -1).cpu().double())
    return torch.cat(found)


def passage_gains(
    model: GPT, corpus: Corpus, config: dict[str, Any], device: torch.device
) -> list[dict[str, Any]]:
    """Loss of a repeated passage, and its gain over another passage in the first place.

    A passage opens the text, its continuation in the novel follows, and the passage comes again. In
    the control, a passage from elsewhere in the same novel opens the text; the rest is the same.
    """
    passage, lead, rows = config["passage"], config["lead"], []
    pieces, _ = held_out_tokens(
        corpus.splits["validation"], span=config["context"], context=config["context"],
        spans=config["places"],
    )  # fmt: skip
    others = pieces.roll(VALIDATION_SPANS, 0)
    for distance in config["distances"]:
        rest = torch.cat((pieces[:, passage:distance], pieces[:, :passage]), 1)
        again, new = (
            losses(model, torch.cat((first[:, :passage], rest), 1), device)[:, lead - passage :]
            for first in (pieces, others)
        )
        for place, (one, other) in enumerate(zip(again.mean(1), new.mean(1), strict=True)):
            gain = (other - one).item()
            rows.append({
                "distance": distance, "place": place,
                "loss": round(one.item(), 5), "gain": round(gain, 5),
            })  # fmt: skip
    return rows


def loss_by_novel(
    model: GPT, corpus: Corpus, config: dict[str, Any], device: torch.device
) -> list[dict[str, Any]]:
    """Mean loss of each held-out novel at positions 1, 2 to 3, 4 to 7, … of a window."""
    context = config["context"]
    inputs, targets = held_out_tokens(
        corpus.splits["validation"], span=config["validation_span"], context=context,
        spans=VALIDATION_SPANS,
    )  # fmt: skip
    found = losses(model, torch.cat((inputs, targets[:, -1:]), 1), device)
    rows = []
    for novel, own in enumerate(found.chunk(VALIDATION_SPANS)):
        first = 1
        while first <= context:
            last = min(2 * first - 1, context)
            mean = own[:, first - 1 : last].mean().item()
            rows.append({"novel": novel, "first": first, "last": last, "loss": round(mean, 5)})
            first = last + 1
    return rows

"""Which tokens an update sees: spans drawn by seed and step alone, so that runs can be compared.

Spans are drawn on their own, and may be cut into pieces of the context's length. Two runs with
the same seed and the same spans read the same text in the same order, whatever their attention.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .corpora import Split

VALIDATION_SPANS = 5  # one from each held-out novel


def update_tokens(
    split: Split, *, seed: int, update: int, spans: int, span: int, context: int
) -> tuple[Tensor, Tensor]:
    """Inputs and targets [spans * span / context, context] of one update.

    A span of `span` tokens lies inside one document; documents are drawn by their length.
    """
    rng = np.random.default_rng((seed, update))
    lengths = np.diff(split.starts) - span
    if lengths.max(initial=0) <= 0:
        raise ValueError(f"span: no document is longer than {span} tokens")
    room = np.cumsum(np.maximum(lengths, 0))
    pieces = []
    for _ in range(spans):
        place = rng.integers(room[-1])
        document = int(np.searchsorted(room, place, side="right"))
        start = split.starts[document + 1] - span - (room[document] - place)
        pieces.append(split.tokens[start : start + span + 1])
    return _cut(pieces, span, context)


def held_out_tokens(split: Split, *, span: int, context: int, spans: int) -> tuple[Tensor, Tensor]:
    """A fixed set of `spans` spans, evenly spread over the documents, cut like an update's."""
    documents = [
        (start, end)
        for start, end in zip(split.starts[:-1], split.starts[1:], strict=True)
        if end - start > span
    ]
    if not documents:
        raise ValueError(f"span: no document is longer than {span} tokens")
    pieces = []
    for i in range(spans):
        start, end = documents[i % len(documents)]
        # Evenly spaced beginnings, away from title pages and the last leaf.
        share = (i // len(documents) + 0.5) / -(-spans // len(documents))
        at = start + int(share * (end - start - span - 1))
        pieces.append(split.tokens[at : at + span + 1])
    return _cut(pieces, span, context)


def _cut(pieces: list[np.ndarray], span: int, context: int) -> tuple[Tensor, Tensor]:
    if span % context:
        raise ValueError(f"context: expected a divisor of the span {span}, got {context}")
    tokens = torch.from_numpy(np.stack(pieces).astype(np.int64))
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    return inputs.reshape(-1, context), targets.reshape(-1, context)

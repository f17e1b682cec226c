"""The tokens of an update, drawn by seed and step alone, so that runs can be compared.

Spans may be cut into pieces of the context's length. Two runs with the same seed and the same spans
read the same text in the same order, with any attention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .prepared import Split

VALIDATION_SPANS = 5  # one from each held-out novel


def update_tokens(
    split: Split, *, seed: int, update: int, spans: int, span: int, context: int,
    returns: dict[str, Any] | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Inputs and targets [spans * span / context, context] of one update.

    A span of `span` tokens is inside one document; documents are drawn in proportion to their
    length.
    returns: arguments of `plant`, or with `often` of `recurring`, and the `share` of spans in which
    a passage comes again.
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
    if returns is not None:
        asked = {key: returns[key] for key in ("passage", "nearest", "farthest")}
        again = recurring if returns.get("often") else plant
        pieces = [
            again(piece, rng, **asked) if rng.random() < returns["share"] else piece
            for piece in pieces
        ]
    return _cut(pieces, span, context)


def plant(
    piece: np.ndarray, rng: np.random.Generator, *, passage: int, nearest: int, farthest: int
) -> np.ndarray:
    """A text in which `passage` tokens come again, replacing the text at the second place.

    Their distance is drawn from nearest to farthest, uniformly in its logarithm. Raises ValueError
    if the text is too short, or the passages would overlap.
    """
    if not passage <= nearest <= farthest:
        raise ValueError(f"nearest: expected from {passage} to {farthest}, got {nearest}")
    if len(piece) < farthest + passage:
        most = len(piece) - passage
        raise ValueError(f"farthest: expected at most {most}, got {farthest}")
    distance = int(nearest * (farthest / nearest) ** rng.random())
    start = int(rng.integers(len(piece) - distance - passage + 1))
    planted = piece.copy()
    planted[start + distance : start + distance + passage] = piece[start : start + passage]
    return planted


def recurring(
    piece: np.ndarray, rng: np.random.Generator, *, passage: int, nearest: int, farthest: int
) -> np.ndarray:
    """A text whose first `passage` tokens come again and again, replacing the text there.

    The first copy starts among these tokens. Distances are drawn as by `plant`.
    """
    if not passage <= nearest <= farthest:
        raise ValueError(f"nearest: expected from {passage} to {farthest}, got {nearest}")
    planted, start = piece.copy(), int(rng.integers(passage))
    while start + passage <= len(piece):
        planted[start : start + passage] = piece[:passage]
        start += int(nearest * (farthest / nearest) ** rng.random())
    return planted


def shuffled_windows(split: Split, *, context: int, seed: int) -> np.ndarray:
    """Starts of all windows of `context` tokens, adjacent in every document, in random order.

    The rest of a document, shorter than a window and the token after it, is left out.
    """
    starts = [
        np.arange(start, end - context, context)
        for start, end in zip(split.starts[:-1], split.starts[1:], strict=True)
    ]
    return np.random.default_rng(seed).permutation(np.concatenate(starts))


def text_of_updates(split: Split, config: dict[str, Any]) -> Callable[[int], tuple[Tensor, Tensor]]:
    """A function from an update's number to its inputs and targets.

    config: of a run. With `reading` "once" every window of the split is read once, in an order
    drawn by the seed; otherwise each update draws its spans. Raises ValueError if a run that reads
    once has more updates than there is text.
    """
    seed, spans, context = config["seed"], config["spans"], config["context"]
    if config.get("reading") != "once":
        drawn = {"seed": seed, "spans": spans, "span": config["span"], "context": context}
        drawn |= {"returns": config["returns"]} if config.get("returns") else {}
        return lambda update: update_tokens(split, update=update, **drawn)
    starts = shuffled_windows(split, context=context, seed=seed)
    if config["updates"] * spans > len(starts):
        raise ValueError(
            f"updates: expected at most {len(starts) // spans}, after which every window is read, "
            f"got {config['updates']}"
        )

    def windows(update: int) -> tuple[Tensor, Tensor]:
        those = starts[update * spans : (update + 1) * spans]
        return _cut(
            [split.tokens[start : start + context + 1] for start in those], context, context
        )

    return windows


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
        # Evenly spaced starts, away from title pages and last pages.
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

"""Made-up texts whose answers are known: recall, overwriting, copying, induction heads.

A batch is inputs [B, T] and targets [B, T], both whole numbers. Targets are IGNORED where nothing
is asked. A batch depends on the seed and the update's number alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

IGNORED = -100  # torch's cross-entropy ignores such targets

Batch = tuple[Tensor, Tensor]


def recall(rng: np.random.Generator, batch: int, length: int, *, pairs: int, vocab: int) -> Batch:
    """Multi-query associative recall (Arora et al., 2024, section 3 and appendix E).

    `pairs` keys and values stand at the start, each key once. Later each key comes again, once,
    among noise, and its value is asked for. Keys are drawn from the lower half of the vocabulary
    without token 0, which is the noise; values from the upper half. A question at place g of the
    rest has probability proportional to g^-0.99, as in the paper, so most come soon.
    """
    keys = _keys(rng, batch, pairs, vocab)
    values = rng.integers(vocab // 2, vocab, (batch, pairs))
    inputs = np.zeros((batch, length), dtype=np.int64)
    inputs[:, 0 : 2 * pairs : 2], inputs[:, 1 : 2 * pairs : 2] = keys, values
    return _questions(rng, inputs, 2 * pairs, keys, values)


def overwriting(
    rng: np.random.Generator, batch: int, length: int, *, pairs: int, writes: int, vocab: int
) -> Batch:
    """Recall of keys that are written several times: the newest value is asked for.

    Each of `pairs` keys is written `writes` times, in any order, each time with another value than
    before. The rest is as in `recall`, which this is for writes = 1.
    """
    keys = _keys(rng, batch, pairs, vocab)
    half, total = vocab // 2, pairs * writes
    values = rng.integers(1, vocab - half, (batch, pairs, writes))  # from value to value
    values[..., 0] = rng.integers(0, vocab - half, (batch, pairs))
    values = half + values.cumsum(-1) % (vocab - half)
    order = rng.permuted(np.tile(np.arange(total) // writes, (batch, 1)), axis=1)
    # The places of each key, first to last: a stable sort by key.
    places = 2 * np.argsort(order, axis=1, kind="stable").reshape(batch, pairs, writes)
    rows = np.arange(batch)[:, None, None]
    inputs = np.zeros((batch, length), dtype=np.int64)
    inputs[rows, places], inputs[rows, places + 1] = keys[..., None], values
    return _questions(rng, inputs, 2 * total, keys, values[..., -1])


def _keys(rng: np.random.Generator, batch: int, pairs: int, vocab: int) -> np.ndarray:
    """Different keys [batch, pairs], of the lower half of the vocabulary."""
    keys = np.arange(1, vocab // 2)
    return rng.permuted(np.tile(keys, (batch, 1)), axis=1)[:, :pairs]


def _questions(
    rng: np.random.Generator, inputs: np.ndarray, start: int, keys: np.ndarray, values: np.ndarray
) -> Batch:
    """Ask for each key once, from `start` on, at places that are mostly near."""
    batch, length = inputs.shape
    targets = np.full((batch, length), IGNORED, dtype=np.int64)
    # Places for the questions: every other token of the rest, so that each can be followed by its
    # answer.
    places = (length - start) // 2
    weights = np.arange(1, places + 1) ** -0.99
    scores = np.log(rng.random((batch, places))) / weights
    chosen = start + 2 * np.argsort(-scores, axis=1)[:, : keys.shape[1]]
    rows = np.arange(batch)[:, None]
    inputs[rows, chosen] = keys
    targets[rows, chosen] = values
    return torch.from_numpy(inputs), torch.from_numpy(targets)


def distant_recall(
    rng: np.random.Generator, batch: int, length: int, *, pairs: int, vocab: int, others: int = 0
) -> Batch:
    """`pairs` keys and values, then something else, then all keys again, each asking for its value.

    Between them is noise, from an alphabet of its own. With others = 1 there are pairs of other
    keys instead, drawn repeatedly; only their keys distinguish them. The right value follows each
    question. The lower half of the vocabulary is noise, the third quarter keys, the last values.
    """
    quarter = vocab // 4
    keys = 2 * quarter + rng.permuted(np.tile(np.arange(quarter), (batch, 1)), axis=1)
    values = rng.integers(3 * quarter, 4 * quarter, (batch, pairs))
    inputs = rng.integers(0, 2 * quarter, (batch, length))
    targets = np.full((batch, length), IGNORED, dtype=np.int64)
    planted, asked = 2 * pairs, length - 2 * pairs
    inputs[:, 0:planted:2], inputs[:, 1:planted:2] = keys[:, :pairs], values
    if others:
        n = (asked - planted) // 2
        end = planted + 2 * n
        drawn = rng.integers(pairs, quarter, (batch, n))
        inputs[:, planted:end:2] = np.take_along_axis(keys, drawn, axis=1)
        inputs[:, planted + 1 : end : 2] = rng.integers(3 * quarter, 4 * quarter, (batch, n))
    order = rng.permuted(np.tile(np.arange(pairs), (batch, 1)), axis=1)
    answers = np.take_along_axis(values, order, axis=1)
    inputs[:, asked::2] = np.take_along_axis(keys, order, axis=1)
    inputs[:, asked + 1 :: 2] = targets[:, asked::2] = answers
    return torch.from_numpy(inputs), torch.from_numpy(targets)


def copying(rng: np.random.Generator, batch: int, length: int, *, tokens: int, vocab: int) -> Batch:
    """Copying (Arjovsky et al., 2016): `tokens` symbols, a wait, then all of them in order.

    Their places are always the same, so a fixed delay solves it. Token 0 is the wait, token 1 asks
    for the next symbol.
    """
    symbols = rng.integers(2, vocab, (batch, tokens))
    inputs = np.zeros((batch, length), dtype=np.int64)
    inputs[:, :tokens] = symbols
    return _asked(inputs, symbols)


def selective_copying(
    rng: np.random.Generator, batch: int, length: int, *, tokens: int, vocab: int
) -> Batch:
    """Selective copying (Jing et al., 2019; Gu and Dao, 2023): the symbols are at random places.

    Only the tokens themselves show whether they count, so no fixed delay solves it.
    """
    symbols = rng.integers(2, vocab, (batch, tokens))
    inputs = np.zeros((batch, length), dtype=np.int64)
    open_ = length - tokens
    where = np.sort(rng.permuted(np.tile(np.arange(open_), (batch, 1)), axis=1)[:, :tokens], axis=1)
    inputs[np.arange(batch)[:, None], where] = symbols
    return _asked(inputs, symbols)


def induction(
    rng: np.random.Generator, batch: int, length: int, *, vocab: int, questions: int = 1
) -> Batch:
    """Induction heads (Olsson et al., 2022; Gu and Dao, 2023): what followed the special token?

    Token 0 stands once inside the text and once at its end, where the token after the first one is
    asked for. With more `questions` it also stands in between, always before the same token, and
    each time after the first asks for that token.
    """
    inputs = rng.integers(1, vocab, (batch, length))
    targets = np.full((batch, length), IGNORED, dtype=np.int64)
    # Places at least two apart, each with room for its successor: drawn from fewer places, then
    # spread.
    free = np.tile(np.arange(length - 1 - questions), (batch, 1))
    places = np.sort(rng.permuted(free, axis=1)[:, :questions], axis=1) + np.arange(questions)
    rows = np.arange(batch)[:, None]
    answers = inputs[rows, places[:, :1] + 1]
    inputs[rows, places], inputs[rows, places + 1] = 0, answers
    inputs[:, -1] = 0
    targets[rows, places[:, 1:]] = answers
    targets[:, -1:] = answers
    return torch.from_numpy(inputs), torch.from_numpy(targets)


def _asked(inputs: np.ndarray, symbols: np.ndarray) -> Batch:
    """Ask for the symbols in order at the last places."""
    tokens = symbols.shape[1]
    targets = np.full(inputs.shape, IGNORED, dtype=np.int64)
    inputs[:, -tokens:] = 1
    targets[:, -tokens:] = symbols
    return torch.from_numpy(inputs), torch.from_numpy(targets)


TASKS: dict[str, Callable[..., Batch]] = {
    "recall": recall,
    "recall in windows": recall,
    "overwriting": overwriting,
    "distant recall": distant_recall,
    "copying": copying,
    "selective copying": selective_copying,
    "induction": induction,
}


def draw(task: str, *, seed: int, update: int, batch: int, length: int, **options: int) -> Batch:
    """The batch of one update; update -1 is the held-out one."""
    rng = np.random.default_rng((seed, update + 1))
    return TASKS[task](rng, batch, length, **options)

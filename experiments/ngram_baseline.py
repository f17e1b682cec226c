"""Losses of n-gram models, which count letters: the baselines of every loss curve.

An n-gram model predicts a byte from the n - 1 before it, by how often it followed them in the
training text. If they were rare, shorter histories count too (Witten and Bell, 1991):

    p_n(c | h) = (count(hc) + kinds(h) p_{n-1}(c | h')) / (count(h) + kinds(h))

with kinds(h) the number of different bytes seen after h, h' the history without its first byte, and
p_0 uniform. The models are scored on the same held-out spans as the networks. A network that has
not passed n = 2 has learned nothing from its context but the last letter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import INCREASING, Tables, append, table
from .harness.learning.batches import VALIDATION_SPANS, held_out_tokens
from .harness.learning.corpora import VOCAB
from .priorities import LATE

TABLES = {
    "rows": table(
        order=("tokens", "n: a byte is predicted from the n - 1 before it", INCREASING),
        loss=("nats/token", "mean over the five held-out spans"),
        kinds=("tokens", "different n-grams in the training text"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run: all orders up to five."""
    longest, span = (2, 256) if smoke else (5, 16384)
    config = {"corpus": "novels", "longest": longest, "span": span, "seed": 0}
    return [Run("ngram_baseline", f"orders-1-to-{longest}", config, 1 if kind == "cpu" else LATE)]


class Counts:
    """Counts of the bytes that followed each history of n - 1 bytes."""

    def __init__(self, text: np.ndarray, order: int) -> None:
        keys = self.keys(text, order)
        self.grams, self.counts = np.unique(keys, return_counts=True)
        histories, first = np.unique(self.grams >> np.uint64(8), return_index=True)
        self.histories = histories
        self.kinds = np.diff(np.append(first, len(self.grams)))
        self.totals = np.add.reduceat(self.counts, first)

    @staticmethod
    def keys(text: np.ndarray, order: int) -> np.ndarray:
        """Every `order` bytes in a row as a number, oldest byte highest. [T] to [T - order + 1]."""
        keys = np.zeros(len(text) - order + 1, np.uint64)
        for i in range(order):
            keys = (keys << np.uint64(8)) | text[i : len(text) - order + 1 + i].astype(np.uint64)
        return keys

    def refine(self, keys: np.ndarray, shorter: np.ndarray) -> np.ndarray:
        """p_n of each key, given p_{n-1} of its last bytes."""
        count = _look_up(self.grams, self.counts, keys)
        total = _look_up(self.histories, self.totals, keys >> np.uint64(8))
        kinds = _look_up(self.histories, self.kinds, keys >> np.uint64(8))
        # A history that was never seen leaves the shorter one's estimate unchanged.
        seen = total + kinds > 0
        return np.where(seen, (count + kinds * shorter) / np.maximum(total + kinds, 1), shorter)


def _look_up(table: np.ndarray, values: np.ndarray, keys: np.ndarray) -> np.ndarray:
    at = np.minimum(np.searchsorted(table, keys), len(table) - 1)
    return np.where(table[at] == keys, values[at], 0)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    corpus = session.corpus(config["corpus"])
    train = corpus.splits["train"]
    inputs, targets = held_out_tokens(
        corpus.splits["validation"],
        span=config["span"],
        context=config["span"],
        spans=VALIDATION_SPANS,
    )
    # A byte and all before it in its span; the first has no history, as for a network.
    held_out = np.concatenate([inputs[:, :1], targets], axis=1).astype(np.uint8)
    p = [np.full(len(span) - 1, 1 / VOCAB) for span in held_out]
    tables: Tables = {}
    orders = range(1, config["longest"] + 1)
    for order in session.through(orders, tables, "order {}".format):
        counts = Counts(np.asarray(train.tokens), order)
        for span, sofar in zip(held_out, p, strict=True):
            keys = Counts.keys(span, order)[-(len(span) - 1) :]
            # The first bytes of a span have shorter histories: their estimates do not change.
            sofar[-len(keys) :] = counts.refine(keys, sofar[-len(keys) :])
        loss = -float(np.mean(np.log(np.concatenate(p))))
        row = {"order": order, "loss": round(loss, 5), "kinds": len(counts.grams)}
        append(tables, "rows", row)
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment("ngram_baseline", "what counting letters achieves", TABLES, runs, perform)

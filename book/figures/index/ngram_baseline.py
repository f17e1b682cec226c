"""Losses of n-gram models, which count letters: the baselines of every loss."""

from __future__ import annotations

from ..lib.records import NotMeasuredError, have


def losses() -> dict[int, float]:
    """Held-out loss in nats a byte, by the order of the n-gram model.

    Raises NotMeasuredError if nothing is stored.
    """
    for run in have("ngram_baseline"):
        table = run["tables"]["rows"]
        return dict(zip(table["order"], table["loss"], strict=True))
    raise NotMeasuredError("ngram_baseline: nothing stored")


def loss(order: int) -> float:
    """Loss of one n-gram model. Raises NotMeasuredError."""
    by_order = losses()
    if order not in by_order:
        raise NotMeasuredError(f"ngram_baseline: no order {order}")
    return by_order[order]

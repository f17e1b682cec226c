"""Losses of n-gram models, which count letters: the baselines of every loss."""

from __future__ import annotations

from ..lib.records import have, need


def losses() -> dict[int, float]:
    """Held-out loss in nats a byte, by the order of the n-gram model.

    Raises NotMeasuredError if nothing is stored.
    """
    table = need(have("ngram_baseline"), "ngram_baseline: nothing stored")[0]["tables"]["rows"]
    return dict(zip(table["order"], table["loss"], strict=True))


def loss(order: int) -> float:
    """Loss of one n-gram model. Raises NotMeasuredError."""
    return need(losses().get(order), f"ngram_baseline: no order {order}")

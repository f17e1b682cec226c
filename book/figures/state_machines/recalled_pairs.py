"""How many pairs a sum of outer products gives back: drawn of a chapter's own function."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ...explorable.figure import Axis, Explorable, Series

FEATURES = (8, 16, 32, 64)
PAIRS = [2**i for i in range(11)]
DRAWS = 4


def drawn(recalled: Callable[[int, int], float], id: str = "recall") -> Explorable:
    """Share of values recalled against pairs stored, by width of key.

    recalled: of K features and a number of pairs, the share that comes back, of keys drawn anew.
    """
    torch.manual_seed(0)

    def percents(K: int) -> list[float]:
        return [100 * sum(recalled(K, n) for _ in range(DRAWS)) / DRAWS for n in PAIRS]

    return Explorable(
        id=id,
        caption=(
            "**A state does not forget the oldest. It forgets a little of everything at once.** "
            "All values come back while pairs are few, and fewer and fewer as more are added. "
            "Twice the features hold about twice the pairs. A KV cache keeps all of them, and "
            "grows."
        ),
        alt=(
            "Share of values recalled against the number of pairs stored, for four widths of key. "
            "Each line stays at 100 percent and then falls; wider keys fall later."
        ),
        series=[
            Series({"features": f"K = {K}"}, {"pairs": PAIRS, "share": percents(K)})
            for K in FEATURES
        ],
        x=Axis("pairs", "Pairs stored", log=2),
        y=Axis("share", "Values recalled", "%", digits=3),
        color="features",
        mark="line+dot",
    )

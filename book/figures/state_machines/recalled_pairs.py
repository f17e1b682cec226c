"""Number of pairs that a sum of outer products returns, from the chapter's own function."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ...explorable.figure import Axis, Explorable, Series, Toggle

FEATURES = (8, 16, 32, 64)
SHOWN = (8, 64)
PAIRS = [2**i for i in range(9)]
DRAWS = 4
KEYS = ("signed", "elu + 1")


def figure_of(recalled: Callable[[int, int, str], float], id: str = "recall") -> Explorable:
    """Share of values recalled against pairs stored, by width and sign of keys.

    recalled: a function of the number of features K, the number of pairs and one of `KEYS`, which
    returns the share recalled with new keys.
    """
    torch.manual_seed(0)

    def percents(K: int, keys: str) -> list[float]:
        return [100 * sum(recalled(K, n, keys) for _ in range(DRAWS)) / DRAWS for n in PAIRS]

    return Explorable(
        id=id,
        caption=(
            "**Random signed keys return nine in ten values of 64 numbers at twice as many pairs "
            "as features. Keys under elu + 1 lose values after a few.** Share of stored pairs "
            "whose answer is nearest to its own value. A KV cache keeps all of them, and grows. "
            "Keys of length one, values of 64 random signs, means of "
            f"{DRAWS} draws."
        ),
        alt=(
            "Share of values recalled against the number of pairs stored. Lines of signed keys "
            "stay at 100 percent and fall the later the wider the keys are. Lines of keys under "
            "elu + 1 fall together after two to four pairs."
        ),
        series=[
            Series(
                {"features": f"K = {K}", "keys": keys}, {"pairs": PAIRS, "share": percents(K, keys)}
            )
            for K in FEATURES
            for keys in KEYS
        ],
        x=Axis("pairs", "Pairs stored", log=2),
        y=Axis("share", "Values recalled", "%", digits=3),
        color="features",
        dash="keys",
        mark="line+dot",
        controls=[
            Toggle(
                "features",
                "Features",
                options=[f"K = {K}" for K in FEATURES],
                default=[f"K = {K}" for K in SHOWN],
            ),
            Toggle("keys", "Keys", options=list(KEYS)),
        ],
    )


def of_computed(shares: dict[str, float]) -> dict[str, str]:
    """Numbers from computed shares of as many pairs as features, by the map of the keys."""
    return {
        "recall_signed": f"{shares['signed']:.0%}",
        "recall_positive": f"{shares['elu + 1']:.0%}",
        "recall_exp": f"{shares['exp(2x)']:.0%}",
    }

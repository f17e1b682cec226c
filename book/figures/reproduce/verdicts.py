"""Verdicts on a claim that may hold at one context and not at another."""

from __future__ import annotations

from ..lib.format import percent

SLIGHTLY = 0.05  # of the loss: more than that is not called slightly worse


def slightly_worse(behind: dict[int, float], losses: dict[int, float], spread: float) -> str | bool:
    """The verdict on "slightly worse per update".

    behind: nats by context; losses: softmax's after as many updates; spread: between two seeds.
    """
    worse = [n for n, by in behind.items() if by > spread]
    if not worse:
        return False
    everywhere = len(worse) == len(behind)
    worst = max(behind[n] / losses[n] for n in worse)
    if worst <= SLIGHTLY:
        verdict = everywhere or f"slightly worse{at(worse)}"
    else:
        much = f"and more than slightly: by up to {percent(worst)} of softmax's loss"
        verdict = f"worse{'' if everywhere else at(worse)}, {much}"
    better = [n for n, by in behind.items() if by < -spread]
    level = [n for n in behind if n not in (*worse, *better)]
    others = [
        f"{word}{at(where)}" for word, where in (("level", level), ("better", better)) if where
    ]
    return "; ".join([verdict, *others]) if isinstance(verdict, str) else verdict


def at(contexts: list[int]) -> str:
    """Where something is so, as the end of a sentence."""
    return f" at {' and '.join(f'{n:,}' for n in contexts)}"

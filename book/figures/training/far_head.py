"""What the race says of the head that sees everything, by the models that have a near one instead.

Both have as many heads and see the same text in the same order: pairs of runs of one seed differ
in that head alone.
"""

from __future__ import annotations

from statistics import mean

from ..index.race import CONTEXTS, MAIN, differences
from ..index.race_words import noise
from ..lib.format import WrittenFor, in_words
from ..lib.records import NotMeasuredError
from ..lib.seeds import how_many_seeds, seeds_in_words
from ..lib.tables import Missing, Table

ATTENTIONS = ("softmax", "linear")


def gains(attention: str, context: int) -> list[float]:
    """Nats by which a run with the far head ends lower, by seed. Raises NotMeasuredError."""
    return differences(f"{attention}, near only", attention, context)


def worth(attention: str, context: int) -> float:
    """The mean of `gains`. Raises NotMeasuredError."""
    return mean(gains(attention, context))


def _every() -> dict[tuple[int, str], list[float]]:
    """All `gains`, by context and attention. Raises NotMeasuredError where there is none."""
    found = {}
    for context in CONTEXTS:
        for attention in ATTENTIONS:
            try:
                found[context, attention] = gains(attention, context)
            except NotMeasuredError:
                continue
    if not found:
        raise NotMeasuredError("race: no control without the far head")
    return found


def table() -> Table | Missing:
    """By how much a far head lowers the loss: each context and attention, mean and range."""
    try:
        found = _every()
    except NotMeasuredError:
        return Missing("race")
    cells = [
        [f"{context:,}", *(_cell(found.get((context, name), [])) for name in ATTENTIONS)]
        for context in dict.fromkeys(context for context, _ in found)
    ]
    return Table(["context", *ATTENTIONS], cells, align="rrr", wrap=True)


def _cell(found: list[float]) -> str:
    if not found:
        return "–"
    told = f"{mean(found):+.3f}"
    if len(found) > 1:
        told += f" ({min(found):+.3f} to {max(found):+.3f})"
    else:
        told += " (one seed)"
    return told.replace("-", "−")


def verdict(context: int) -> str:
    """What the far head brings at one context, beyond what a seed does. Raises NotMeasuredError."""
    least = noise(context)
    by = {name: worth(name, context) for name in ATTENTIONS}
    largest = max(map(abs, by.values()))
    if largest <= least:
        seeds = seeds_in_words([len(gains(name, context)) for name in by])
        return (
            f"nothing that can be told from the noise: without it both end within {largest:.3f} "
            f"nats of where they end with it ({seeds}), and another seed can move a loss by "
            f"{least:.2f}"
        )
    said = [
        f"{abs(gain):.3f} nats {'lower' if gain > 0 else 'higher'} with {name} attention"
        + ("" if abs(gain) > least else " (within the noise)")
        for name, gain in by.items()
    ]
    return f"that with it the loss ends {said[0]} and {said[1]}"


def _pairs() -> list[float]:
    return [gain for found in _every().values() for gain in found]


def _lower() -> int:
    """How many pairs end lower without the far head."""
    return sum(gain < 0 for gain in _pairs())


def together() -> str:
    """How many of all pairs end lower without it, and by how much. Raises NotMeasuredError."""
    pairs, lower = _pairs(), _lower()
    by, which = mean(pairs), "all" if lower == len(pairs) else f"{lower} of the"
    return (
        f"In {which} {len(pairs)} pairs the run without the far head ends lower; the mean over "
        f"all pairs is {abs(by):.3f} nats {'lower' if by < 0 else 'higher'}"
    )


def beyond_the_noise() -> str:
    """Which of the differences are larger than what a seed does. Raises NotMeasuredError."""
    large = [
        f"{name} attention at {context:,} bytes ({abs(mean(found)):.3f}, "
        f"{how_many_seeds(len(found))})"
        for (context, name), found in _every().items()
        if abs(mean(found)) > noise(context)
    ]
    least = f"than what another seed does to a run, {noise(MAIN):.3f} nats"
    if not large:
        return f"None of these differences is larger {least}"
    of, is_ = ("that of", "is") if len(large) == 1 else ("those of", "are")
    return f"Of these differences only {of} {' and '.join(large)} {is_} larger {least}"


def numbers() -> dict[str, str]:
    """What the chapter on training says of it."""
    return in_words(
        verdict_far=lambda: verdict(MAIN), far_together=together, far_beyond=beyond_the_noise
    )


def claims() -> WrittenFor:
    """What the words say of it, beyond the numbers in them."""
    return WrittenFor(
        no_context_gains_from_it_beyond_the_noise=lambda: all(
            mean(found) <= noise(context) for (context, _), found in _every().items()
        ),
        nearly_all_pairs_point_one_way=lambda: _lower() >= 0.85 * len(_pairs()),
    )

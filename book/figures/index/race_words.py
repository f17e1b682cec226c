"""What the pages say of the race: numbers, and verdicts no stronger than the spread over seeds."""

from __future__ import annotations

from math import log
from statistics import mean

from lsa.gpt import GPT, gpt_config

from ..lib.format import WrittenFor, in_words, signed, times
from ..lib.records import NotMeasuredError
from ..lib.seeds import how_many_seeds, seeds_in_words
from ..linear_self_attention import variants
from . import ngram_baseline
from .race import (
    CONTEXTS,
    MAIN,
    by_model,
    curves,
    differences,
    end,
    ends,
    in_the_same_time,
    processor_name,
    ratio,
    seconds,
    spread,
)


def noise(context: int) -> float:
    """The difference of losses below which nothing is claimed at a context.

    The range over the seeds of one model; where a context has one seed, what another seed made of
    other nano models (`variants`).
    """
    try:
        return max(spread(context), variants.seed_spread())
    except NotMeasuredError:
        return variants.seed_spread()


def behind(context: int) -> float:
    """Nats by which linear attention ends behind softmax, after the same updates."""
    return mean(differences("linear", "softmax", context))


def _of_updates(context: int) -> str:
    by, least = behind(context), noise(context)
    count = len(differences("linear", "softmax", context))
    seeds = "" if count == 1 else f" in the mean of {how_many_seeds(count)}"
    if abs(by) <= least:
        return (
            f"the two cannot be told apart: {abs(by):.3f} nats are between their ends{seeds}, and "
            f"another seed can move a loss by {least:.2f}"
        )
    first = "softmax" if by > 0 else "linear attention"
    return (
        f"{first} is ahead, by {abs(by):.3f} nats{seeds}, where another seed can move a loss by "
        f"{least:.2f}"
    )


def _of_other_contexts() -> str:
    """The same of every other context at which an attention has run."""
    level, said = [], []
    for context in CONTEXTS:
        if context == MAIN:
            continue
        try:
            alone = " (one seed)" if len(differences("linear", "softmax", context)) == 1 else ""
            if abs(by := behind(context)) <= noise(context):
                level.append(f"{abs(by):.3f} nats apart at {context:,}{alone}")
            else:
                said.append(f"At {context:,} bytes{alone} {_of_updates(context)}.")
        except NotMeasuredError:
            said += _of_linear_alone(context)
    if level:
        said.insert(0, f"There the two cannot be told apart either: {', '.join(level)}.")
    if not said:
        raise NotMeasuredError(f"race: nothing but {MAIN}")
    return " ".join(said)


def _of_linear_alone(context: int) -> list[str]:
    """A sentence where linear attention has made its updates and softmax has not."""
    if "linear" not in (found := by_model(context)) or "softmax" in found:
        return []
    count = len(found["linear"])
    taken, needed = (
        updates(context) * seconds(name, context) / 60 for name in ("linear", "softmax")
    )
    return [
        f"At {context:,} bytes linear attention alone has made its {updates(context):,} updates so "
        f"far ({how_many_seeds(count)}): in {taken:.0f} minutes it comes "
        f"to {end('linear', context):.3f} nats, where letter triples stand at "
        f"{ngram_baseline.loss(3):.3f}. For softmax these updates take {needed:.0f} minutes."
    ]


def minutes(model: str, context: int) -> float:
    """Of all its updates, by the seconds of one. Raises NotMeasuredError."""
    found = by_model(context).get(model)
    if not found:
        raise NotMeasuredError(f"race: no {model} at {context}")
    return found[0]["config"]["updates"] * seconds(model, context) / 60


def _config(context: int) -> dict:
    found = curves(context)
    if not found:
        raise NotMeasuredError(f"race: nothing stored at {context}")
    return found[0]["config"]


def _slope() -> float:
    found = by_model(MAIN).get("linear")
    if not found:
        raise NotMeasuredError(f"race: no linear at {MAIN}")
    return found[0]["config"]["attention_options"]["log_decay"][0]


def _parameters() -> int:
    config = _config(MAIN)
    return GPT(gpt_config(config["scale"], vocab_size=256, n_positions=None)).n_parameters


def updates(context: int) -> int:
    """How many each model makes at a context. Raises NotMeasuredError."""
    return _config(context)["updates"]


def better_in_the_same_time(context: int) -> str | bool:
    """The verdict on it: linear's end against softmax's loss at that minute, beyond the noise."""
    _, softmax, linear = in_the_same_time(context)
    by = softmax - linear
    if by <= noise(context):
        return False
    return f"better: {by:.2f} nats lower when its updates are made"


def numbers() -> dict[str, str]:
    """What the pages say of the race."""
    makers = {
        "parameters": lambda: f"{_parameters() / 1e6:.2f} million",
        "half_life": lambda: f"{log(2) / -_slope():.1f}",
        "race_device": lambda: processor_name(MAIN),
        "noise": lambda: f"{noise(MAIN):.2f}",
        "pairs": lambda: f"{ngram_baseline.loss(2):.3f}",
        "triples": lambda: f"{ngram_baseline.loss(3):.3f}",
        "verdict_updates": lambda: _of_updates(MAIN),
        "verdict_elsewhere": _of_other_contexts,
        "behind_4096": lambda: signed(behind(MAIN)),
        "seeds_16384": lambda: seeds_in_words(
            [len(ends(name, 16384)) for name in ("softmax", "linear")]
        ),
        "none_4096": lambda: f"{end('no attention', MAIN):.3f}",
    }
    for n in CONTEXTS:
        makers[f"ratio_{n}"] = lambda n=n: times(ratio(n))
        makers[f"updates_{n}"] = lambda n=n: f"{updates(n):,}"
        for name in ("softmax", "linear"):
            makers[f"{name}_{n}"] = lambda n=n, name=name: f"{end(name, n):.3f}"
            makers[f"{name}_minutes_{n}"] = lambda n=n, name=name: f"{minutes(name, n):.0f}"
    return in_words(**makers)


def claims() -> WrittenFor:
    """What the words say of the race at 4,096 bytes, beyond the numbers in them."""
    return WrittenFor(
        the_two_cannot_be_told_apart_by_updates=lambda: abs(behind(MAIN)) < noise(MAIN),
        a_softmax_update_takes_about_twice_as_long=lambda: 1.5 < ratio(MAIN) < 3,
        it_takes_no_longer_at_256=lambda: ratio(256) < 1.1,
        the_two_end_level_at_16384=lambda: abs(behind(16384)) < noise(16384),
        the_ratio_grows_with_the_context=lambda: (
            [ratio(n) for n in CONTEXTS] == sorted(ratio(n) for n in CONTEXTS)
        ),
    )

"""Tables and numbers of the chapter on long contexts."""

from __future__ import annotations

import math

from ..index import race
from ..lib.format import NOT_MEASURED, in_words
from ..lib.pairs import Pairs, compare_seeds
from ..lib.records import NotMeasuredError, learned, rows
from ..lib.tables import Missing, Table
from .long_context import CONTEXTS, MAIN, MODELS, gain_at, runs_of, without_lone


def rise(name: str, context: int) -> Pairs:
    """Growth of a model's loss from the end of its trained length to the last bytes read.

    Less the growth on the same pages of the same attention trained at the longest context, by seed.
    Raises NotMeasuredError.
    """
    own, other = (_growth(name, trained_at, context) for trained_at in (context, CONTEXTS[-1]))
    return compare_seeds([{seed: own[seed] - other[seed] for seed in own.keys() & other.keys()}])


def _growth(name: str, trained_at: int, since: int) -> dict[int, float]:
    """By seed: the loss at the last bytes read minus that up to byte `since`."""
    growth = {}
    for run in race.by_model(trained_at).get(name, ()):
        read = rows(run, "positions", reading="whole")
        losses = without_lone({each["last"]: each["loss"] for each in read})
        if since - 1 in losses:
            growth[run["config"]["seed"]] = losses[max(losses)] - losses[since - 1]
    return growth


def _worth(attention: str, kind: str, at: int, context: int = MAIN) -> str:
    """A gain in thousandths of a nat, with half of its 95% interval."""
    point = gain_at(attention, context, kind, at)
    gain = _plain(1000 * point["gain"]).replace("-", "−")
    return f"{gain} ± {_plain(1000 * point['half'])}"


def _plain(value: float) -> str:
    """A number with two significant digits, without an exponent: 0.00046."""
    if not value:
        return "0"
    places = 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(0, places)}f}"


def table() -> Table | Missing:
    """Gain from a repeated passage, by its distance."""
    if not (runs := learned("long_context")):
        return Missing("long_context")
    distances = sorted({at for each in runs for at in each["config"]["distances"]})
    cells = [[f"{at:,}", *(_again_in_words(name, at) for name in MODELS)] for at in distances]
    return Table(["bytes back", *MODELS], cells, align="rrr")


def by_context() -> Table | Missing:
    """Gain from a long past for models trained at each context."""
    cells = []
    for context in CONTEXTS:
        texts = _far_at(context)
        if NOT_MEASURED not in texts.values():
            cells.append([f"{context:,}", *texts.values()])
    passages = (f"{what}, {n}" for what in ("more text", "passage") for n in MODELS)
    titles = ["trained at", "bytes read", *passages]
    return Table(titles, cells, align="r" * len(titles)) if cells else Missing("long_context")


def bytes_read(context: int) -> int:
    """Bytes that the training of a model read, for any attention."""
    for run in race.curves(context):
        return math.prod(run["config"][name] for name in ("updates", "spans", "span"))
    raise NotMeasuredError(f"race: nothing trained at {context}")


def _far_at(context: int) -> dict[str, str]:
    return in_words(
        read=lambda: f"{bytes_read(context):,}",
        **{
            f"{kind} {name}": lambda kind=kind, name=name, at=at: _worth(name, kind, at, context)
            for kind, at in (("given", 16384), ("again", 1024))
            for name in MODELS
        },
    )


def _again_in_words(attention: str, distance: int) -> str:
    return in_words(gain=lambda: _worth(attention, "again", distance))["gain"]


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""
    last = CONTEXTS[-1]
    return in_words(
        given_softmax_256=lambda: _worth("softmax", "given", 256),
        given_linear_256=lambda: _worth("linear", "given", 256),
        given_softmax_far=lambda: _worth("softmax", "given", 16384),
        given_linear_far=lambda: _worth("linear", "given", 16384),
        given_best=lambda: _worth(
            *max(
                ((name, "given", last, at) for name in MODELS for at in CONTEXTS),
                key=lambda of: gain_at(of[0], of[3], "given", last)["gain"],
            )
        ),
        given_least=lambda: f"{gain_at('linear', MAIN, 'given', 16)['loss']:.2f}",
        given_most=lambda: f"{gain_at('linear', MAIN, 'given', 16384)['loss']:.2f}",
        **{
            f"rise_{name}_{n}": lambda name=name, n=n: rise(name, n).signed()
            for name in MODELS
            for n in (CONTEXTS[0], MAIN)
        },
        longest=lambda: f"{max(runs_of('linear', MAIN)[0]['config']['given']):,}",
    )

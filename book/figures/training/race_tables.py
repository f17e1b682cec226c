"""Tables of the race: where each model ends, what an update takes, and who is where when."""

from __future__ import annotations

from contextlib import suppress

from ..index import ngram_baseline
from ..index.race import (
    CONTEXTS,
    MODELS,
    PAIR,
    by_model,
    differences,
    ends,
    in_the_same_time,
    minutes_to,
    seconds,
)
from ..lib.format import times
from ..lib.pairs import compare
from ..lib.records import NotMeasuredError
from ..lib.seeds import mean_and_spread
from ..lib.tables import Missing, Table

LEVELS = (1.8, 1.7)  # nats a byte, beside those of letter triples


def table() -> Table | Missing:
    """Where every model ends at every context: mean and spread over seeds."""
    contexts = [n for n in CONTEXTS if by_model(n)]
    if not contexts:
        return Missing("race")
    cells = []
    for model in MODELS:
        line = [model]
        for context in contexts:
            found = by_model(context).get(model)
            line.append(mean_and_spread(ends(model, context)) if found else "")
        cells.append(line)
    return Table(["model", *(f"{n:,}" for n in contexts)], cells)


def time_table() -> Table | Missing:
    """Seconds of an update by context, and how many times longer softmax's is."""
    cells = []
    for context in CONTEXTS:
        try:
            both = [seconds(name, context) for name in ("softmax", "linear")]
        except NotMeasuredError:
            continue
        cells.append([f"{context:,}", *(f"{s:.3g} s" for s in both), times(both[0] / both[1])])
    titles = ["context", "softmax", "linear", "ratio"]
    return Table(titles, cells, align="rrrr") if cells else Missing("race")


def level_table() -> Table | Missing:
    """Minutes until the mean loss is down to a level: softmax's and linear attention's."""
    levels = [f"{level:g}" for level in LEVELS]
    wanted = dict(zip(levels, LEVELS, strict=True))
    with suppress(NotMeasuredError):
        triples = ngram_baseline.loss(3)
        wanted[f"{triples:.3f}, letter triples"] = triples
    wanted = dict(sorted(wanted.items(), key=lambda item: -item[1]))
    cells = []
    for context in CONTEXTS:
        try:
            found = [[minutes_to(model, context, at) for model in PAIR] for at in wanted.values()]
        except NotMeasuredError:
            continue
        cells.append([f"{context:,}", *(" / ".join(map(_minutes, both)) for both in found)])
    return Table(["context", *wanted], cells) if cells else Missing("race")


def _minutes(found: float | None) -> str:
    return "–" if found is None else f"{found:.1f}"


def same_time_table() -> Table | Missing:
    """The losses when linear attention has made its updates, whatever softmax has made by then."""
    cells = []
    for context in CONTEXTS:
        try:
            spent, softmax, linear = in_the_same_time(context)
        except NotMeasuredError:
            continue
        apart = f"{linear - softmax:+.3f}".replace("-", "−")
        losses = f"{softmax:.3f}", f"{linear:.3f}", apart
        cells.append([f"{context:,}", f"{spent:.0f}", *losses])
    titles = ["context", "minutes", "softmax", "linear", "linear less softmax"]
    return Table(titles, cells, align="rrrrr") if cells else Missing("race")


def far_head_table() -> Table | Missing:
    """Cost of the far-sighted head, by context and attention: mean, error, and agreeing pairs.

    Its runs less those with a second near-sighted head in its place.
    """
    cells = [[f"{context:,}", *(_far_head(name, context) for name in PAIR)] for context in CONTEXTS]
    cells = [line for line in cells if set(line[1:]) != {"–"}]
    return Table(["context", *PAIR], cells, align="rrr", wrap=True) if cells else Missing("race")


def _far_head(attention: str, context: int) -> str:
    try:
        found = compare(differences(attention, f"{attention}, near only", context))
    except NotMeasuredError:
        return "–"
    return f"{found.signed()} ({found.of()})"

"""Numbers and tables of the long race for the chapter on training."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from ..lib.format import in_words, percent, times_between
from ..lib.pairs import Pairs, compare
from ..lib.records import Record, interpolated, need
from ..lib.tables import Missing, Table
from .far_heads import signed
from .long_race import (
    CONTROL,
    EARLY,
    EXPERIMENT,
    MIDDLE,
    MODELS,
    MUCH,
    PAIR,
    PARTS,
    SEEDS,
    TWICE,
    by_novel,
    constant_marks,
    each_seed,
    far_saves,
    gains,
    last_gains,
    last_lead,
    lead,
    loss,
    megabytes,
    more_with_all,
    of,
    onset,
    pace,
    read,
    runs,
    seeds_of,
    share_off,
)

ORDINALS = ("first", "second")


def lead_meanwhile(update: int, seed: int = 0) -> Pairs:
    """Linear attention's lead at the minute of its update, softmax being as far as it is then.

    Novel by novel, of the runs on all text. Softmax's losses are interpolated between marks.
    """
    own, other = (by_novel(of(model, seed, whole=True)) for model in PAIR)
    made = update * pace("linear")["seconds"] / pace("softmax")["seconds"]
    curves = [dict(zip(other, losses, strict=True)) for losses in zip(*other.values(), strict=True)]
    then = [interpolated(curve, made) for curve in curves]
    return compare([b - a for a, b in zip(own[update], then, strict=True)])


def window_apart(other: str) -> Pairs:
    """The window's loss less another's after all text, novel by novel, of the first seed."""
    own, than = (by_novel(of(model, whole=True)) for model in ("window", other))
    return compare([a - b for a, b in zip(own[max(own)], than[max(than)], strict=True)])


def minutes(model: str) -> str:
    """What all updates of all text take. Raises NotMeasuredError."""
    return f"{of(model, whole=True)['config']['updates'] * pace(model)['seconds'] / 60:.0f}"


def lead_table() -> Table | Missing:
    """By how much softmax ends below linear attention, by the position in the window."""
    if not {*PAIR} <= {*runs(whole=True)}:
        return Missing(EXPERIMENT)
    shown = [(whole, seed) for whole in (True, False) for seed in seeds_of(*PAIR, whole=whole)]
    titles = [f"after {read(whole=whole)}, {ORDINALS[seed]} seed" for whole, seed in shown]
    cells = [
        [
            f"{first:,} to {last:,}",
            *(behind(last_lead(seed, whole=whole, within=(first, last))) for whole, seed in shown),
        ]
        for first, last in PARTS
    ]
    return Table(["bytes of the window", *titles], cells, wrap=True)


def softmax_leads(seed: int = 0, *, whole: bool = True) -> list[bool]:
    """In which parts of a window softmax's loss is lower, beyond chance. NotMeasuredError."""
    leads = [last_lead(seed, whole=whole, within=part) for part in PARTS]
    return [lead.mean + (lead.half or inf) < 0 for lead in leads]


def copies_table() -> Table | Missing:
    """Gain on a passage that comes again after all text, for each seed of three models."""
    cells = []
    for model in ("softmax", "window", "linear"):
        for seed in seeds_of(model, whole=True):
            each = (signed(compare(last_gains(model, n, seed, whole=True))) for n in (64, 256, 896))
            ends = f"{loss(model, seed, whole=True):.3f}"
            which = f", {ORDINALS[seed]} seed" if len(seeds_of(model, whole=True)) > 1 else ""
            named = f"{MODELS[model].lower()}{which}"
            cells.append([named, *each, percent(share_off(model, seed)), ends])
    titles = ["", "gain after 64 bytes", "after 256", "after 896", "off its loss", "loss"]
    return Table(titles, cells) if cells else Missing(EXPERIMENT)


def behind(ahead: Pairs) -> str:
    """A lead from the other side: "+0.040 ± 0.012"."""
    return ahead._replace(mean=-ahead.mean).signed()


def of_all(told: Callable[[int], str], *models: str) -> str:
    """What is told of each seed of models that read all text."""
    return each_seed(told, *models, whole=True)


def at_onset(seed: int, end: int) -> str:
    """Softmax's gain after 64 bytes before it copies (0) and after (1): "0.082 ± 0.015"."""
    return "{:.3f} ± {:.3f}".format(*gains(of("softmax", seed, whole=True), 64)[onset(seed)[end]])


def at_twice() -> Record:
    """Linear attention's run on all text at twice the rate. Raises NotMeasuredError."""
    found = runs(whole=True, rate=TWICE)
    return need([*found.values()], f"{EXPERIMENT}: no other rate")[0]


def twice_behind(other: str) -> Pairs:
    """Its loss less that of a model at the usual rate, novel by novel, of the same seed."""
    own, than = (by_novel(run) for run in (at_twice(), of(other, whole=True)))
    return compare([a - b for a, b in zip(own[max(own)], than[max(than)], strict=True)])


def numbers() -> dict[str, str]:
    """Numbers for the chapter on training: more text."""
    return in_words(
        long_softmax_slower=lambda: times_between(pace("softmax"), pace("linear")),
        long_window_slower=lambda: times_between(pace("window"), pace("linear")),
        long_window_softmax=lambda: window_apart("softmax").spread(),
        long_window_linear=lambda: window_apart("linear").signed(),
        long_parameters=lambda: of("linear")["config"]["size"],
        long_read=lambda: read(whole=False),
        long_far=lambda: each_seed(lambda seed: far_saves(seed)[-1].spread(), *CONTROL),
        long_far_early=lambda: each_seed(lambda seed: far_saves(seed)[0].spread(), *CONTROL),
        long_early_read=lambda: f"{megabytes(of('linear'), EARLY):.1f} MB",
        long_lead_early=lambda: each_seed(lambda seed: lead(EARLY, seed).signed(), *PAIR),
        long_lead_middle=lambda: each_seed(lambda seed: lead(MIDDLE, seed).signed(), *PAIR),
        **{
            f"long_{model}": lambda model=model: each_seed(
                lambda seed: f"{loss(model, seed):.3f}", model
            )
            for model in PAIR
        },
        long_all_read=lambda: read(whole=True),
        **{
            f"long_onset_{seed}": lambda seed=seed: " and ".join(
                read(whole=True, update=update) for update in onset(seed)
            )
            for seed in SEEDS
        },
        long_twice_behind=lambda: twice_behind("linear").spread(),
        long_much=lambda: f"{MUCH:.2f}",
        long_meanwhile_early=lambda: of_all(
            lambda seed: lead_meanwhile(MIDDLE, seed).spread(), *PAIR
        ),
        long_meanwhile_late=lambda: of_all(
            lambda seed: lead_meanwhile(constant_marks()[-1], seed).spread(), *PAIR
        ),
        **{f"long_minutes_{model}": lambda model=model: minutes(model) for model in PAIR},
        long_before_64=lambda: of_all(lambda seed: at_onset(seed, 0), "softmax"),
        long_after_64=lambda: of_all(lambda seed: at_onset(seed, 1), "softmax"),
        long_all_behind=lambda: of_all(lambda seed: last_lead(seed, whole=True).spread(), *PAIR),
        long_all_far=lambda: far_saves(whole=True)[-1].spread(),
        long_all_more=lambda: more_with_all("linear", 64).spread(),
        long_all_near_more=lambda: more_with_all("linear, near only", 64).spread(),
        long_all_far_constant=lambda: far_saves(whole=True)[len(constant_marks()) - 1].spread(),
        long_all_64=lambda: compare(last_gains("linear", 64, whole=True)).spread(),
    )

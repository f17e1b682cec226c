"""Changes that end the plateau at a long context, one at a time, for both attentions."""

from __future__ import annotations

from statistics import fmean

from ...explorable.figure import Explorable, Filter, Series, Toggle
from ..index import ngram_baseline
from ..lib import pairs
from ..lib.axes import LOSS, UPDATES
from ..lib.format import in_words
from ..lib.pairs import Pairs
from ..lib.records import Record, have, learned, mean_curve, need, provenance
from ..lib.seeds import mean_over_seeds, seeds_in_words
from ..lib.tables import Missing, Table
from .loss_curves import leaves_pairs

REMEDIES = {
    "as it was": "as in GPT-2, rate 0.001",
    "higher rate": "rate 0.002, warm-up of 100",
    "sinusoids": "the table begins with sinusoids",
    "no positions": "no table of positions",
    "four times the bytes": "four times the bytes an update",
    "larger weights": "first weights of scale 1/√128, for 0.02",
    "rotation": "rotary positions",
    "token shift": "token shift",
    "fades in 256": "one head fades, half in 256 bytes",
    "fades in 64": "one head fades, half in 64 bytes",
    "fades in 16": "one head fades, half in 16 bytes",
    "fades in 4": "one head fades, half in 4 bytes",
    "fades in 1": "one head fades, half in 1 byte",
    "near only": "both heads fade, half in 4 bytes",
}
CONTROLS = {
    "token before": "no attention, the byte before",
    "shift alone": "no attention, token shift",
    "none": "no attention",
}
NAMED = {**REMEDIES, **CONTROLS}
ATTENTION = {"softmax": "Softmax", "linear": "Linear"}
# Lines of the chart: as many as there are colours. The table has all runs.
DRAWN = ("as it was", "no positions", "fades in 4", "near only", "token before", "none")
HALF_LIVES = (1, 4, 16, 64, 256)  # bytes, of the one head that decays
Key = tuple[str, str]


def runs() -> dict[Key, list[Record]]:
    """The seeds of every remedy and attention; the controls have "none" as their attention."""
    by_key: dict[Key, list[Record]] = {}
    for run in learned("plateau"):
        if not any(run["tables"]["validation"]["update"]):
            continue  # stopped before anything was learned
        config = run["config"]
        attention = "none" if config["remedy"] in CONTROLS else config["attention"]
        by_key.setdefault((config["remedy"], attention), []).append(run)
    return by_key


def ends(remedy: str, attention: str) -> list[float]:
    """The last loss of every seed. Raises NotMeasuredError."""
    seeds = need(runs().get((remedy, attention)), f"plateau: no {remedy}, {attention}")
    return [run["tables"]["validation"]["loss"][-1] for run in seeds]


def end(remedy: str, attention: str) -> float:
    """The mean of the last losses. Raises NotMeasuredError."""
    return fmean(ends(remedy, attention))


def leaves(remedy: str, attention: str) -> float | None:
    """The mean update over seeds at which a loss is first clearly below letter pairs.

    None if a seed did not get there. Raises NotMeasuredError.
    """
    ends(remedy, attention)
    need(have("ngram_baseline"), "plateau: no letter pairs to compare with")
    firsts = [leaves_pairs(run) for run in runs()[remedy, attention]]
    return None if None in firsts else fmean(firsts)


def stays(remedy: str) -> bool:
    """Whether the plateau stays with a remedy, for both attentions. Raises NotMeasuredError."""
    return all(leaves(remedy, name) is None for name in ATTENTION)


def leave(*remedies: str) -> bool:
    """Whether both attentions leave it with each of the remedies. Raises NotMeasuredError."""
    return all(leaves(remedy, name) is not None for remedy in remedies for name in ATTENTION)


def figure(id: str = "plateau") -> Explorable | Missing:
    """Loss by update at 1,024 bytes, a curve for every remedy."""
    drawn = {key: records for key, records in runs().items() if key[0] in DRAWN}
    if not drawn:
        return Missing("plateau")
    series = []
    for (remedy, attention), records in drawn.items():
        for shown in ATTENTION if attention == "none" else (attention,):
            keys = {"attention": shown, "remedy": remedy}
            mean = mean_curve(records)
            columns = {"update": [*mean], "loss": [*mean.values()]}
            series.append(Series(keys, columns, source=records[0]["path"]))
    have_letters = bool(have("ngram_baseline"))
    return Explorable(
        id=id,
        caption=_caption(),
        alt=(
            "Curves of validation loss by update at a context of 1,024 bytes. The model as it was "
            "stays at the level of letter pairs; with a head that fades it falls below."
        ),
        series=series,
        x=UPDATES,
        y=LOSS,
        color="remedy",
        mark="line",
        controls=[
            Filter("attention", "Attention", options=ATTENTION, default="linear"),
            Toggle("remedy", "Change", options={name: NAMED[name] for name in DRAWN}),
        ],
        ceilings=[
            Series(
                {},
                {
                    "update": [
                        min(one.columns["update"][0] for one in series),
                        max(one.columns["update"][-1] for one in series),
                    ],
                    "loss": [ngram_baseline.loss(2)] * 2,
                },
                label="counting letter pairs",
            )
        ]
        if have_letters
        else [],
        provenance=provenance(learned("plateau")),
    )


def _caption() -> str:
    every = runs()
    config = next(iter(every.values()))[0]["config"]
    seeds = seeds_in_words([*map(len, every.values())])
    return (
        f"**A head that fades fast ends the plateau.** The race's size at {config['context']:,} "
        f"bytes, held-out loss, {config['updates']} updates a curve, fixed beforehand; {seeds}. "
        "All but the first curve train at a higher rate after a longer warm-up, without a table "
        "of positions."
    )


def table() -> Table | Missing:
    """Last loss of each run, and the update at which it passed letter pairs."""
    stored = runs()
    if not stored:
        return Missing("plateau")
    cells = []
    for remedy, label in NAMED.items():
        line = [label]
        for attention in ATTENTION:
            key = "none" if remedy in CONTROLS else attention
            shown = in_words(
                end=lambda r=remedy, a=key: mean_over_seeds(ends(r, a)),
                left=lambda r=remedy, a=key: _left(r, a),
            )
            measured = (remedy, key) in stored
            line += [shown["end"], shown["left"]] if measured else ["", ""]
        if any(line[1:]):
            cells.append(line)
    titles = [
        "changed",
        "softmax ends at",
        "left pairs after",
        "linear ends at",
        "left pairs after",
    ]
    return Table(titles, cells)


def _left(remedy: str, attention: str) -> str:
    update = leaves(remedy, attention)
    return f"> {updates()}" if update is None else f"{update:.0f}"


def updates() -> int:
    """Number of updates of every run. Raises NotMeasuredError."""
    return need([*runs().values()], "plateau: nothing stored")[0][0]["config"]["updates"]


def best_attention() -> Key:
    """The run with attention that ends lowest, of all kinds. Raises NotMeasuredError."""
    with_attention = [key for key in runs() if key[0] not in CONTROLS]
    return min(need(with_attention, "plateau: no attention"), key=lambda key: end(*key))


def compare(*of: tuple[Key, Key]) -> Pairs:
    """Last losses of some runs minus those of others, by seed. Raises NotMeasuredError."""
    stored = runs()
    return pairs.compare_seeds(
        pairs.by_seed(stored.get(one, ()), stored.get(other, ())) for one, other in of
    )


def far_costs() -> Pairs:
    """Cost of the head that sees everything, beside a decaying one. Raises NotMeasuredError."""
    return compare(*((("fades in 4", name), ("near only", name)) for name in ATTENTION))


def shift_costs(attention: str) -> Pairs:
    """Loss that attention adds to a token shift alone. Raises NotMeasuredError."""
    return compare((("token shift", attention), ("shift alone", "none")))


def apart(remedy: str) -> Pairs:
    """Linear attention's loss minus softmax's. Raises NotMeasuredError."""
    return compare(((remedy, "linear"), (remedy, "softmax")))


def rotary_saves(half_life: int) -> Pairs:
    """Loss of softmax with a fading head minus that with rotary positions. NotMeasuredError."""
    return compare(((f"fades in {half_life}", "softmax"), ("rotation", "softmax")))


def behind_convolution() -> Pairs:
    """Nats by which the best attention ends above a convolution of two. NotMeasuredError."""
    return compare((best_attention(), ("token before", "none")))


def numbers() -> dict[str, str]:
    """Numbers for the chapter on training: the plateau."""

    def ends_at(remedy: str, attention: str) -> str:
        return f"{end(remedy, attention):.2f}"

    return in_words(
        plateau_updates=updates,
        plateau_before=lambda: ends_at("token before", "none"),
        plateau_before_lower=lambda: behind_convolution().spread(),
        plateau_far=lambda: far_costs().spread(),
        plateau_fastest=lambda: ends_at(f"fades in {HALF_LIVES[0]}", "linear"),
        plateau_slowest=lambda: ends_at(f"fades in {HALF_LIVES[-1]}", "linear"),
        plateau_shift_alone=lambda: ends_at("shift alone", "none"),
        **{
            f"plateau_shift_{name}": lambda name=name: shift_costs(name).spread()
            for name in ATTENTION
        },
        plateau_rotary=lambda: rotary_saves(4).spread(),
        plateau_rotary_fast=lambda: rotary_saves(1).spread(),
        plateau_shift_apart=lambda: apart("token shift").spread(),
    )

"""Loss against training compute, by size of the model."""

from __future__ import annotations

from math import log10
from statistics import fmean, linear_regression

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.axes import LOSS_OVER_SEEDS
from ..lib.format import counted, in_words
from ..lib.pairs import Pairs, by_seed, compare, compare_seeds, differences
from ..lib.records import Record, learned, losses_by_update, need, provenance, row
from ..lib.seeds import bars, mean_over_seeds, seeds_in_words
from ..lib.tables import Missing, Table

EXPERIMENT = "scaling"
ATTENTIONS = ("softmax", "linear")
LARGE = 0.4e6  # parameters, from which the chapter treats all sizes together
SHOWN = {"ends": "where each size ends", "curves": "every curve"}
TERA = 1e12


def sizes() -> dict[str, dict[str, list[Record]]]:
    """{attention: {size: runs of all seeds}}, finished, smallest size first.

    Both attentions have the same seeds of the same sizes, if both were run: means over different
    seeds would compare seeds, not attentions.
    """
    by_seed: dict[str, dict[str, dict[int, Record]]] = {name: {} for name in ATTENTIONS}
    for run in learned(EXPERIMENT):
        config = run["config"]
        if finished(run) and "change" not in config:
            of_size = by_seed[config["attention"]].setdefault(config["size"], {})
            of_size[config["seed"]] = run
    first, second = (by_seed[name] for name in ATTENTIONS)
    shared: dict[str, dict[str, list[Record]]] = {name: {} for name in ATTENTIONS}
    for name in sorted(first.keys() & second.keys(), key=lambda name: _parameters(first[name])):
        both = sorted(first[name].keys() & second[name].keys())
        for attention in ATTENTIONS if both else ():
            shared[attention][name] = [by_seed[attention][name][seed] for seed in both]
    return shared


def finished(run: Record) -> bool:
    """Whether a run made all of its updates."""
    made = run["tables"].get("validation", {"update": [0]})["update"]
    return bool(made) and made[-1] >= run["config"]["updates"] and "model" in run["tables"]


def _parameters(by_seed: dict[int, Record]) -> int:
    return row(next(iter(by_seed.values())), "model")["parameters"]


def flops(run: Record, updates: int) -> float:
    """FLOP of `updates` updates, by the layers' own counts."""
    config = run["config"]
    tokens = updates * config["span"] * config["spans"]
    return tokens * row(run, "model")["flops"]


def points(attention: str) -> list[tuple[float, float, list[float]]]:
    """(parameters, compute, the last loss of each seed) of each size."""
    measured = []
    for runs in sizes()[attention].values():
        losses = [run["tables"]["validation"]["loss"][-1] for run in runs]
        made = runs[0]["config"]["updates"]
        measured.append((row(runs[0], "model")["parameters"], flops(runs[0], made), losses))
    return measured


def _series(all_sizes: dict[str, dict[str, list[Record]]]) -> list[Series]:
    series = []
    for attention in ATTENTIONS:
        ends = points(attention)
        if ends:
            columns = {
                "teraflops": [compute / TERA for _, compute, _ in ends],
                "parameters": [n for n, *_ in ends],
                "loss": [fmean(losses) for *_, losses in ends],
                "low": [min(losses) for *_, losses in ends],
                "high": [max(losses) for *_, losses in ends],
            }
            keys = {"attention": attention, "shown": "ends"}
            sources = next(iter(all_sizes[attention].values()))
            series.append(Series(keys, columns, source=sources[0]["path"]))
        for name, runs in all_sizes[attention].items():
            keys = {"attention": attention, "shown": "curves"}
            label = f"{attention.capitalize()}, {name}"
            series.append(Series(keys, _curve(runs), label=label, source=runs[0]["path"]))
    return series


def _curve(runs: list[Record]) -> dict[str, list[float]]:
    curves = [losses_by_update(run) for run in runs]
    updates = [u for u in curves[0] if all(u in one for one in curves)]
    losses = [[one[u] for one in curves] for u in updates]
    return {
        "teraflops": [flops(runs[0], u) / TERA for u in updates],
        "parameters": [row(runs[0], "model")["parameters"]] * len(updates),
        "loss": [fmean(each) for each in losses],
        "low": [min(each) for each in losses],
        "high": [max(each) for each in losses],
    }


def figure(id: str = "scaling") -> Explorable | Missing:
    """Loss against compute, by size, softmax and linear."""
    all_sizes = sizes()
    if not any(all_sizes.values()):
        return Missing(EXPERIMENT)
    return Explorable(
        id=id,
        caption=_caption(),
        alt=(
            "Held-out loss against training compute on a logarithmic scale: a falling line of "
            "dots for each attention, one dot a size of the model."
        ),
        series=_series(all_sizes),
        x=Choice(
            "Against",
            [
                Axis("teraflops", "Training compute", "TFLOP", log=10, digits=3),
                Axis("parameters", "Parameters", log=10, digits=3),
            ],
        ),
        y=LOSS_OVER_SEEDS,
        color="attention",
        mark="line+dot",
        controls=[
            Filter("shown", "Show", options=SHOWN, default="ends"),
            Toggle("attention", "Attention", options={"softmax": "Softmax", "linear": "Linear"}),
        ],
        provenance=provenance(
            [run for by_size in all_sizes.values() for runs in by_size.values() for run in runs]
        ),
    )


def _seeds() -> str:
    counts = need([len(losses) for *_, losses in points("linear")], f"{EXPERIMENT}: nothing stored")
    return seeds_in_words(counts)


def _config() -> dict:
    return need([*sizes()["linear"].values()], f"{EXPERIMENT}: nothing stored")[0][0]["config"]


def _names() -> list[str]:
    """The sizes that have been run with both attentions, smallest first."""
    return need([*sizes()["linear"]], f"{EXPERIMENT}: nothing stored")


def _caption() -> str:
    config, names = _config(), _names()
    tokens = config["updates"] * config["span"] * config["spans"]
    return (
        "**Larger models end lower with either attention.** Sizes from "
        f"{names[0]} to {names[-1]} parameters. Every size makes the same {config['updates']:,} "
        f"updates, fixed beforehand, on the same {tokens / 1e6:.1f} million bytes. "
        f"{bars(_seeds())} Compute is counted, not timed."
    )


def table() -> Table | Missing:
    """All sizes: parameters, compute, and final loss of each attention."""
    both = [points(name) for name in ATTENTIONS]
    if not both[0]:
        return Missing(EXPERIMENT)
    cells = []
    for (parameters, *computes, softmax), (_, less, linear) in zip(*both, strict=True):
        apart = compare([a - b for a, b in zip(softmax, linear, strict=True)])
        cells.append([
            f"{parameters:,}",
            *(f"{compute / TERA:.3g}" for compute in (*computes, less)),
            *(mean_over_seeds(losses) for losses in (softmax, linear)),
            apart.signed(),
        ])  # fmt: skip
    titles = [
        "parameters", "TFLOP, softmax", "TFLOP, linear", "softmax ends at", "linear ends at",
        "linear's lead",
    ]  # fmt: skip
    return Table(titles, cells, align="r" * len(titles))


def _gaps(least: float) -> list[dict[int, float]]:
    """Nats by which linear ends behind softmax, by seed, for each size from `least` on."""
    first, second = (sizes()[name] for name in ATTENTIONS)
    return [
        by_seed(runs, first[name])
        for name, runs in second.items()
        if row(runs[0], "model")["parameters"] >= least
    ]


def behind(least: float = 0) -> Pairs:
    """Nats by which linear ends behind softmax, at sizes from `least` parameters on.

    Seeds are the units. Raises NotMeasuredError.
    """
    return compare_seeds(_gaps(least))


def slope() -> Pairs:
    """Nats by which linear attention's lead grows with a tenfold size, fitted for each seed.

    At sizes from `LARGE` on. Raises NotMeasuredError.
    """
    every = [parameters for parameters, *_ in points("linear")]
    decades = [log10(parameters) for parameters in every if parameters >= LARGE]
    gaps = need(_gaps(LARGE), f"{EXPERIMENT}: nothing stored")
    shared = set.intersection(*map(set, gaps))
    need(shared and len(gaps) > 1, f"{EXPERIMENT}: no seed of several sizes")
    leads = ([-gap[seed] for gap in gaps] for seed in sorted(shared))
    return compare([linear_regression(decades, each).slope for each in leads])


def agreeing() -> str:
    """Pairs of runs from `LARGE` on in which linear ends lower: "12 of 12". NotMeasuredError."""
    every = [gap for of_size in _gaps(LARGE) for gap in of_size.values()]
    need(every, f"{EXPERIMENT}: nothing stored")
    return f"{sum(gap < 0 for gap in every)} of {len(every)}"


def smallest(count: int) -> list[list[float]]:
    """The differences behind `behind` at the smallest sizes, a list for each size."""
    first, second = (sizes()[name] for name in ATTENTIONS)
    return [differences(second[name], first[name]) for name in [*second][:count]]


def _head_widths() -> str:
    """Width of a head at the smallest and at the largest size: "32 to 96"."""
    widths = [
        run["config"]["shape"]["d_model"] // len(run["config"]["attention_options"]["log_decay"])
        for runs in sizes()["linear"].values()
        for run in runs[:1]
    ]
    need(widths, f"{EXPERIMENT}: nothing stored")
    return f"{min(widths)} to {max(widths)}"


def numbers() -> dict[str, str]:
    """Numbers for the chapter on training: size."""
    return in_words(
        scaling_sizes=lambda: counted(len(_names())),
        scaling_slope=lambda: slope().spread(),
        scaling_lower=lambda: behind(LARGE).spread(),
        scaling_of=agreeing,
        scaling_heads=_head_widths,
        scaling_updates=lambda: f"{_config()['updates']:,}",
        scaling_least=lambda: _names()[0],
        scaling_most=lambda: _names()[-1],
    )

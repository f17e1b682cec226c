"""Loss against the bytes of a layer's state; `state_tables` has its tables and numbers."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, log
from statistics import fmean
from typing import NamedTuple

from ...explorable.figure import Axis, Explorable, Filter, Series, Toggle
from ..lib.axes import LOSS_OVER_SEEDS
from ..lib.format import listed
from ..lib.pairs import Pairs, compare, differences
from ..lib.records import Record, learned, losses_by_update, need, provenance, row, rows
from ..lib.seeds import bars, seeds_in_words
from ..lib.tables import Missing
from .scaling import finished

EXPERIMENT = "state_size"
KINDS = {
    "softmax": "Softmax",
    "linear": "elu + 1",
    "exp": "exp",
    "relu": "relu",
    "softplus": "softplus",
    "taylor": "Taylor sums",
    "power": "Power 2",
}
RECIPES = {"fades": "1,024 bytes, half of the heads fade", "plain": "256 bytes, no head fades"}
PARTS = {"1": "a quarter", "2": "half", "3": "three quarters", "4": "all"}


class Arm(NamedTuple):
    """An arm: the layer that weighs the past, its recipe, its heads, and other changes."""

    weights: str
    recipe: str = "plain"
    heads: int = 2
    change: str = ""


NEAR = Arm("elu + 1", change="near only")


def arms() -> dict[Arm, list[Record]]:
    """The stored complete runs, all seeds of an arm together, in the order of seeds."""
    by_arm: dict[Arm, list[Record]] = {}
    for run in sorted(learned(EXPERIMENT), key=lambda run: run["config"]["seed"]):
        if finished(run):
            arm = Arm(*(run["config"][key] for key in Arm._fields))
            by_arm.setdefault(arm, []).append(run)
    return by_arm


def _kind(run: Record) -> str:
    """The palette name of the layer that weighs the past, or its own name."""
    if run["config"]["attention"] != "linear":
        return run["config"]["attention"]
    weights: str = run["config"]["weights"]
    return "linear" if weights == "elu + 1" else weights


def _of(arm: Arm) -> list[Record]:
    return need(arms().get(arm), f"{EXPERIMENT}: no {', '.join(map(str, arm))}")


def ends(arm: Arm) -> list[float]:
    """The last loss of every seed. Raises NotMeasuredError."""
    return [run["tables"]["validation"]["loss"][-1] for run in _of(arm)]


def end(arm: Arm) -> float:
    """The mean of the last losses over seeds. Raises NotMeasuredError."""
    return fmean(ends(arm))


def behind(arm: Arm, other: Arm) -> Pairs:
    """Nats by which an arm ends behind another, seed by seed. Raises NotMeasuredError."""
    return compare(differences(_of(arm), _of(other)))


def seeds() -> str:
    """Number of seeds of the arms, in words. Raises NotMeasuredError."""
    counts = need([len(runs) for runs in arms().values()], f"{EXPERIMENT}: nothing stored")
    return seeds_in_words(counts)


def updates(arm: Arm) -> int:
    """Updates of each run. Raises NotMeasuredError."""
    return _of(arm)[0]["config"]["updates"]


def state(arm: Arm) -> int:
    """Bytes of a layer's state after a text as long as the context. Raises NotMeasuredError."""
    return row(_of(arm)[0], "model")["state"]


class Attention(NamedTuple):
    """Effective tokens of an arm's far-sighted heads after training.

    tokens: geometric mean over layers, heads and seeds. sharpest: of the head with the fewest.
    """

    tokens: float
    sharpest: float


def attention(arm: Arm) -> Attention:
    """The attention at the end. Raises NotMeasuredError."""
    heads = []
    for run in _of(arm):
        config = run["config"]
        fades = sum(slope < 0 for slope in config["attention_options"].get("log_decay", ()))
        found = rows(run, "attended", update=config["updates"])
        heads += [one["effective"] for one in found if one["head"] >= fades]
    need(heads, f"{EXPERIMENT}: no weights of {arm.weights} at the end")
    return Attention(exp(fmean(map(log, heads))), min(heads))


def _series(by_arm: dict[Arm, list[Record]]) -> list[Series]:
    """A point for each arm and part of the updates."""
    series = []
    for arm, runs in by_arm.items():
        if arm.change or arm.weights == "none":
            continue
        for part, losses in _by_part(runs).items():
            columns = {
                "state": [state(arm)],
                "loss": [fmean(losses)],
                "low": [min(losses)],
                "high": [max(losses)],
            }
            keys = {"weights": _kind(runs[0]), "recipe": arm.recipe, "part": part}
            heads = f"{arm.heads} head{'s' if arm.heads > 1 else ''}"
            label = f"{arm.weights}, {heads}"
            series.append(Series(keys, columns, label=label, source=runs[0]["path"]))
    return series


def _by_part(runs: Iterable[Record]) -> dict[str, list[float]]:
    """Losses of every seed after a quarter, half, three quarters and all of the updates."""
    losses: dict[str, list[float]] = {}
    for run in runs:
        for update, loss in losses_by_update(run).items():
            part = 4 * update / run["config"]["updates"]
            if part >= 1 and part == int(part):
                losses.setdefault(str(int(part)), []).append(loss)
    return losses


def _level(by_arm: dict[Arm, list[Record]]) -> list[Series]:
    """A grey line over the range of states: the control that sees nothing far."""
    lines = []
    for recipe in RECIPES:
        states = [state(arm) for arm in by_arm if arm.recipe == recipe and arm.weights != "none"]
        runs = by_arm.get(NEAR._replace(recipe=recipe), [])
        for part, losses in _by_part(runs if states else []).items():
            columns = {"state": [min(states) / 1.5, max(states) * 1.5]}
            columns |= {name: [fmean(losses)] * 2 for name in ("loss", "low", "high")}
            keys = {"recipe": recipe, "part": part}
            lines.append(Series(keys, columns, label="no head sees far"))
    return lines


def figure(id: str = "state-size") -> Explorable | Missing:
    """Loss against the state of a layer, a point for each kind of weights and number of heads."""
    by_arm = arms()
    series = _series(by_arm)
    if not series:
        return Missing(EXPERIMENT)
    recipes = [one.keys["recipe"] for one in series if one.keys["part"] == "4"]
    shown = max(RECIPES, key=recipes.count)
    drawn = {one.keys["weights"] for one in series}
    return Explorable(
        id=id,
        caption=_caption(by_arm),
        alt=(
            "Held-out loss against the bytes of a layer's state on a logarithmic scale. A dot for "
            "each kind of weights and number of heads. A level line for a model whose heads all "
            "fade."
        ),
        series=series,
        x=Axis("state", "State after the context", "bytes", log=10, digits=3),
        y=LOSS_OVER_SEEDS,
        color="weights",
        mark="dot",
        controls=[
            Filter("recipe", "Recipe", options=RECIPES, default=shown),
            Filter("part", "Updates made", options=PARTS, default="4"),
            Toggle("weights", "Weights", options={k: v for k, v in KINDS.items() if k in drawn}),
        ],
        ceilings=_level(by_arm),
        provenance=provenance([run for runs in by_arm.values() for run in runs]),
    )


def _caption(by_arm: dict[Arm, list[Record]]) -> str:
    updates = {arm.recipe: runs[0]["config"]["updates"] for arm, runs in by_arm.items()}
    counts = listed(
        f"{updates[recipe]:,} at {_context(recipe)}" for recipe in RECIPES if recipe in updates
    )
    none = listed(
        f"{end(Arm('none', recipe)):.3f} ({_context(recipe)})"
        for recipe in RECIPES
        if Arm("none", recipe) in by_arm
    )
    return (
        "**The largest state does not end lowest.** Models of about the race's size on held-out "
        "novels, states in float32. All make the same number of updates, fixed beforehand: "
        f"{counts}. Without attention the model ends at {none}. {bars(seeds())}"
    )


def _context(recipe: str) -> str:
    """A recipe in few words, which distinguish it from the other."""
    return f"{RECIPES[recipe].split(' bytes')[0]} bytes"

"""Recall by distance, with noise or with other pairs between."""

from __future__ import annotations

from collections import defaultdict
from math import log

from ...explorable import palette
from ...explorable.figure import Axis, Explorable, Filter, Series, Toggle
from ..lib.format import in_words, percent
from ..lib.records import NotMeasuredError, Record, Row, need, provenance
from ..lib.seeds import bars
from ..lib.tables import Missing
from ..lib.tasks import (
    EXPERIMENT,
    RIGHT,
    Share,
    answers,
    at_all_rates,
    at_best_rates,
    rates_in_words,
    right_columns,
    seeds_of,
    share,
)

TASK = "distant recall"
NAMES = {
    "softmax": "softmax",
    "linear": "linear",
    "fades": "linear, fading",
    "delta": "delta",
    "gated-delta": "gated DeltaNet",
    "gated": "gated",
    "none": "none",
}
NEAR, FAR = 16, 16384  # tokens
BETWEEN = {"noise": "noise", "pairs": "other pairs"}
# Model, contents between, distance: ranges over seeds that the chapter gives.
RANGES = (
    *(("linear", "noise", at) for at in (16, 16384)),
    *(("fades", "noise", at) for at in (16, 1024)),
    *(("gated", "noise", at) for at in (16, 1024, 16384)),
    *((model, "noise", at) for model in ("delta", "gated-delta") for at in (1024, 16384)),
    *((model, "pairs", 256) for model in ("linear", "gated", "delta", "softmax")),
    ("softmax", "pairs", 4096),
)  # fmt: skip


def by_model() -> dict[str, list[Record]]:
    """The complete runs of each model at its best rate, all seeds together."""
    kinds = at_best_rates(TASK)
    by_name = {kind.model: runs for kind, runs in kinds.items()}
    return {model: by_name[model] for model in NAMES if model in by_name}


def shares() -> dict[tuple[str, str, int], Share]:
    """Shares by model, contents between, and distance."""
    grouped: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for model, runs in by_model().items():
        for row in (row for run in runs for row in answers(run)):
            grouped[model, row["between"], row["distance"]].append(row)
    return {what: share(them) for what, them in grouped.items()}


def of(
    all_shares: dict[tuple[str, str, int], Share], model: str, between: str, distance: int
) -> float:
    """The mean share over seeds. Raises NotMeasuredError."""
    if (model, between, distance) not in all_shares:
        raise NotMeasuredError(f"{EXPERIMENT}: no {model} at {distance} with {between} between")
    return all_shares[model, between, distance].mean


def figure(id: str = "found-again") -> Explorable | Missing:
    """Share of questions answered right against the distance to their pairs."""
    models, all_shares = by_model(), shares()
    series = []
    for model, runs in models.items():
        for between in BETWEEN:
            by_distance = {
                what[2]: one for what, one in all_shares.items() if what[:2] == (model, between)
            }
            if by_distance:
                keys = {"model": NAMES[model], "between": between}
                columns = right_columns("distance", sorted(by_distance.items()))
                series.append(Series(keys, columns, source=runs[0]["path"]))
    if not series:
        return Missing(EXPERIMENT)
    drawn = {one.keys["model"] for one in series}
    return Explorable(
        id=id,
        caption=_caption(models),
        alt=(
            "Share of questions answered right against the distance to what they ask for, a line "
            "for each kind of attention; some lines are level and some fall."
        ),
        series=series,
        ceilings=_guesses(series),
        x=Axis("distance", "Distance", "tokens", log=2),
        y=RIGHT,
        color="model",
        mark="line+dot",
        controls=[
            Filter("between", "What stands between", options=BETWEEN, default="noise"),
            Toggle(
                "model",
                "Attention",
                options={name: _label(name) for name in NAMES.values() if name in drawn},
            ),
        ],
        provenance=provenance([run for runs in models.values() for run in runs]),
    )


def _guesses(series: list[Series]) -> list[Series]:
    """The level of a model that answers with any of the asked pairs' values, in noise.

    Other pairs have values too.
    """
    ends = [distance for one in series for distance in one.columns["distance"]]
    level = 100 / _pairs()
    columns: dict[str, list] = {"distance": [min(ends), max(ends)]}
    columns |= {name: [level, level] for name in ("right", "low", "high")}
    return [Series({"between": "noise"}, columns, label="one of the values, guessed")]


def _first() -> Record:
    return need([*by_model().values()], EXPERIMENT)[0][0]


def _pairs() -> int:
    return _first()["config"]["cases"][0]["pairs"]


def _half_life() -> float:
    """Tokens in which a state with a fixed decay loses half. Raises NotMeasuredError."""
    runs = need(by_model().get("fades"), f"{EXPERIMENT}: nothing fades")
    return log(2) / -runs[0]["config"]["attention_options"]["log_decay"][0]


def _longest_trained() -> int:
    config = _first()["config"]
    return max(case["length"] for case in config["cases"]) - 4 * _pairs()


def _caption(models: dict[str, list[Record]]) -> str:
    config, all_shares = models[next(iter(models))][0]["config"], shares()
    told = in_words(
        near=lambda: percent(of(all_shares, "linear", "noise", NEAR)),
        far=lambda: percent(of(all_shares, "linear", "noise", FAR)),
    )
    return (
        f"**With noise between, linear attention answers {told['near']} at {NEAR} tokens and "
        f"{told['far']} at {FAR:,}.** {_pairs()} keys with their values, then noise or other "
        f"pairs, then the questions. One layer of width {config['d_model']}, trained with noise "
        f"at distances up to {_longest_trained()}. "
        f"{rates_in_words(TASK)} "
        f"{bars(seeds_of(models))}"
    )


def _label(name: str) -> str:
    return palette.label(name) or name[0].upper() + name[1:]


def span(model: str, between: str, distance: int) -> str:
    """The least and the most over seeds, in words. Raises NotMeasuredError."""
    all_shares = shares()
    of(all_shares, model, between, distance)
    return _range(all_shares[model, between, distance])


def _range(found: Share) -> str:
    low, high = percent(found.low), percent(found.high)
    return low if low == high else f"{low} to {high}"


def rate_of(model: str) -> float:
    """The learning rate at which a model does best. Raises NotMeasuredError."""
    return need(by_model().get(model), f"{EXPERIMENT}: no {model}")[0]["config"]["learning_rate"]


def at_rate_of(other: str, model: str, distance: int) -> Share:
    """A model's share after noise at the best rate of another. Raises NotMeasuredError."""
    return at_rate(rate_of(other), model, "noise", distance)


def at_rate(rate: float, model: str, between: str, distance: int) -> Share:
    """A model's share at a learning rate. Raises NotMeasuredError."""
    found = [
        answer
        for kind, runs in at_all_rates(TASK).items()
        for run in runs
        if kind.model == model and run["config"]["learning_rate"] == rate
        for answer in answers(run)
        if answer["between"] == between and answer["distance"] == distance
    ]
    return share(need(found, f"{EXPERIMENT}: no {model} at rate {rate}"))


def apart() -> float:
    """The most by which the seeds of a model differ at one distance. Raises NotMeasuredError."""
    found = need([*shares().values()], f"{EXPERIMENT}: no {TASK}")
    return max(one.high - one.low for one in found)


def numbers() -> dict[str, str]:
    """Numbers for the chapter on long context."""
    functions = {
        f"{between}_{model.replace('-', '_')}_{at}": lambda what=(model, between, at): span(*what)
        for model, between, at in RANGES
    }
    return in_words(
        **functions,
        noise_delta_rate=lambda: _range(at_rate_of("linear", "delta", 16384)),
        pairs_softmax_rate=lambda: _range(
            at_rate(3 * rate_of("softmax"), "softmax", "pairs", 4096)
        ),
        again_keys=lambda: _first()["config"]["vocab"] // 4,
        again_apart=lambda: f"{100 * apart():.0f}",
        again_questions=lambda: need(answers(_first()), f"{EXPERIMENT}: no {TASK}")[0]["questions"],
        again_width=lambda: _first()["config"]["d_model"] // _first()["config"]["n_head"],
        again_half_life=lambda: f"{_half_life():.0f}",
        again_pairs=lambda: str(_pairs()),
        again_trained=lambda: str(_longest_trained()),
    )

"""Data of the stage `film`: two models of the race, measured repeatedly during training.

Both continue one sentence and show their heads' attention, after the same updates.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import Any

from IPython.display import HTML

from experiments.harness.learning.probes import LOOKED_AT, PROMPT

from ...explorable.markup import json_script
from ..lib.records import NotMeasuredError, Record, load, of_config, provenance, row, rows
from ..lib.tables import Missing

MODELS = ("softmax", "linear")
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # one a weight, for its square root


def data(context: int = 4096) -> HTML | Missing:
    """JSON in a script element for the stage, or a note on what to run if a film is missing.

    prompt. looked: its first letters, which the maps show. heads: [layer, head, whether it decays].
    shown: the head shown at first. sources: where the runs come from.
    models: each with name, updates (its stops), seconds of an update or None, loss in nats a byte
        by [update, loss], samples {kind: text a stop}, maps {a head's index in heads: a text of
        digits a stop, row by row} and peaks {head: largest weight of a row in percent, the mean
        over rows, a stop}.
    """
    try:
        runs = [_filmed(model, context) for model in MODELS]
    except NotMeasuredError:
        return Missing("race --only seed=0", f"No film of both models at {context:,} bytes yet")
    models = [_model(run, _seconds(run)) for run in runs]
    fading = [slope < 0 for slope in runs[0]["config"]["attention_options"]["log_decay"]]
    layers = 1 + max(rows_of["layer"] for rows_of in rows(runs[0], "looks"))
    heads = [[layer, head, fades] for layer in range(layers) for head, fades in enumerate(fading)]
    film = {
        "prompt": PROMPT,
        "looked": PROMPT[:LOOKED_AT],
        "context": context,
        "heads": heads,
        "shown": _telling(models, heads),
        "sources": [asdict(source) for source in provenance(runs)],
        "models": models,
    }
    return HTML(json_script(film, id="film-data", data_apart=True))


def _filmed(model: str, context: int) -> Record:
    """The run of seed 0 with text samples. Raises NotMeasuredError."""
    stored = [run for run in load("race") if run["complete"] and "looks" in run["tables"]]
    return of_config(stored, model=model, context=context, seed=0)


def _seconds(run: Record) -> float | None:
    """Seconds of an update, measured separately on a quiet computer; None if it was not."""
    try:
        speeds = of_config(load("race"), model="all", context=run["config"]["context"])
        return row(speeds, "speed", model=run["config"]["model"])["seconds"]
    except NotMeasuredError:
        return None


def _model(run: Record, seconds: float | None) -> dict[str, Any]:
    samples: dict[str, list[str]] = defaultdict(list)
    for sample in rows(run, "samples"):
        samples[sample["kind"]].append(sample["text"])
    shares: dict[tuple, list[list[int]]] = defaultdict(list)
    for look in rows(run, "looks"):
        place = look["update"], (look["layer"], look["head"])
        shares[place].append([int(share) for share in look["weights"].split()])
    updates = list(dict.fromkeys(sample["update"] for sample in rows(run, "samples")))
    heads = list(dict.fromkeys(head for _, head in shares))
    validation = run["tables"]["validation"]
    return {
        "name": run["config"]["model"],
        "updates": updates,
        "seconds": seconds,
        "loss": list(zip(validation["update"], validation["loss"], strict=True)),
        "samples": samples,
        "maps": [[_digits(shares[update, head]) for update in updates] for head in heads],
        "peaks": [[_peak(shares[update, head]) for update in updates] for head in heads],
    }


def _digits(lines: list[list[int]]) -> str:
    """Weights in thousandths as digits: 0 for none, z for all of the weight."""
    top = len(DIGITS) - 1
    weights = (min(1, share / 1000) for line in lines for share in line)
    return "".join(DIGITS[round(top * weight**0.5)] for weight in weights)


def _peak(lines: list[list[int]]) -> float:
    """The largest weight of a row, in percent: the mean over rows."""
    return round(sum(max(line) for line in lines) / len(lines) / 10, 1)


def _telling(models: list[dict[str, Any]], heads: list[list]) -> int:
    """The far-sighted head whose weights differ most from uniform ones."""

    def moved(place: int) -> float:
        return sum(max(one["peaks"][place]) - one["peaks"][place][0] for one in models)

    far = [place for place, (_, _, fades) in enumerate(heads) if not fades]
    return max(far or range(len(heads)), key=moved)

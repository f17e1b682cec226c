"""Data of the stage `look-inside`: pages read by a trained model, from `look_inside`.

The page gets the words, and the numbers of right guesses. Attention weights and guesses are in
files that it loads when the stage comes near.
"""

from __future__ import annotations

import io
from dataclasses import asdict
from functools import lru_cache
from statistics import fmean
from typing import Any

import numpy as np
from IPython.display import HTML

from experiments.harness.core import record

from ...explorable.markup import json_script
from ..lib.format import in_words, listed, percent
from ..lib.records import NotMeasuredError, Record, learned, need, provenance, rows, weights_of
from ..lib.tables import Missing
from .measured import Head, ranking
from .remove_exponential import FEW

EXPERIMENT = "look_inside"
# By their index among the held-out novels, which are in the order of their authors' names.
TITLES = {0: "Villette", 2: "Tess of the d’Urbervilles", 3: "Treasure Island"}
DEFAULT = 3
LETTERS = 4  # least letters of the word that is selected at first


def data() -> HTML | Missing:
    """JSON in a script element for the stage, or a note on what to run if nothing is stored.

    shape: layers, and heads of each. heads: all heads as [layer, head, its slope], the most
        important first. window, first: tokens that a confined head sees. few: number of heads that
        are confined at first.
    pages: each with title, file and bytes (of the loaded file), tokens, vocabulary, passage (its
        first place, its second, its length), sets ([where, number, right]) and start (the token
        selected at first).
    sources: where they come from.
    """
    try:
        runs, heads = stored(), ranking()
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    shape = [1 + max(getattr(one, name) for one in heads) for name in ("layer", "head")]
    brings = {(one.layer, one.head): round(one.brings.mean, 5) for one in heads}
    order = [(one["layer"], one["head"]) for one in rows(runs[0], "ranking")]
    shown = {
        "shape": shape,
        "heads": [[*place, brings[place]] for place in order],
        "window": runs[0]["config"]["attention"]["window"],
        "first": runs[0]["config"]["attention"]["first"],
        "few": FEW,
        "pages": [page(run) for run in runs],
        "sources": [asdict(source) for source in provenance(runs)],
    }
    files = " ".join(weights_of(run) for run in runs)
    return HTML(json_script(shown, id="look-inside-data", data_files=files))


def stored() -> list[Record]:
    """A run for each page, the default one first. Raises NotMeasuredError."""
    runs = [run for run in learned(EXPERIMENT) if run["complete"]]
    need(runs, f"{EXPERIMENT}: no page")
    return sorted(runs, key=lambda run: (run["config"]["text"] != DEFAULT, run["name"]))


def page(run: Record) -> dict[str, Any]:
    """Data of one page for the stage; see `data`."""
    config = run["config"]
    lead, passage = config["lead"], config["passage"]
    return {
        "title": TITLES[config["text"]],
        "file": run["name"],
        "bytes": -(-(record.ROOT / weights_of(run)).stat().st_size // 3) * 4,
        "tokens": run["tables"]["tokens"]["text"],
        "vocabulary": run["tables"]["vocabulary"]["letters"],
        "passage": [lead, lead + passage + config["distance"], passage],
        "sets": [[row["where"], row["number"], row["right"]] for row in rows(run, "sets")],
        "start": start(run),
    }


def arrays(run: Record) -> dict[str, np.ndarray]:
    """Arrays beside a record; its experiment documents them."""
    return _arrays(weights_of(run))


@lru_cache(maxsize=8)
def _arrays(file: str) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO((record.ROOT / file).read_bytes())) as archive:
        return dict(archive)


def row_of(run: Record, where: str, number: int = 0) -> int:
    """Index of a set of confined heads in a run."""
    names = [(row["where"], row["number"]) for row in rows(run, "sets")]
    return names.index((where, number))


def start(run: Record) -> int:
    """The token after which confinement costs most: two whole words, the second to be guessed.

    The cost is the fall of the second word's probability when the first heads are confined.
    """
    tokens = run["tables"]["tokens"]["text"]
    wanted = arrays(run)["wanted"].astype(int)
    lost = wanted[row_of(run, "none")] - wanted[row_of(run, "first", FEW)]
    again = len(tokens) - len(lost)
    whole = [text.startswith(" ") and len(text) > LETTERS for text in tokens]
    places = [i for i in range(1, len(lost) - 1) if whole[again + i - 1] and whole[again + i]]
    whole_after = [i for i in places if tokens[again + i + 1].startswith((" ", ",", "."))]
    return again - 1 + max(whole_after or places, key=lost.__getitem__)


def head(layer: int, number: int) -> Head:
    """A head of the ranking. Raises NotMeasuredError."""
    for one in ranking():
        if (one.layer, one.head) == (layer, number):
            return one
    raise NotMeasuredError(f"{EXPERIMENT}: no head {layer}.{number}")


def copied(layer: int, head: int, after: int) -> float:
    """Mean of `looked` over the pages. Raises NotMeasuredError."""
    return fmean(looked(run, layer, head, after) for run in stored())


def looked(run: Record, layer: int, head: int, after: int) -> float:
    """Mean weight of a head from the returning words on their first occurrence, shifted by `after`.

    The mean is over words that have a word at this shift.
    """
    data, config = arrays(run), run["config"]
    counts, length, lead = data["counts"].astype(int), config["passage"], config["lead"]
    layers, heads, tokens = counts.shape
    ends = counts.ravel().cumsum()
    total = 0.0
    for i in range(length - after):
        row = (layer * heads + head) * tokens + tokens - length + i
        here = slice(ends[row] - counts.ravel()[row], ends[row])
        at = data["places"][here] == lead + i + after
        weights = data["low"][here] + 256.0 * data["high"][here]
        total += weights[at].sum() / 1000
    return total / (length - after)


def right(where: str, number: int = 0, page: int = 0) -> int:
    """Number of the passage's words guessed right on a page, by default on the first."""
    run = stored()[page]
    return run["tables"]["sets"]["right"][row_of(run, where, number)]


def numbers() -> dict[str, str]:
    """Numbers for the chapter: the stage's default page."""

    return in_words(
        look_passage=lambda: str(stored()[0]["config"]["passage"]),
        look_distance=lambda: str(stored()[0]["config"]["distance"]),
        look_free=lambda: right("none"),
        look_few=lambda: right("first", FEW),
        look_once=lambda: right("once"),
        look_alone=lambda: right("head"),
        look_others=lambda: listed(
            f"from {right('none', 0, page)} to {right('first', FEW, page)} "
            f"({right('once', 0, page)} the first time)"
            for page in range(1, len(stored()))
        ),
        look_same=lambda: percent(copied(7, 7, 0)),
        look_next=lambda: percent(copied(18, 6, 1)),
        look_idle=lambda: percent(copied(17, 4, 1)),
        look_idle_brings=lambda: head(17, 4).brings,
    )

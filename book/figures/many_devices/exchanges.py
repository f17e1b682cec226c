"""Bytes that ranks exchange for one layer: states, or keys and values, by the cost model."""

from __future__ import annotations

from lsa.cost import key_exchange, state_exchange
from lsa.gpt import SCALES

from ...explorable.figure import Axis, Explorable, Filter, Series
from ..lib.axes import LENGTH
from ..lib.format import SMALL, size
from ..lib.records import SCALE_LABELS
from ..lib.tables import Table

LENGTHS = [2**n for n in range(8, 21)]
RANKS = (2, 4, 8, 64)
WAYS = {
    "gather": "all-gather of states",
    "scan": "prefix scan of states",
    "ring": "keys and values",
}
SCALE, MANY, LONG = "124M", 8, 131072  # of which the chapter tells


def heads(scale: str) -> dict[str, int]:
    """H, K and V of a GPT-2."""
    shape = SCALES[scale]
    d = shape["d_model"] // shape["n_head"]
    return {"H": shape["n_head"], "K": d, "V": d}


def received(way: str, ranks: int, length: int, scale: str = SCALE) -> int:
    """B that the busiest rank receives for a layer, forward."""
    if way == "ring":
        return key_exchange(ranks, length, **heads(scale))
    return state_exchange(ranks, way=way, **heads(scale))


def figure(id: str = "exchanges") -> Explorable:
    """Bytes against the length of the sequence."""
    series = [
        Series(
            {"attention": "softmax" if way == "ring" else "linear", "way": label, "ranks": P,
             "scale": scale},
            {"length": LENGTHS, "MiB": [received(way, P, T, scale) / 2**20 for T in LENGTHS]},
        )
        for way, label in WAYS.items()
        for P in RANKS
        for scale in SCALES
    ]  # fmt: skip
    return Explorable(
        id=id,
        caption=(
            "**Keys and values grow with the text; states do not.** Bytes that a rank receives for "
            "one layer, forward, when the sequence is split evenly. Keys and values take 2 bytes a "
            "number, and as many bytes in a ring as in one all-gather. States take 4. By the "
            "formulas; tests count the same bytes at the exchanges."
        ),
        alt=(
            "Bytes against sequence length on logarithmic scales: a rising line for keys and "
            "values, two level lines for states. They cross where each rank has 65 tokens."
        ),
        series=series,
        x=LENGTH,
        y=Axis("MiB", "Received by a rank", "MiB", log=10, digits=3),
        color="attention",
        dash="way",
        controls=[
            Filter("ranks", "Ranks", options=RANKS, default=MANY),
            Filter("scale", "Layer of", options=SCALE_LABELS, default=SCALE),
        ],
    )


def numbers() -> dict[str, str]:
    """Numbers for the chapter: one layer of the smallest GPT-2."""
    keys, states = (received(way, MANY, LONG) for way in ("ring", "gather"))
    return {
        "many_ranks": SMALL[MANY],
        "keys_bytes": size(keys),
        "states_bytes": size(states),
        "keys_over_states": f"{keys / states:.0f}",
    }


def table() -> Table:
    """How often each way sends, what a rank receives, and what it holds."""
    lines = [
        ["states, all-gather", "1", size(received("gather", MANY, LONG)), "no"],
        ["states, prefix scan", f"{1 + (MANY - 2).bit_length()}",
         size(received("scan", MANY, LONG)), "no"],
        ["keys and values, ring", f"{MANY - 1}", size(received("ring", MANY, LONG)), "yes"],
        ["keys and values, all-gather", "1", size(received("ring", MANY, LONG)), "yes"],
    ]  # fmt: skip
    return Table(["what travels", "exchanges in a row", "received", "grows with T"], lines)

"""Bytes that ranks exchange for one layer, states or keys and values, by the cost model."""

from __future__ import annotations

from lsa.cost import (
    PEAKS,
    head_exchange,
    key_exchange,
    least_bytes,
    mode_cost,
    state_exchange,
)
from lsa.gpt import SCALES

from ...explorable.figure import Axis, Explorable, Filter, Series
from ..lib.axes import LENGTH
from ..lib.format import SMALL, duration, percent, size
from ..lib.records import SCALE_LABELS
from ..lib.tables import Table

LENGTHS = [2**n for n in range(8, 21)]
RANKS = (2, 4, 8, 64)
WAYS = {
    "gather": "all-gather of states",
    "scan": "prefix scan of states",
    "ring": "keys and values",
    "heads": "by heads",
}
SOFTMAX = ("ring", "heads")
SCALE, MANY, LONG = "124M", 8, 131072  # those that the chapter describes
# B/s that a GPU can receive. NVLink of an H100: half of the data sheet's 900 GB/s, which count both
# directions. Network: 400 Gbit/s for each GPU, as between computers of eight H100s.
NVLINK, NETWORK = 450e9, 50e9
GPU = "H100 SXM"


def heads(scale: str) -> dict[str, int]:
    """H, K and V of a GPT-2."""
    shape = SCALES[scale]
    d = shape["d_model"] // shape["n_head"]
    return {"H": shape["n_head"], "K": d, "V": d}


def received(way: str, ranks: int, length: int, scale: str = SCALE) -> int:
    """Bytes that the busiest rank receives for a layer, forward."""
    if way == "heads":
        return head_exchange(ranks, length, **heads(scale))
    if way == "ring":
        return key_exchange(ranks, length, **heads(scale))
    return state_exchange(ranks, way=way, **heads(scale))


def figure(id: str = "exchanges") -> Explorable:
    """Bytes against the length of the sequence."""
    series = [
        Series(
            {"attention": "softmax" if way in SOFTMAX else "linear", "way": label, "ranks": P,
             "scale": scale},
            {"length": LENGTHS, "MiB": [received(way, P, T, scale) / 2**20 for T in LENGTHS]},
        )
        for way, label in WAYS.items()
        for P in RANKS
        for scale in SCALES
        if way != "heads" or SCALES[scale]["n_head"] >= P
    ]  # fmt: skip
    return Explorable(
        id=id,
        caption=(
            "**Softmax's bytes grow with the text; those of states do not.** Bytes that the "
            "busiest rank receives for one layer, forward, when the sequence is split evenly. "
            "*Keys and values*: around a ring or in one all-gather. *By heads*: queries, keys, "
            "values and outputs, on at most as many ranks as there are heads. All of these take 2 "
            "bytes a number, states 4. The bytes come from formulas; tests count the same at the "
            "exchanges."
        ),
        alt=(
            "Bytes against sequence length on logarithmic scales: rising lines for keys and "
            "values and for a split by heads, which is lower; two level lines for states."
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


def arithmetic_seconds() -> float:
    """The least time of softmax's products in the layer, divided evenly among ranks, forward."""
    H, K, V = heads(SCALE).values()
    return mode_cost("softmax", LONG, K, V).flops * H / MANY / PEAKS[GPU].flops


def linear_seconds() -> float:
    """The least time of linear attention's own part of the layer on a rank, forward."""
    H, K, V = heads(SCALE).values()
    return least_bytes(LONG, K, V) * H / MANY / PEAKS[GPU].bytes


def transition_share() -> float:
    """Operations of a transition over those of chunked mode, forward, with K = V = C = 64."""
    return 2 * 64 * 64 * LONG / mode_cost("chunked", LONG, 64, 64).flops


def last_rank_seconds() -> float:
    """The same for the last rank if parts are contiguous: it sees P - 1 whole parts and a half."""
    return arithmetic_seconds() * (MANY - 1 / 2) / (MANY / 2)


def sent_seconds(way: str, speed: float) -> float:
    """The least time in which the busiest rank receives the layer's bytes."""
    return received(way, MANY, LONG) / speed


def saved_seconds(speed: float) -> float:
    """Time that the scan's fewer bytes save, for each exchange beyond the all-gather."""
    saved = received("gather", MANY, LONG) - received("scan", MANY, LONG)
    return saved / speed / (scan_exchanges(MANY) - 1)


def scan_exchanges(ranks: int) -> int:
    """Number of sequential exchanges of a prefix scan over more than two ranks."""
    return 1 + (ranks - 2).bit_length()


def numbers() -> dict[str, str]:
    """Numbers for the chapter: one layer of the smallest GPT-2."""
    keys, by_heads, states = (received(way, MANY, LONG) for way in ("ring", "heads", "gather"))
    return {
        "many_ranks": SMALL[MANY],
        "long": f"{LONG:,}",
        "keys_bytes": size(keys),
        "heads_bytes": size(by_heads),
        "states_bytes": size(states),
        "keys_over_states": f"{keys / states:.0f}",
        "heads_over_states": f"{by_heads / states:.0f}",
        "nvlink": f"{NVLINK / 1e9:.0f} GB/s",
        "network": f"{NETWORK / 1e9:.0f} GB/s",
        "ring_arithmetic": duration(arithmetic_seconds()),
        "ring_last_rank": duration(last_rank_seconds()),
        "ring_hides_below": f"{arithmetic_seconds() / sent_seconds('ring', NETWORK):.0%}",
        "ring_nvlink": duration(sent_seconds("ring", NVLINK)),
        "ring_network": duration(sent_seconds("ring", NETWORK)),
        "heads_network": duration(sent_seconds("heads", NETWORK)),
        "linear_least": duration(linear_seconds()),
        "states_nvlink": duration(sent_seconds("gather", NVLINK)),
        "states_network": duration(sent_seconds("gather", NETWORK)),
        "transition_more": percent(transition_share()),
        "scan_saves": duration(saved_seconds(NVLINK)),
        "scan_saves_network": duration(saved_seconds(NETWORK)),
    }


def table() -> Table:
    """For each kind of exchange: how often it sends, bytes that a rank receives, time, memory."""
    ways = {
        "states, all-gather": ("gather", 1, "one state a rank"),
        "states, prefix scan": ("scan", scan_exchanges(MANY), "one state"),
        "keys and values, ring": ("ring", MANY - 1, "two parts"),
        "keys and values, all-gather": ("ring", 1, "all parts"),
        "by heads": ("heads", 2, "its heads, all tokens"),
    }
    lines = [
        [label, str(count), size(received(way, MANY, LONG)), duration(sent_seconds(way, NVLINK)),
         duration(sent_seconds(way, NETWORK)), held]
        for label, (way, count, held) in ways.items()
    ]  # fmt: skip
    titles = [
        "what travels", "exchanges in a row", "received", "NVLink", "network",
        "a rank holds, forward",
    ]  # fmt: skip
    return Table(titles, lines, align="lrrrrl", wrap=True)

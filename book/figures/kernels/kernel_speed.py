"""The kernels beside other libraries': published times, and the stored part of the race."""

from __future__ import annotations

from math import prod
from typing import Any

from lsa.cost import PEAKS, design_cost, least_bytes

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.axes import PASSES
from ..lib.format import times
from ..lib.records import Row, have, provenance, rows
from ..lib.tables import Missing
from .published import LARGE, PUBLISHED

COLUMNS = {  # of PUBLISHED
    ("Helion", "forward"): 4, ("Helion", "forward+backward"): 5,
    ("fla", "forward"): 6, ("fla", "forward+backward"): 7,
}  # fmt: skip
PUBLISHED_MEMORY = PEAKS["H100 SXM"].bytes


def shape_label(B: int, T: int, H: int, d: int) -> str:
    """The label of a shape on an axis."""
    return f"{B} × {T:,} × {H} × {d}"


def published_share(B: int, T: int, H: int, d: int, ms: float, gradients: bool) -> float:
    """The share of a published time, in %, that the least traffic takes at full memory speed."""
    least = B * T * H * least_bytes(1, d, d, training=gradients) / PUBLISHED_MEMORY
    return 100 * least / (ms * 1e-3)


def share_of_stored_states(B: int, T: int, H: int, d: int, ms: float, gradients: bool) -> float:
    """A published share over that of a kernel which stores all states, at full speed."""
    least = least_bytes(1, d, d, training=gradients)
    moved = design_cost("chunk states", T, B * H, d, gradients=gradients).bytes
    return published_share(B, T, H, d, ms, gradients) / (100 * least / moved)


def share_of_halved_states(B: int, T: int, H: int, d: int, ms: float) -> float:
    """The same of Helion's program with gradients; its bytes are `halved_states`."""
    least = least_bytes(1, d, d, training=True)
    return published_share(B, T, H, d, ms, True) / (100 * least / halved_states(d))


def halved_states(d: int, C: int = 64) -> float:
    """Bytes a token and head of Helion's program, forward and back, counted from its source.

    It stores every chunk's state once, and its gradient, both in 16 bits.
    """
    return 36 * d + 12 * d * d / C


def shares_of_stored_states(library: str, direction: str, least_tokens: int = 0) -> list[float]:
    """`share_of_stored_states` of published times with at least so many tokens of all heads."""
    column = COLUMNS[library, direction]
    return [
        share_of_stored_states(*row[:4], row[column], direction != "forward")
        for row in PUBLISHED
        if least_tokens <= prod(row[:3])
    ]


def fla_shares() -> list[float]:
    """`shares_of_stored_states` of fla, in both passes."""
    return [one for direction in PASSES for one in shares_of_stored_states("fla", direction)]


def helion_shares() -> list[float]:
    """`share_of_halved_states` of the large published shapes."""
    column = COLUMNS["Helion", "forward+backward"]
    return [share_of_halved_states(*row[:4], row[column]) for row in PUBLISHED
            if prod(row[:3]) >= LARGE]  # fmt: skip


def _ends(shares: list[float]) -> str:
    return f"{100 * min(shares):.0f}% to {100 * max(shares):.0f}%"


def numbers() -> dict[str, str]:
    """Numbers for the chapter on kernels: the published times."""
    both = [
        published_share(B, T, H, d, min(helion, fla), True)
        for B, T, H, d, _, helion, _, fla in PUBLISHED
    ]
    return {
        "published_low": f"{min(both):.0f}%",
        "published_high": f"{max(both):.0f}%",
        "large_forward": _ends(shares_of_stored_states("fla", "forward", LARGE)),
        "large_both": _ends(shares_of_stored_states("fla", "forward+backward", LARGE)),
        "helion_forward": _ends(shares_of_stored_states("Helion", "forward", LARGE)),
        "helion_both": _ends(helion_shares()),
        "halved_both": times(halved_states(128) / least_bytes(1, 128, 128, training=True)),
    }


def published(id: str = "published-speed") -> Explorable:
    """Published times of such kernels by others."""
    series = [
        Series(
            {"library": library, "pass": direction},
            {
                "shape": [shape_label(*row[:4]) for row in PUBLISHED],
                "share": [
                    published_share(*row[:4], row[column], direction != "forward")
                    for row in PUBLISHED
                ],
                "ms": [row[column] for row in PUBLISHED],
            },
        )
        for (library, direction), column in COLUMNS.items()
    ]
    return Explorable(
        id=id,
        caption=(
            "**The published times leave most of the limit unused.** Times that others report for "
            "the sum without a normaliser on one H100, in 16 bits. The share is that of the least "
            "possible traffic at the data sheet's memory speed. Not measured here."
        ),
        alt=(
            "Bars of the share of the memory limit, for six shapes, of two libraries. None is "
            "above two fifths; with gradients the shares are lower still."
        ),
        series=series,
        x=Choice(
            "Show",
            [
                Axis("share", "Share of the limit", "%", digits=3, range=(0, 100)),
                Axis("ms", "Time", "ms", digits=3),
            ],
        ),
        y=Axis("shape", "B × T × H × d"),
        color="library",
        mark="bar",
        controls=[
            Filter("pass", "Pass", options=PASSES, default="forward+backward"),
            Toggle("library", "Library"),
        ],
    )


# The palette's names for implementations that have one colour on every page.
COLOURED = {"ours": "chunked", "softmax, flash": "softmax"}
IMPLEMENTATIONS = {
    "chunked": "ours",
    "ours, normalised": "ours, normalised",
    "ours, fading": "ours, fading",
    "softmax": "softmax, flash",
}
LAUNCHES = {"graph": "CUDA graph", "eager": "from Python"}
LADDERS = {"ladder": "published shapes", "gpt2": "GPT-2's heads"}


class NotRaced(Missing):
    """A note on the page until a GPU has run the race."""

    def __init__(self) -> None:
        super().__init__("kernel_speed")

    def _repr_markdown_(self) -> str:
        return """
:::{note}
**The kernels of this book have not been measured on a GPU yet.** There was none.
All their numbers in this chapter are counted, or computed in an interpreter.
On a GPU with Triton one command checks the kernels against float64, races them and packs the
results. This page will then show them. They race flash-linear-attention too, if it is installed:

    python -m experiments gpu --minutes 9 --out mine
:::
"""


def figure(id: str = "kernel-races") -> Explorable | NotRaced:
    """The measured race against other kernels."""
    records = have("kernel_speed")
    if not records:
        return NotRaced()
    columns: dict[tuple[str, ...], dict[str, list]] = {}
    others = {}
    for run in sorted(records, key=lambda run: prod(run["config"]["shape"])):
        (cache,) = run["tables"]["limits"]["cache"]
        for row in rows(run):
            value = COLOURED.get(row["implementation"], row["implementation"])
            others |= {value: value} if value not in IMPLEMENTATIONS else {}
            shapes = run["name"].split("-")[0]
            line = columns.setdefault((value, row["pass"], row["launch"], shapes), {})
            for name, cell in _raced(row, cache).items():
                line.setdefault(name, []).append(cell)
    keys = ("implementation", "pass", "launch", "shapes")
    series = [Series(dict(zip(keys, key, strict=True)), line) for key, line in columns.items()]
    return Explorable(
        id=id,
        caption=(
            "**How near each kernel comes to the limit of the memory.** All on the same inputs in "
            "one run; the limit is the least possible traffic at the speed of a copy in that run. "
            "The GPU's cache is filled with other numbers before each call. A star: inputs and "
            "outputs fit into it and may stay there, so more than 100% is possible."
        ),
        alt="Bars of the share of the memory limit that each kernel reaches, by shape.",
        series=series,
        x=Choice(
            "Show",
            [
                Axis("share", "Share of the limit", "%", digits=3, low="low", high="high"),
                Axis("ms", "Time", "ms", digits=3, low="ms_low", high="ms_high"),
            ],
        ),
        y=Axis("shape", "B × T × H × d"),
        color="implementation",
        mark="bar",
        controls=[
            Filter("shapes", "Shapes", options=LADDERS),
            Filter("pass", "Pass", options=PASSES),
            Filter("launch", "Launch", options=LAUNCHES),
            Toggle("implementation", "Kernel", options=IMPLEMENTATIONS | others),
        ],
        provenance=provenance(records),
        aspect=1,
    )


def _raced(row: Row, cache: int) -> dict[str, Any]:
    """Columns of a row for the figure."""
    shape = shape_label(*(row[key] for key in ("batch", "length", "heads", "width")))
    return {
        "shape": shape + (" *" if row["rate"] * row["seconds"] <= cache else ""),
        "share": 100 * row["share"],
        "low": 100 * row["share"] * row["seconds"] / row["high"],
        "high": 100 * row["share"] * row["seconds"] / row["low"],
        "ms": row["seconds"] * 1e3,
        "ms_low": row["low"] * 1e3,
        "ms_high": row["high"] * 1e3,
    }

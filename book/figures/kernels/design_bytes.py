"""Traffic of chunked kernel designs by formula; nothing here is measured."""

from __future__ import annotations

from lsa.attention.triton.tuning.segments import LONGEST_RECOVERED, Pass, segments
from lsa.cost import DESIGNS, design_cost, least_bytes

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.axes import PASSES
from ..lib.format import percent, size, times

DESIGN_LABELS = {
    "chunk states": "every chunk's state stored",
    "three passes": "segments, three passes back",
    "one pass": "segments, one pass back (d = 64)",
}
HEADS = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024]
LENGTHS, CHUNKS, WIDTHS = [1024, 8192, 131072], [32, 64, 128], [64, 128, 256]
MULTIPROCESSORS = 132  # of an H100 or H200

FEW_LENGTH = 8192  # tokens of the example with few heads


def figure(id: str = "design-bytes") -> Explorable:
    """Bytes and programs of each design against the number of heads."""
    choices = [
        (d, C, T, direction)
        for d in WIDTHS
        for C in CHUNKS
        for T in LENGTHS
        for direction in PASSES
    ]
    keys = ("width", "chunk", "length", "pass")
    series = [
        Series(
            {"design": design, **dict(zip(keys, choice, strict=True))}, _account(design, *choice)
        )
        for choice in choices
        for design in DESIGNS
        if design != "one pass" or choice[0] <= 64  # wider, two states do not fit on the chip
    ]
    return Explorable(
        id=id,
        caption=(
            "**Where heads fill the GPU, one pass back moves the least possible, three passes "
            f"{_drawn('three passes')} and stored states {_drawn('chunk states')}.** Bytes of a "
            "token and head by each design: counted, not measured. Where heads are few, segments "
            "are short, and their states can weigh as much as stored ones."
        ),
        alt=(
            "Bytes a token and head against the number of heads. The design that stores every "
            "chunk's state lies far above the two with segments where heads are many. One of these "
            "touches the least possible there. All come close to each other where heads are few."
        ),
        series=series,
        x=Axis("heads", "Heads in the batch, B·H", log=2),
        y=Choice(
            "Show",
            [
                Axis("bytes", "Bytes per token and head", "B"),
                Axis("share", "Least possible over moved", "%", digits=3, range=(0, 105)),
                Axis("programs", "Programs at once, forward", log=10),
            ],
        ),
        color="design",
        mark="line+dot",
        controls=[
            Filter("pass", "Pass", options=PASSES, default="forward+backward"),
            Filter("width", "Width of a head, d", options=WIDTHS, default=64),
            Filter("chunk", "Chunk, C", options=CHUNKS, default=64),
            Filter("length", "Length, T", options=LENGTHS, default=8192),
            Toggle("design", "Design", options=DESIGN_LABELS),
        ],
        ceilings=_limits(),
    )


def _limits() -> list[Series]:
    """The least possible, by width and pass, and the programs that a GPU runs at once."""
    ends = [HEADS[0], HEADS[-1]]
    limits = [
        Series(
            {"width": d, "pass": direction},
            {
                "heads": ends,
                "bytes": [least_bytes(1, d, d, training=direction != "forward")] * 2,
                "share": [100, 100],
            },
            label="least possible",
        )
        for d in WIDTHS
        for direction in PASSES
    ]
    limits.append(
        Series({}, {"heads": ends, "programs": [MULTIPROCESSORS] * 2}, label="multiprocessors")
    )
    return limits


def _account(design: str, d: int, C: int, T: int, direction: str) -> dict[str, list[float]]:
    gradients = direction != "forward"
    costs = [
        design_cost(
            design, T, heads, d, chunk_size=C, gradients=gradients, slots=MULTIPROCESSORS
        )
        for heads in HEADS
    ]  # fmt: skip
    return {
        "heads": HEADS,
        "bytes": [cost.bytes for cost in costs],
        "share": [100 * least_bytes(1, d, d, training=gradients) / cost.bytes for cost in costs],
        "programs": [cost.programs for cost in costs],
    }


def _drawn(design: str) -> str:
    """Traffic over the least possible of the most heads that the figure shows first."""
    cost = design_cost(design, 8192, HEADS[-1], 64, gradients=True, slots=MULTIPROCESSORS)
    return times(cost.bytes / least_bytes(1, 64, 64, training=True))


def relative(design: str, gradients: bool, d: int = 128) -> float:
    """Traffic of a design over the least possible, for a long text that fills the GPU."""
    cost = design_cost(design, 2**17, MULTIPROCESSORS, d, gradients=gradients)
    return cost.bytes / least_bytes(1, d, d, training=gradients)


def numbers() -> dict[str, object]:
    """Numbers for the chapter on kernels: the designs."""
    few, _ = segments((Pass(12, needed=0.95, vectors=11),), 64, FEW_LENGTH, MULTIPROCESSORS)
    return {
        "slots": MULTIPROCESSORS,
        "few_length": f"{FEW_LENGTH:,}",
        "recovered": f"{LONGEST_RECOVERED:,}",
        "few_segments": few,
        "few_states": size(FEW_LENGTH * design_cost("three passes", FEW_LENGTH, 1, 128).states),
        "few_tensors": size(least_bytes(FEW_LENGTH, 128, 128)),
        "states_forward": times(relative("chunk states", False)),
        "states_both": times(relative("chunk states", True)),
        "states_share": percent(1 / relative("chunk states", True)),
        "three_both": times(relative("three passes", True)),
        "three_shared": times(28 * 128 / least_bytes(1, 128, 128, training=True)),
    }

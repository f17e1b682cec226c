"""Figures and numbers of the chapter on kernels: counted, compiled, published, measured."""

from experiments.harness import record
from lsa.cost import DESIGNS, design_cost, least_bytes

from ..explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from .results import provenance, rows, stored

DESIGN_LABELS = {
    "chunk states": "every chunk's state stored",
    "three passes": "segments, three passes back",
    "one pass": "segments, one pass back",
}
PASS_LABELS = {"forward": "forward", "forward+backward": "forward and backward"}
HEADS = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024]
LENGTHS, CHUNKS, WIDTHS = [1024, 8192, 131072], [32, 64, 128], [64, 128, 256]
MULTIPROCESSORS = 132  # of an H100 or H200

# pytorch/helion, examples/fla/BENCHMARKS.md: the table "linear_attn" for one H100, in bf16.
# B, T, H, d, then milliseconds forward and forward+backward of Helion, and of fla.
PUBLISHED = [
    (1, 8192, 96, 128, 0.682, 2.010, 0.726, 3.367),
    (2, 16384, 16, 128, 0.457, 1.355, 0.609, 2.585),
    (4, 2048, 16, 128, 0.149, 0.956, 0.148, 1.547),
    (4, 4096, 64, 128, 0.900, 2.659, 0.950, 4.530),
    (8, 2048, 32, 256, 1.271, 3.994, 1.338, 8.981),
    (8, 1024, 8, 64, 0.143, 0.755, 0.137, 0.796),
]
PUBLISHED_MEMORY = 3.35e12  # B/s of an H100 by its data sheet


def designs(id: str = "design-bytes") -> Explorable:
    """Bytes and programs of each design against the number of heads."""
    choices = [
        (d, C, T, direction)
        for d in WIDTHS
        for C in CHUNKS
        for T in LENGTHS
        for direction in PASS_LABELS
    ]
    keys = ("width", "chunk", "length", "pass")
    series = [
        Series(
            {"design": design, **dict(zip(keys, choice, strict=True))}, _account(design, *choice)
        )
        for choice in choices
        for design in DESIGNS
    ]
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
        for direction in PASS_LABELS
    ]
    limits.append(
        Series({}, {"heads": ends, "programs": [MULTIPROCESSORS] * 2}, label="multiprocessors")
    )
    return Explorable(
        id=id,
        caption=(
            "**Longer walks, fewer bytes.** Counted, not measured: what each design moves for a "
            "token of one head. Storing the state of every chunk costs several times the least "
            "possible, whatever the number of heads. Segments cost nothing extra where heads fill "
            "the GPU. Where heads are few, segments are short, and their own states weigh about as "
            "much."
        ),
        alt=(
            "Bytes a token and head against the number of heads. The design that stores every "
            "chunk's state lies far above the two with segments; one of these touches the least "
            "possible where heads are many, and all come close to each other where they are few."
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
            Filter("pass", "Pass", options=PASS_LABELS, default="forward+backward"),
            Filter("width", "Width of a head, d", options=WIDTHS, default=64),
            Filter("chunk", "Chunk, C", options=CHUNKS, default=64),
            Filter("length", "Length, T", options=LENGTHS, default=8192),
            Toggle("design", "Design", options=DESIGN_LABELS),
        ],
        ceilings=limits,
    )


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


ARCHITECTURES = {80: "Ampere (sm_80)", 90: "Hopper (sm_90)"}


def builds(id: str = "compiled-kernels") -> Explorable:
    """Registers, shared memory, tensor-core products and bytes of every kernel."""
    records = stored("kernel_build")
    spilled = any(row["spilled"] for one in records for row in rows(one))
    series = [
        Series(
            {
                "arch": ARCHITECTURES[one["config"]["arch"]],
                **dict(zip(("mode", "width", "normalized"), key, strict=True)),
            },
            _built(rows(one, mode=key[0], width=key[1], normalized=key[2])),
            source=one["path"],
        )
        for one in sorted(records, key=lambda one: one["config"]["arch"])
        for key in dict.fromkeys(
            (row["mode"], row["width"], row["normalized"]) for row in rows(one)
        )
    ]
    return Explorable(
        id=id,
        caption=(
            f"**Full registers{'' if spilled else ', nothing spilled'}.** What the compiler made "
            "of every kernel of one call and its gradient, with 32 heads of 4,096 tokens. On "
            "Hopper a narrow head's three gradients fit in one kernel; on Ampere they take three."
        ),
        alt=(
            "Bars of registers a thread for each kernel, for Ampere and Hopper. The passes of "
            "chunked mode come close to the 255 that a thread may have."
        ),
        series=series,
        x=Choice(
            "Show",
            [
                Axis("registers", "Registers per thread"),
                Axis("spilled", "Spilled per thread", "B", range=(0, 16)),
                Axis("shared", "Shared memory per program", "KiB", digits=3),
                Axis("products", "Tensor-core instructions"),
                Axis("programs", "Programs", log=10),
                Axis("traffic", "Least traffic per token and head", "B"),
            ],
        ),
        y=Axis("kernel", "Kernel"),
        color="arch",
        mark="bar",
        controls=[
            Filter("mode", "Mode", options=["chunked", "attention", "recurrent"]),
            Filter("width", "Width of a head, d", options=WIDTHS),
            Filter("normalized", "Normaliser", options={"no": "without", "yes": "with"}),
            Toggle("arch", "Compiled for"),
        ],
        provenance=provenance(records),
        aspect=4 / 3,
    )


KERNELS = {"sums_kernel": "sums", "scan_kernel": "scan", "delta_kernel": "δ"}
PASSES = ("pass_kernel", "dkv_kernel", "tile_kernel", "step_kernel")


def kernel_label(name: str) -> str:
    """A kernel as the page calls it: "pass_kernel:dq" -> "pass, dq"."""
    kernel, _, role = name.partition(":")
    if kernel in PASSES:
        return f"pass, {role}"
    if kernel in ("backward_kernel", "one_pass_kernel"):
        return "pass, all gradients"
    if kernel in ("forward_kernel", "dq_kernel"):
        return "pass, o" if kernel == "forward_kernel" else "pass, dq"
    return KERNELS[kernel] + (" back" if role == "R" else "")


def _built(found: list[dict]) -> dict[str, list]:
    return {
        "kernel": [kernel_label(row["kernel"]) for row in found],
        "registers": [row["registers"] for row in found],
        "spilled": [row["spilled"] for row in found],
        "shared": [row["shared"] / 1024 for row in found],
        "products": [row["wgmma"] + row["mma"] for row in found],
        "programs": [row["programs"] for row in found],
        "traffic": [row["traffic"] for row in found],
    }


def shape_label(B: int, T: int, H: int, d: int) -> str:
    """A shape as an axis names it."""
    return f"{B} × {T:,} × {H} × {d}"


def published_share(B: int, T: int, H: int, d: int, ms: float, gradients: bool) -> float:
    """The part of a published time, in %, that the least traffic takes at full memory speed."""
    least = B * T * H * least_bytes(1, d, d, training=gradients) / PUBLISHED_MEMORY
    return 100 * least / (ms * 1e-3)


def published(id: str = "published-speed") -> Explorable:
    """What others have published for such kernels."""
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
        for library, first in (("Helion", 4), ("fla", 6))
        for column, direction in enumerate(PASS_LABELS, first)
    ]
    return Explorable(
        id=id,
        caption=(
            "**The published best leave most of the limit unused.** Times that others report for "
            "the sum without a normaliser on one H100, in 16 bits, and the part of each that the "
            "least possible traffic takes at the data sheet's memory speed. Not measured here."
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
            Filter("pass", "Pass", options=PASS_LABELS, default="forward+backward"),
            Toggle("library", "Library"),
        ],
    )


# The palette's names for what has a colour of its own on every page.
COLOURED = {"ours": "chunked", "softmax, flash": "softmax"}
IMPLEMENTATIONS = {
    "chunked": "ours",
    "ours, normalised": "ours, normalised",
    "softmax": "softmax, flash",
}
LADDERS = {"ladder": "published shapes", "gpt2": "GPT-2's heads"}


def races(id: str = "kernel-races") -> Explorable | None:
    """The measured race against other kernels, or None as long as none was run."""
    if not record.load("kernel_speed"):
        return None
    records = stored("kernel_speed")
    series, others = [], {}
    for one in records:
        kinds = dict.fromkeys(
            (row["implementation"], row["pass"], row["launch"]) for row in rows(one)
        )
        for name, direction, launch in kinds:
            found = rows(one, implementation=name, launch=launch, **{"pass": direction})
            value = COLOURED.get(name, name)
            others |= {value: name} if value not in IMPLEMENTATIONS else {}
            keys = {"implementation": value, "pass": direction, "launch": launch}
            (cache,) = one["tables"]["limits"]["cache"]
            columns = _raced(found, cache)
            series.append(Series({**keys, "shapes": one["name"]}, columns, source=one["path"]))
    return Explorable(
        id=id,
        caption=(
            "**How near each kernel comes to the limit of the memory.** All on the same inputs in "
            "one run; the limit is the least possible traffic at the speed of a copy in that run. "
            "A star: inputs and outputs fit into the GPU's cache, so more than all is possible."
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
            Filter("pass", "Pass", options=PASS_LABELS),
            Filter("launch", "Launch", options={"graph": "CUDA graph", "eager": "from Python"}),
            Toggle("implementation", "Kernel", options=IMPLEMENTATIONS | others),
        ],
        provenance=provenance(records),
        aspect=1,
    )


def _raced(found: list[dict], cache: int) -> dict[str, list]:
    return {
        "shape": [
            shape_label(*(row[key] for key in ("batch", "length", "heads", "width")))
            + (" *" if row["rate"] * row["seconds"] <= cache else "")
            for row in found
        ],
        "share": [100 * row["share"] for row in found],
        "low": [100 * row["share"] * row["seconds"] / row["high"] for row in found],
        "high": [100 * row["share"] * row["seconds"] / row["low"] for row in found],
        "ms": [row["seconds"] * 1e3 for row in found],
        "ms_low": [row["low"] * 1e3 for row in found],
        "ms_high": [row["high"] * 1e3 for row in found],
    }


def ratio_to_softmax(length: int, direction: str = "forward") -> float | None:
    """How many times faster chunked mode is than softmax, or None where it was not measured.

    Both in one run of one head; above one, chunked mode is faster.
    """
    (one,) = (one for one in stored("mode_speed") if one["config"]["heads"] == _fewest())
    seconds = {
        row["mode"]: row["seconds"] for row in rows(one, length=length, **{"pass": direction})
    }
    if not {"softmax", "chunked"} <= seconds.keys():
        return None
    return seconds["softmax"] / seconds["chunked"]


def _fewest() -> int:
    return min(one["config"]["heads"] for one in stored("mode_speed"))

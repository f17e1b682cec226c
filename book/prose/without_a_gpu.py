"""Guarded sentences of the appendix: the kernels without a GPU."""

from ..figures.kernels import kernel_build, kernel_prediction
from ..figures.kernels.kernel_build import SERIALISED, compilers_of, launches, tile_launches
from ..figures.kernels.kernel_prediction import (
    BOTH,
    expected,
    expected_of_stored,
    large,
    times_ahead,
)
from ..figures.lib.axes import PASSES
from ..figures.lib.records import have
from . import every


def overlap_decides() -> bool:
    """Whether the range of normalised heads of 256 overlaps stored states' on both sides."""
    (row,), (plain,) = (large(256, normalized, "forward") for normalized in ("yes", "no"))
    (low, high), (least, most) = expected(row), expected_of_stored(plain)
    return low < most and high > least and row["paced"] > 1.5 * row["least"]


def same_launches() -> bool:
    """Whether both versions of Triton compile equally many launches."""
    every_run, newest = have("kernel_build"), kernel_build.newest()
    return len(launches(every_run)) == len(compilers_of(every_run)) * len(launches(newest))


def python_decides() -> bool:
    """Whether at GPT-2's shortest text a call from Python takes longer than a graph at worst."""
    ends = {
        (row["normalized"], row["pass"], row["launch"]): row
        for row in kernel_prediction.stored("expected")
        if row["shapes"] == "gpt2" and row["length"] <= 1024 and row["implementation"] == "ours"
    }
    return every(
        row["low"] > ends[normalized, kind, "graph"]["high"]
        for (normalized, kind, launch), row in ends.items()
        if launch == "eager"
    )


def between_launches() -> list[float]:
    """Shares of a graph's time between its launches, of ours at GPT-2's shortest text."""
    (assumed,) = kernel_prediction.stored("assumed")
    launched = {
        (row["normalized"], row["pass"]): row["launches"]
        for row in kernel_prediction.account()
        if row["shapes"] == "gpt2" and row["length"] <= 1024
    }
    return [
        launched[row["normalized"], row["pass"]] * assumed[f"gap_{end}"] / row[end]
        for row in kernel_prediction.stored("expected")
        if row["shapes"] == "gpt2" and row["length"] <= 1024
        if (row["implementation"], row["launch"]) == ("ours", "graph")
        for end in ("low", "high")
    ]


VERDICTS = {
    "the shortest texts spend about half of their time between launches": lambda: every(
        0.4 < share < 0.7 for share in between_launches()
    ),
    "by two versions of Triton": lambda: len(compilers_of(have("kernel_build"))) == 2,
    "launches spills under either version, and none serialises its products": lambda: (
        same_launches()
        and every(
            not row["spilled"] and SERIALISED not in row["warnings"]
            for row in launches(have("kernel_build"))
        )
    ),
    "of attention mode on Hopper, all normalised, the compiler inserted a wait": lambda: every(
        row["mode"] == "attention" and run["config"]["arch"] == 90 and row["normalized"] == "yes"
        for run in have("kernel_build")
        for row in launches([run])
        if kernel_build.INSERTED & kernel_build.codes(row)
    ),
    "Every pass of chunked mode got them": lambda: every(
        row["wgmma"] > 0 for row in tile_launches() if row["mode"] == "chunked"
    ),
    "All of these have a normaliser, a feature map or heads of 256": lambda: every(
        row["width"] == 256 or row["normalized"] == "yes" or row["feature_map"] != "identity"
        for row in tile_launches()
        if row["mma"]
    ),
    "forms all gradients on Hopper, with both states on chip. On Ampere two do.": lambda: (
        kernel_build.gradient_passes(90) == 1 and kernel_build.gradient_passes(80) == 2
    ),
    "times fla's published speed forwards": lambda: every(
        times_ahead(128, kind)[0] > 1 for kind in PASSES
    ),
    "Plain heads of 256 should be ahead as well": lambda: every(
        times_ahead(256, kind)[0] > 1 for kind in PASSES
    ),
    "The normaliser should cost heads of 128 under a third": lambda: (
        kernel_prediction.normaliser_cost() < 1 / 3
    ),
    "the prediction cannot tell whether they are ahead of stored states": overlap_decides,
    "With it the prediction is in essence the ratio of the bytes": lambda: every(
        0.9 * times_ahead(128, kind)[0] < more < 1.1 * times_ahead(128, kind)[1]
        for kind, more in (("forward", 20 / 8), (BOTH, 88 / 32))  # bytes by the cost model
    ),
    "Helion has published faster times": lambda: every(
        times_ahead(128, kind, "Helion")[0] < times_ahead(128, kind)[0] for kind in PASSES
    ),
    "no kernel is faster than its host": python_decides,
}

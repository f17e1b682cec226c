"""Guarded sentences of the appendix: the kernels without a GPU."""

from ..figures.kernels import kernel_build, kernel_prediction
from ..figures.kernels.kernel_build import SERIALISED, compilers_of, launches, tile_launches
from ..figures.kernels.kernel_prediction import (
    BOTH,
    PASS_LABELS,
    expected,
    expected_of_stored,
    large,
    published_seconds,
    times_ahead,
)
from ..figures.lib.records import have
from . import every


def overlap_decides() -> bool:
    """Whether the span of normalised heads of 256 reaches to both sides of stored states'."""
    (row,), (plain,) = (large(256, normalized, "forward") for normalized in ("yes", "no"))
    (low, high), (least, most) = expected(row), expected_of_stored(plain)
    return low < most and high > least and row["paced"] > 1.5 * row["least"]


def at_worst_as_published() -> bool:
    """Whether normalised heads of 256 with gradients take at most what fla's plain ones do."""
    (row,) = large(256, "yes", BOTH)
    (low, high), told = expected(row), published_seconds(row)
    return told is not None and low < 0.5 * told and high < 1.05 * told


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


VERDICTS = {
    "by two versions of Triton": lambda: len(compilers_of(have("kernel_build"))) == 2,
    "launches spills, and none of them runs its products one after the other": lambda: every(
        not row["spilled"] and SERIALISED not in row["warnings"]
        for row in launches(have("kernel_build"))
    ),
    "in chunked mode every pass did": lambda: every(
        row["wgmma"] > 0 for row in tile_launches() if row["mode"] == "chunked"
    ),
    "Each of these has a normaliser, a feature map or heads of 256": lambda: every(
        row["width"] == 256 or row["normalized"] == "yes" or row["feature_map"] != "identity"
        for row in tile_launches()
        if row["mma"]
    ),
    "Hopper takes one kernel for all gradients, with both states on chip": lambda: (
        kernel_build.gradient_passes(90) == 1 and kernel_build.gradient_passes(80) == 2
    ),
    "times the speed that fla has published forwards": lambda: every(
        times_ahead(128, kind)[0] > 1 for kind in PASS_LABELS
    ),
    "Plain heads of 256 should be ahead as well": lambda: every(
        times_ahead(256, kind)[0] > 1 for kind in PASS_LABELS
    ),
    "The normaliser should cost heads of 128 under a third": lambda: (
        kernel_prediction.normaliser_cost() < 1 / 3
    ),
    "The time of normalised heads of 256 depends on how well instructions overlap": overlap_decides,
    "With gradients they should take at worst about what fla has published": at_worst_as_published,
    "no kernel is faster than its host": python_decides,
}

"""Predicted times of the kernels on a GPU, written down before one has run them.

Needs no GPU. Every launch of chunked mode is planned and compiled as for an H100. Its least time is
that of its bytes at the memory's speed, or of the instructions of the fullest multiprocessor, one a
scheduler and cycle. Its longest time assumes that each warp waits `DEPENDENT_CYCLES` for every
instruction and other warps fill none of the gaps. A call takes its launches one after the other.
For comparison stands the design that stores the state of every chunk, by its bytes alone.

These give times at best and at worst, under two assumptions. The kernels come as near to their
bound as fla's published times of large shapes come to their bytes. Two to four microseconds pass
between launches of a CUDA graph. A call from Python takes at least the time of its host
(`host_time`), at least that of the graph, and at most their sum. The launches themselves are in
neither. fla's normaliser is counted by its operations in version 0.5.1, at best at the data sheet's
speed. Its host was not timed here, so it has no prediction of calls from Python. The shapes are
those of `kernel_speed`, which measures the same.
"""

from __future__ import annotations

from typing import Any

from .harness.core.plan import Experiment
from .harness.core.tables import PASS, table

SHAPE: dict[str, Any] = {
    "batch": ("sequences", "B"),
    "length": ("tokens", "T"),
    "heads": ("heads", "H"),
    "width": ("features", "K = V"),
}
TABLES = {
    "rows": table(
        shapes=("name", "`ladder`: of a published comparison; `gpt2`: GPT-2's heads"),
        **SHAPE,
        normalized=("yes or no", "whether the sum is divided by the normaliser"),
        **PASS,
        launches=("launches", "of kernels in one call"),
        bytes=("B a token and head", "to and from memory by all launches, states and all"),
        memory=("s", "that the bytes take at the data sheet's speed"),
        issue=("s", "that the instructions of the fullest multiprocessor take, one a scheduler "
               "and cycle"),
        pace=("s", "that programs take, one after the other where they queue, each warp waiting "
              "for every instruction"),
        least=("s", "lower bound: the longer of `memory` and `issue`, summed over launches"),
        paced=("s", "the longest of the three, summed over launches"),
        stored=("s", "the bytes of a design that stores the state of every chunk of 64 tokens, at "
                "the same speed; the sum without a normaliser"),
    ),
    "expected": table(
        implementation=("name", "`ours`; `stored states`: that design as fla has it, normalised by "
                        "fla's own operations"),
        shapes=("name", "as above"),
        **SHAPE,
        normalized=("yes or no", "whether the sum is divided by the normaliser"),
        **PASS,
        launch=("name", "`eager`: called from Python; `graph`: replayed as a CUDA graph"),
        low=("s", "what a call should take at best"),
        high=("s", "and at worst"),
        share_low=("of the limit", "the least bytes' time at the data sheet's speed over `high`"),
        share_high=("of the limit", "the same over `low`"),
    ),
    "assumed": table(
        near=("of the time", "that fla's bytes take of its published times, at least"),
        nearest=("of the time", "the same at most"),
        gap_low=("s", "from one launch of a CUDA graph to the next, at best; a guess"),
        gap_high=("s", "the same at worst"),
    ),
    "hosts": table(
        optional="where `host_time` is stored: the runs from which calls from Python are predicted",
        host=("name", "the processor"),
        record=("name", "the digest of its record"),
    ),
    "sources": table(
        file=("name", "a module of the kernels"),
        digest=("name", "of its code, comments and docstrings aside"),
    ),
}  # fmt: skip

EXPERIMENT = Experiment(
    "kernel_prediction",
    "how long the kernels should take, by account",
    TABLES,
    frozen="3d84f693aaa8",
)

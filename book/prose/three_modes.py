"""Guarded sentences of the chapter on the three modes."""

from lsa.attention.compiled import CHUNK_SIZE

from ..figures.index import mode_speed
from ..figures.index.mode_speed import narrowest, times_limit, token_ratios
from ..figures.three_modes import chunk_sizes, cpu_speed, draft_program
from ..figures.three_modes.block_speed import lengths, peak, point, ratio_to_softmax
from ..figures.three_modes.published import (
    BEHIND_AT,
    UPDATE_TIMES,
    WAITS_AT,
    recurrent_waits,
)
from . import every

BOTH = "forward+backward"
# The least factor by which recurrent mode is slower than chunked mode in published times.
RECURRENT_BEHIND = min(slow / chunked for _, chunked, _, slow in UPDATE_TIMES.values() if slow)
LINEAR = ("attention", "recurrent", "chunked")
CASES = [(length, of) for length in chunk_sizes.LENGTHS for of in mode_speed.PASSES]


def both() -> list[int]:
    """Lengths at which the wide block was measured with softmax and in chunked mode."""
    return lengths("1.5B", "softmax", "chunked")


def took(mode: str, length: int, direction: str = "forward") -> float:
    """Seconds of a stored pass."""
    return mode_speed.seconds(narrowest(), mode, length, direction)


VERDICTS = {
    "chunked mode is done first, and attention mode last by far": lambda: (
        took("chunked", 16384) < took("recurrent", 16384)
        and took("chunked", 16384) < 0.15**2 * took("attention", 16384)  # its rows grow as squares
    ),
    "Chunked mode is faster than softmax on long texts": lambda: every(
        took("chunked", length) < took("softmax", length) for length in (4096, 16384)
    ),
    "recurrent mode has the lowest bound, and is farther from it than chunked mode.": lambda: (
        times_limit("recurrent", 16384) > 1.5 * times_limit("chunked", 16384)
    ),
    "Arithmetic bounds all three.": lambda: every(
        found.flops / speeds["matmul"] > ends / speeds["copy"]
        for speeds in [mode_speed.limits(narrowest()) or {}]
        for ends in [mode_speed.cost(narrowest(), "recurrent", 16384, "forward").bytes]
        for mode in LINEAR
        for found in [mode_speed.cost(narrowest(), mode, 16384, "forward")]
    ),
    "faster than recurrent mode, at every length at which both were timed": lambda: (
        min(token_ratios()) > 1.5
    ),
    "the timed program's are shorter": lambda: CHUNK_SIZE < 64,
    "leaves recurrent mode farther behind.": lambda: max(token_ratios()) < RECURRENT_BEHIND,
    "`memory_linear` in every mode": lambda: (
        len({mode_speed.point(narrowest(), mode, 16384)["peak"] for mode in LINEAR}) == 1
    ),
    "With gradients chunked mode is ahead of softmax": lambda: (
        (mode_speed.overtakes(narrowest(), "chunked", "softmax") or 1e9) < 1024
    ),
    "On long texts chunked mode is the fastest": lambda: every(
        took("chunked", 16384, direction) < took(mode, 16384, direction)
        for mode in ("softmax", "attention", "recurrent")
        for direction in mode_speed.PASSES
    ),
    "On long texts recurrent mode is the farthest from its bound": lambda: (
        times_limit("recurrent", 16384)
        > 1.5 * max(times_limit(mode, 16384) for mode in ("chunked", "attention"))
    ),
    "each token takes {ref}`dozens of times longer <kernel-core>`": lambda: (
        cpu_speed.step("torch", "recurrent")["seconds"]
        > 24 * cpu_speed.step("avx512", "recurrent")["seconds"]
    ),
    "At 64 tokens it is {glue:text}`core_softmax_64` faster than softmax": lambda: (
        cpu_speed.point("softmax", 64)["low"] > cpu_speed.point("compiled", 64)["high"]
    ),
    "With gradients it takes {glue:text}`core_both_64` as long as softmax there": lambda: (
        cpu_speed.point("softmax", 64, BOTH)["high"] < cpu_speed.point("compiled", 64, BOTH)["low"]
    ),
    "ahead of softmax in published times from 4,096 tokens on, and level with it at 1,024": (
        lambda: every(
            softmax / chunked > 1 and (tokens < 4096) == (softmax / chunked < 1.05)
            for tokens, (softmax, chunked, *_) in UPDATE_TIMES.items()
        )
    ),
    "a token and layer at every length. A launch": lambda: every(
        0.98 < (recurrent_waits(tokens)[1] / tokens) / (recurrent_waits()[1] / WAITS_AT) < 1.02
        for tokens in UPDATE_TIMES
        if tokens <= BEHIND_AT
    ),
    "far less than for the layer alone": lambda: every(
        1 < ratio_to_softmax("1.5B", n) < 0.5 * mode_speed.ratio_to_softmax(n)
        for n in both()
        if n >= 4096
    ),
    "the lines part earlier": lambda: (
        ratio_to_softmax("124M", both()[-1]) > ratio_to_softmax("1.5B", both()[-1])
    ),
    "with its backward pass in chunks, takes at most": lambda: every(
        0.95 < slow["seconds"] / fast["seconds"] < 1.1
        for scale in ("1.5B", "124M")
        for n in lengths(scale, "recurrent", "chunked")
        for slow, fast in [(point(scale, "recurrent", n), point(scale, "chunked", n))]
    ),
    "here, from 1,024 tokens on, unlike in the layer alone.": lambda: (
        every(
            peak(scale, "softmax", n) < peak(scale, mode, n)
            for scale in ("1.5B", "124M")
            for mode in LINEAR
            for n in lengths(scale, "softmax", mode)
            if n >= 1024
        )
        and every(
            mode_speed.point(narrowest(), "softmax", 16384)["peak"]
            > mode_speed.point(narrowest(), mode, 16384)["peak"]
            for mode in LINEAR
        )
    ),
    "So that product is no upper bound": lambda: cpu_speed.share(8192) > 1,
    "the printed program takes {glue:text}`draft_recurrent` as long": lambda: (
        draft_program.point("cumsum")["low"] > 2 * draft_program.point("recurrent")["high"]
    ),
    "as long as attention mode. So the program can decide": lambda: (
        draft_program.point("recurrent")["high"] < draft_program.point("attention")["low"]
        and draft_program.point("attention")["high"] < draft_program.point("cumsum")["low"]
    ),
    "one program under two names differs by up to": lambda: draft_program.named_twice() > 1.1,
    "chunked mode takes {glue:text}`chunked_last_doubling` as long": lambda: (
        mode_speed.last_doubling() > 2.5
    ),
    "tokens are the fastest, or as fast within the quartiles": lambda: (
        len(set.intersection(*(chunk_sizes.level(narrowest(), *case) for case in CASES))) == 1
    ),
}

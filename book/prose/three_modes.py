"""Guarded sentences of the chapter on the three modes."""

from ..figures.index import mode_speed
from ..figures.index.mode_speed import narrowest
from ..figures.three_modes import chunk_sizes, cpu_speed
from ..figures.three_modes.block_speed import lengths, peak, ratio_to_softmax, seconds
from ..figures.three_modes.published import BEHIND_AT, UPDATE_TIMES, WAITS_AT, recurrent_waits
from . import every


def both() -> list[int]:
    """Lengths of the wide block, measured with softmax and in chunked mode."""
    return lengths("1.5B", "softmax", "chunked")


def steps() -> dict[str, float]:
    """Seconds of each step from plain torch to the compiled body, by its name on the page."""
    return {name: point["seconds"] for name, point in cpu_speed.rows_of_steps(cpu_speed.run())}


def costs(mode: str, length: int = 16384) -> dict[str, float]:
    """Seconds that each of a forward pass's costs takes on the device of the stored run."""
    run = narrowest()
    spent, speeds = mode_speed.cost(run, mode, length, "forward"), mode_speed.limits(run)
    assert speeds, "mode_speed: no limits"
    ends = mode_speed.cost(run, "recurrent", length, "forward").bytes  # inputs and outputs alone
    waits = spent.steps if mode == "recurrent" else 0
    return {
        "arithmetic": spent.flops / speeds["matmul"],
        "traffic": ends / speeds["copy"],
        "waiting": waits * speeds["call"],
    }


def took(mode: str, length: int) -> float:
    """Seconds of a stored forward pass."""
    return mode_speed.seconds(narrowest(), mode, length, "forward")


VERDICTS = {
    "chunked mode is done when the others have hardly begun": lambda: (
        took("chunked", 16384) < 0.1 * took("recurrent", 16384)
        and took("chunked", 16384) < 0.1**2 * took("attention", 16384)  # its rows grow as squares
    ),
    "recurrent mode is last": lambda: (
        took("recurrent", 1024) > max(took(mode, 1024) for mode in ("attention", "chunked"))
    ),
    "limited by its arithmetic, and recurrent mode by waiting": lambda: (
        max(costs("attention"), key=costs("attention").__getitem__) == "arithmetic"
        and max(costs("recurrent"), key=costs("recurrent").__getitem__) == "waiting"
    ),
    "Chunked mode has less of both": lambda: (
        costs("chunked")["arithmetic"] < costs("attention")["arithmetic"]
        and costs("chunked")["waiting"] < costs("recurrent")["waiting"]
    ),
    "of a GPU attention mode is ahead at every length": lambda: every(
        attention < recurrent
        for _, _, attention, recurrent in UPDATE_TIMES.values()
        if recurrent is not None
    ),
    "chunked mode is ahead of softmax at every length in published times": lambda: every(
        chunked < softmax for softmax, chunked, *_ in UPDATE_TIMES.values()
    ),
    "a token and layer at every length": lambda: every(
        0.98 < (recurrent_waits(tokens)[1] / tokens) / (recurrent_waits()[1] / WAITS_AT) < 1.02
        for tokens in UPDATE_TIMES
        if tokens <= BEHIND_AT
    ),
    "the line lies lower and is as straight": lambda: (
        steps()["compiled, AVX2, token by token"] < steps()["plain PyTorch, token by token"] / 10
    ),
    "On long texts chunked mode is the fastest": lambda: every(
        mode_speed.seconds(narrowest(), "chunked", 16384, direction)
        < mode_speed.seconds(narrowest(), mode, 16384, direction)
        for mode in ("softmax", "attention", "recurrent")
        for direction in mode_speed.PASSES
    ),
    "far less than for the layer alone": lambda: every(
        1 < ratio_to_softmax("1.5B", n) < 0.5 * mode_speed.ratio_to_softmax(n)
        for n in both()
        if n >= 4096
    ),
    "the lines part earlier": lambda: (
        ratio_to_softmax("124M", both()[-1]) > ratio_to_softmax("1.5B", both()[-1])
    ),
    "Recurrent mode loses less here than alone": lambda: (
        seconds("1.5B", "attention", 4096) > seconds("1.5B", "recurrent", 4096)
    ),
    "Softmax needs the least": lambda: every(
        peak("1.5B", "softmax", n) < peak("1.5B", mode, n)
        for n in both()[2:]
        for mode in ("chunked", "attention", "recurrent")
        if n <= 4096
    ),
    "in all four cases": lambda: (
        len(
            {
                chunk_sizes.best(narrowest(), length, of)[1]
                for length in chunk_sizes.LENGTHS
                for of in mode_speed.PASSES
            }
        )
        == 1
    ),
}

"""Of the chapter on the three modes."""

from ..figures.index import mode_speed
from ..figures.index.mode_speed import narrowest
from ..figures.three_modes import chunk_sizes
from ..figures.three_modes.block_speed import lengths, ratio_to_softmax, seconds
from . import every


def both() -> list[int]:
    """Lengths of the wide block, measured with softmax and in chunked mode."""
    return lengths("1.5B", "softmax", "chunked")


VERDICTS = {
    "The one that does more arithmetic is": lambda: (
        mode_speed.seconds(narrowest(), "attention", 1024, "forward")
        < mode_speed.seconds(narrowest(), "recurrent", 1024, "forward")
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

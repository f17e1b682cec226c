"""Guarded sentences of the chapter on kernels."""

from lsa.attention.triton.tuning.segments import Pass, segments
from lsa.cost import design_cost, least_bytes

from ..figures.kernels import design_bytes, interpreted_errors, kernel_speed
from ..figures.kernels.interpreted_errors import DRAWN, error_at
from ..figures.three_modes import cpu_speed
from . import every


def bytes_of(design: str, length: int) -> float:
    """Forward bytes of a token, for one head of 64."""
    slots = design_bytes.MULTIPROCESSORS
    return design_cost(design, length, 1, 64, gradients=False, slots=slots).bytes


def does_not_cut(heads: int) -> bool:
    """Whether `heads` heads of 64 are left uncut in the chapter's example."""
    needed = (Pass(heads, needed=0.95, vectors=11),)
    return segments(needed, 64, design_bytes.FEW_LENGTH, design_bytes.MULTIPROCESSORS)[0] == 1


def decayed() -> float:
    """Traffic of heads of 128 with a decay and its gradient, over that without a decay."""
    with_decay, without = (
        design_cost("three passes", 2**17, 132, 128, gradients=True, decay=decay)
        for decay in (True, False)
    )
    return with_decay.bytes / without.bytes


def states_move() -> float:
    """Forward traffic of the states between segments over the tensors', in the first example."""
    length = design_bytes.FEW_LENGTH
    moved = length * design_cost("three passes", length, 1, 128).states
    return moved / least_bytes(length, 128, 128)


VERDICTS = {
    "at $d = 128$ and with many heads more than all other passes": lambda: decayed() > 2,
    "(each is written, scanned and read)": lambda: states_move() > 1,
    "and does not cut 132 heads": lambda: does_not_cut(132),
    "{glue:text}`large_both` with gradients; none passes it": lambda: (
        max(kernel_speed.fla_shares()) <= 1
    ),
    "Helion's reach {glue:text}`helion_forward` and {glue:text}`helion_both` of its own": lambda: (
        0.8 < min(kernel_speed.helion_shares()) < max(kernel_speed.helion_shares()) <= 1
    ),
    "chunks are {glue:text}`core_wider` as fast as with AVX2": lambda: (
        cpu_speed.step("avx512", "chunked")["high"] < cpu_speed.step("avx2", "chunked")["low"]
    ),
    "tokens, segments move more than stored states in the forward pass": lambda: every(
        bytes_of("three passes", length) > bytes_of("chunk states", length)
        for length in design_bytes.LENGTHS
        if length <= 8192
    ),
    "thousandths off, by its relative RMS": lambda: (
        max(row["error"] for row in interpreted_errors.errors()) <= interpreted_errors.BOUND
        and error_at(131_073, *DRAWN) < 1.2 * error_at(1000, *DRAWN)
        and error_at(64, "dq") < error_at(16_384, "dq")
        and error_at(131_073, "dq") < 1.05 * error_at(16_384, "dq")
    ),
}

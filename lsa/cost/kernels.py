"""Traffic and arithmetic of chunked kernel designs; `triton/chunked/passes.py` derives them."""

from __future__ import annotations

from dataclasses import dataclass

from ..attention.triton.tuning.segments import LONGEST_RECOVERED, Pass, reach, segments
from ..checks import whole
from .rooflines import STATE_BYTES

PREFIX_BYTES = 8
DECAY_CHUNK = 64  # tokens whose gradient of the decay one program forms
DESIGNS = ("chunk states", "three passes", "one pass")


@dataclass(frozen=True)
class DesignCost:
    """Costs of a chunked kernel, a token and head.

    tokens: B of q, k, v, o and their gradients. states: B of states that leave the chip.
    flops: FLOP. programs: how many a launch of the forward pass starts.
    """

    tokens: float
    states: float
    flops: float
    programs: int

    @property
    def bytes(self) -> float:
        """B to and from memory, a token and head."""
        return self.tokens + self.states


def least_flops(D: int, C: int, gradients: bool) -> int:
    """FLOPs of a chunked kernel's products, a token and head, none formed twice in one direction.

    Forwards 2 products with a chunk and 2 with a state. Backwards 5 with a chunk (q k^T and do v^T,
    then one for each gradient) and 5 with a state (two of them update the states).
    """
    for name, size in (("D", D), ("C", C)):
        whole(name, size)
    return (14 if gradients else 4) * (C * D + D * D)


def design_cost(
    design: str, T: int, heads: int, D: int,
    *, chunk_size: int = 64, gradients: bool = False, slots: int = 132, itemsize: int = 2,
    cut: tuple[int, int] | None = None, decay: bool = False,
) -> DesignCost:  # fmt: skip
    """Traffic and arithmetic of a chunked design; triton/chunked/passes.py derives the table.

    design: one of DESIGNS. "chunk states" stores the state before every chunk, itemsize bytes a
        number forwards and float32 with gradients. The others cut a sequence into segments and take
        three passes backwards, or one.
    heads: B H. slots: multiprocessors, which decide the number of segments.
    cut: number of segments and their tokens, in place of what slots decide.
    decay: one number a token and head; with gradients, its gradient too. For "three passes" only:
        one pass would have to divide by the decay.

    The sum is unnormalised; the state after the last token is left out. Raises ValueError for an
    unknown design, or decay with a design other than "three passes".
    """
    C, i = chunk_size, itemsize
    if decay and design != "three passes":
        raise ValueError(f"design: expected 'three passes' with decay, got {design!r}")
    if design == "chunk states":
        N = -(-T // C)
        forward, backward = 2 * i * D * D, 5 * STATE_BYTES * D * D
        states = N / T * (forward + backward * gradients)
        tokens = (20 if gradients else 6) * i * D
        return DesignCost(tokens, states, least_flops(D, C, gradients), N * heads)
    if design not in DESIGNS:
        raise ValueError(f"design: expected one of {', '.join(DESIGNS)}, got {design!r}")
    longest = LONGEST_RECOVERED if design == "one pass" else None
    passes = (Pass(heads * -(-D // 64), vectors=11 if longest else 16),)
    G, L = cut or segments(passes, D, T, slots, longest)
    # Segments summed first: going forwards all but the last, going backwards all but the first.
    g, h = (G - 1) * L / T, max(0, T - L) / T
    passes = {"three passes": 12, "one pass": 7}[design]
    # Up to MOST_ADDED segments, each program adds up the states before its own. Past that, a launch
    # reads and writes all of them, and a program reads one.
    added = reach(G) > 1
    written = (G - 1) * (1 if added else 3)
    read = G * (G - 1) / 2 if added else G - 1
    # Forwards: the sums and one pass. Backwards: the sums and the passes that read a state: dq, dk
    # and dv, or one that reads both kinds.
    moved = (
        written + read + gradients * (written + {"three passes": 3, "one pass": 2}[design] * read)
    )
    tokens = i * D * (4 + 2 * g + (passes + 2 * h) * gradients)
    states = (D * D + D) * STATE_BYTES / T * moved
    squares = {"three passes": 12, "one pass": 10}[design]
    flops = 4 * C * D + (4 + 2 * g) * D * D
    flops += (12 * C * D + (squares + 2 * h) * D * D) * gradients
    if decay:
        # Two float32 prefix sums a token, for each pass.
        tokens += PREFIX_BYTES * (1 + g + (3 + h) * gradients)
        if gradients:
            # A launch for dg reads q, k, v, do and the prefixes, and writes dg. It also reads both
            # states around every chunk of its own, which the passes for dq and dk write.
            tokens += 4 * i * D + PREFIX_BYTES + STATE_BYTES
            states += 2 * 2 * STATE_BYTES * (D * D + D) / DECAY_CHUNK
            flops += 4 * DECAY_CHUNK * D + 8 * D * D
    return DesignCost(tokens, states, flops, heads * G * -(-D // 64))

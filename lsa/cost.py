"""What computing costs: FLOPs, bytes, sequential steps and state size, as formulas.

Conventions. A multiply-add is 2 FLOPs, and only the products of matrices and vectors are
counted (as torch.utils.flop_counter does): they are what grows. Bytes are the least traffic with
main memory when everything that fits stays on the chip. Costs are for one head of one sequence
unless said otherwise; K features, V values, T tokens, C tokens a chunk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn

from .gpt import GPTConfig
from .kernels.segments import LONGEST_RECOVERED, segments

STATE_BYTES = 4  # states are float32 whatever the inputs are
TILE = 128  # rows of queries that a tiled attention kernel keeps on chip


@dataclass(frozen=True)
class Cost:
    """flops: FLOP. bytes: B to and from main memory. steps: one after the other. state: B kept."""

    flops: int
    bytes: int
    steps: int
    state: int

    def seconds(
        self, flops_per_second: float, bytes_per_second: float, seconds_per_step: float = 0.0
    ) -> float:
        """The roofline: no less time than the arithmetic, the traffic or the waiting takes.

        Williams, Waterman and Patterson (2009), and as many waits as there are steps in a row.
        The three may overlap, so the longest of them is the bound, not their sum. Speeds in
        FLOP/s and B/s, a wait in s; returns seconds.
        """
        return max(
            self.flops / flops_per_second,
            self.bytes / bytes_per_second,
            self.steps * seconds_per_step,
        )


@dataclass(frozen=True)
class Peak:
    """A vendor's numbers for one GPU. No program is faster; most are a good deal slower.

    flops: FLOP/s of dense bfloat16 products accumulated in float32. bytes: B/s of its memory.
    clock: Hz at which `flops` is reached.
    """

    flops: float
    bytes: float
    clock: float

    @property
    def step(self) -> float:
        """s that a multiply-add waits for the one before it (Abdelkhalik et al., 2022)."""
        return DEPENDENT_CYCLES / self.clock


DEPENDENT_CYCLES = 4
PEAKS = {  # NVIDIA's data sheets; half of what they state "with sparsity"
    "A100 80GB SXM": Peak(312e12, 2039e9, 1410e6),
    "H100 SXM": Peak(989.5e12, 3350e9, 1830e6),
    "H200": Peak(989.5e12, 4800e9, 1830e6),
    "RTX 4090": Peak(165.2e12, 1008e9, 2520e6),
}


def least_bytes(T: int, K: int, V: int, *, itemsize: int = 2, training: bool = False) -> int:
    """Bytes that no program avoids: q, k, v in and o out; training also q, k, v, do, dq, dk, dv."""
    return T * (6 * K + 5 * V if training else 2 * K + 2 * V) * itemsize


def best_chunk_size(K: int, V: int, flops_per_second: float, bytes_per_second: float) -> float:
    """The C at which chunked mode's two bills that depend on C are equal, and their sum least.

    Products inside chunks take T C (K + V) FLOPs; a state a chunk, written and read, takes
    T / C times twice its bytes. With 32-bit states and K = V = d, C is 2 sqrt(d F / B).
    """
    state = (K * V + K) * STATE_BYTES
    return math.sqrt(2 * state * flops_per_second / bytes_per_second / (K + V))


def mode_cost(
    mode: str, T: int, K: int, V: int, *, chunk_size: int = 64, itemsize: int = 2
) -> Cost:
    """One forward pass of a head in "softmax", "attention", "recurrent" or "chunked" mode.

    Masked products are counted as half done: position i meets the i positions up to its own.
    itemsize: bytes of a number in q, k, v, o. Raises ValueError for an unknown mode.
    """
    tokens = least_bytes(T, K, V, itemsize=itemsize)
    products = T * (T + 1) * (K + V)
    state = (K * V + K) * STATE_BYTES
    if mode in ("softmax", "attention"):
        # Each tile of queries reads the keys and values up to its own end again.
        tiles = -(-T // TILE)
        again = sum(min(T, (i + 1) * TILE) for i in range(tiles)) - T if T else 0
        cache = T * (K + V) * itemsize
        traffic = tokens + again * (K + V) * itemsize
        return Cost(products, traffic, min(T, 1), cache if mode == "softmax" else state)
    if mode == "recurrent":
        return Cost(4 * T * K * V, tokens, T, state)
    if mode == "chunked":
        N = -(-T // chunk_size)
        last = T - (N - 1) * chunk_size if N else 0
        inside = (max(N - 1, 0) * chunk_size * (chunk_size + 1) + last * (last + 1)) * (K + V)
        return Cost(4 * T * K * V + inside, tokens + 2 * N * state, N, state)
    raise ValueError(f"mode: expected softmax, attention, recurrent or chunked, got {mode!r}")


def training_cost(
    mode: str, T: int, K: int, V: int, *, chunk_size: int = 64, itemsize: int = 2
) -> Cost:
    """The forward pass of `mode_cost` and the gradients of q, k and v.

    Every product has two gradients, each as large as itself, so the FLOPs are three times the
    forward pass's. The gradients read q, k, v, do and write dq, dk, dv, meet tiles and states
    once more, and walk the sequence once more, backwards.
    """
    forward = mode_cost(mode, T, K, V, chunk_size=chunk_size, itemsize=itemsize)
    again = forward.bytes - least_bytes(T, K, V, itemsize=itemsize)
    traffic = 2 * again + least_bytes(T, K, V, itemsize=itemsize, training=True)
    return Cost(3 * forward.flops, traffic, 2 * forward.steps, forward.state)


def reference_flops(mode: str, T: int, K: int, V: int, *, chunk_size: int = 64) -> int:
    """The FLOPs that `lsa.reference` really spends: masked products formed whole, tails filled.

    What torch's FLOP counter reports for it; `mode_cost` is what has to be spent.
    """
    state = 2 * T * K * V
    if mode == "attention":
        return 2 * T * T * (K + V) + 2 * state + 2 * T * K
    if mode == "recurrent":
        return state  # the outer product k v^T is elementwise, and not counted
    if mode == "chunked":
        C = max(1, min(chunk_size, T))
        padded = -(-T // C) * C
        return 2 * padded * C * (K + V) + 4 * padded * K * V + 2 * padded * K
    raise ValueError(f"mode: expected attention, recurrent or chunked, got {mode!r}")


def tick_cost(attention: str, t: int, config: GPTConfig, *, itemsize: int = 2) -> Cost:
    """One tick of a whole GPT's machine when t tokens are in its state, batch of one.

    Every weight is read once; the state is read (a KV cache) or read and written (a recurrent
    state). `state` is the state's size after the tick. Raises ValueError for unknown attention.
    """
    D, L = config.d_model, config.n_layer
    weights = L * 12 * D * D + config.vocab_size * D
    if attention == "softmax":
        cache = 2 * (t + 1) * D * L * itemsize
        return Cost(2 * weights + 4 * (t + 1) * D * L, weights * itemsize + cache, L, cache)
    if attention == "linear":
        width = D // config.n_head
        state = L * config.n_head * (width * width + width) * STATE_BYTES
        flops = 2 * weights + 4 * L * config.n_head * width * width
        return Cost(flops, weights * itemsize + 2 * state, L, state)
    raise ValueError(f"attention: expected softmax or linear, got {attention!r}")


def update_flops(attention: str, config: GPTConfig, T: int, *, chunk_size: int = 64) -> int:
    """FLOPs a token of one training update (forward, and twice that backward) at context T.

    Linear attention is computed in `config.mode`.
    """
    D, L = config.d_model, config.n_layer
    weights = L * 12 * D * D + config.vocab_size * D
    width = D // config.n_head
    mode = config.mode if attention == "linear" else "softmax"
    heads = L * config.n_head * mode_cost(mode, T, width, width, chunk_size=chunk_size).flops
    return 3 * (2 * weights + heads // T)


DESIGNS = ("chunk states", "three passes", "one pass")


@dataclass(frozen=True)
class DesignCost:
    """Of a chunked kernel, a token and head.

    tokens, states: B of q, k, v, o and their gradients; of states that leave the chip.
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
    """The products of a chunked kernel, a token and head, none twice in one direction.

    Forwards 2 products with a chunk and 2 with a state. Backwards 5 with a chunk (q k^T and
    do v^T, then one for each gradient) and 5 with a state (both states' updates are two).
    """
    return (14 if gradients else 4) * (C * D + D * D)


def design_cost(
    design: str, T: int, heads: int, D: int,
    *, chunk_size: int = 64, gradients: bool = False, slots: int = 132, itemsize: int = 2,
    cut: tuple[int, int] | None = None,
) -> DesignCost:  # fmt: skip
    """What a design of chunked mode moves and computes: lsa/kernels/chunked.py derives the table.

    design: one of DESIGNS. "chunk states" stores the state before every chunk, itemsize bytes a
        number forwards and float32 with gradients; the others cut a sequence into segments and
        take three passes back, or one.
    heads: B H. slots: multiprocessors, which decide the number of segments.
    cut: how many segments, and of how many tokens, in place of what slots decide.

    The unnormalised sum; the state after the last token is left out. Raises ValueError for an
    unknown design.
    """
    C, i = chunk_size, itemsize
    if design == "chunk states":
        N = -(-T // C)
        forward, backward = 2 * i * D * D, 5 * STATE_BYTES * D * D
        states = N / T * (forward + backward * gradients)
        tokens = (20 if gradients else 6) * i * D
        return DesignCost(tokens, states, least_flops(D, C, gradients), N * heads)
    if design not in DESIGNS:
        raise ValueError(f"design: expected one of {', '.join(DESIGNS)}, got {design!r}")
    longest = LONGEST_RECOVERED if design == "one pass" else None
    G, L = cut or segments(heads, T, slots, longest)
    # Summed first: all segments but the last going forwards, but the first going backwards.
    g, h = (G - 1) * L / T, max(0, T - L) / T
    passes = {"three passes": 12, "one pass": 7}[design]
    moved = {"three passes": 6, "one pass": 5}[design]
    tokens = i * D * (4 + 2 * g + (passes + 2 * h) * gradients)
    states = (G - 1) * (D * D + D) * STATE_BYTES / T * (4 + moved * gradients)
    squares = {"three passes": 12, "one pass": 10}[design]
    flops = 4 * C * D + (4 + 2 * g) * D * D
    flops += (12 * C * D + (squares + 2 * h) * D * D) * gradients
    return DesignCost(tokens, states, flops, heads * G * -(-D // 64))


MACHINES = (
    "rnn tape",
    "rnn state",
    "k-gram state",
    "attention tape",
    "kv cache",
    "linear state",
    "taylor state",
)


def machine_cost(
    machine: str,
    t: int,
    D: int,
    *,
    n_heads: int = 1,
    degree: int = 2,
    k: int = 8,
    hidden: int | None = None,
    itemsize: int = 4,
) -> Cost:
    """Tick t (counted from 1) of the machine of one layer of width D, batch of one.

    machine: one of MACHINES. The tapes run their whole layer over all t inputs again.
    n_heads: of the attention layers. degree: of "taylor state". k, hidden: of "k-gram state";
        hidden is 4 D by default.
    itemsize: bytes of a number in weights and inputs.

    `state` is the state's size after the tick; bytes are the weights once, a growing state read
    once, a fixed one read and written. Raises ValueError for an unknown machine.
    """
    hidden = 4 * D if hidden is None else hidden
    K = D // n_heads
    F = math.comb(K + degree, degree)
    rnn, attention, kgram = 2 * D * D, 4 * D * D, (k + 1) * D * hidden
    features = {"linear state": K, "taylor state": F}

    if machine in features:
        sums = n_heads * features[machine]
        state = sums * (K + 1) * STATE_BYTES
        return Cost(2 * attention + 4 * sums * K, attention * itemsize + 2 * state, 1, state)
    flops, weights, steps, state, passes = {
        "rnn tape": (2 * rnn * t, rnn, t, t * D, 1),
        "rnn state": (2 * rnn, rnn, 1, D, 2),
        "k-gram state": (2 * kgram, kgram, 1, (k - 1) * D, 2),
        "attention tape": (2 * attention * t + 2 * t * (t + 1) * D, attention, 1, t * D, 1),
        "kv cache": (2 * attention + 4 * t * D, attention, 1, 2 * t * D, 1),
    }.get(machine) or _unknown(machine)
    return Cost(flops, (weights + passes * state) * itemsize, steps, state * itemsize)


def _unknown(machine: str) -> NoReturn:
    raise ValueError(f"machine: expected one of {', '.join(MACHINES)}, got {machine!r}")

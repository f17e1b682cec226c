"""A cost, and the least time it takes on a device."""

from __future__ import annotations

from dataclasses import dataclass

STATE_BYTES = 4  # states are float32 whatever the inputs are


@dataclass(frozen=True)
class Cost:
    """A cost. flops: FLOP. bytes: B to and from memory. steps: in sequence. state: B kept."""

    flops: int
    bytes: int
    steps: int
    state: int

    def seconds(
        self, flops_per_second: float, bytes_per_second: float, seconds_per_step: float = 0.0
    ) -> float:
        """The roofline: the longest of arithmetic, traffic and sequential steps, in seconds.

        Williams, Waterman and Patterson (2009), plus a latency for each sequential step. The three
        may overlap, so their maximum is the bound, not their sum. Speeds in FLOP/s and B/s, a step
        in s.
        """
        return max(
            self.flops / flops_per_second,
            self.bytes / bytes_per_second,
            self.steps * seconds_per_step,
        )


@dataclass(frozen=True)
class Peak:
    """A vendor's numbers for one GPU. No program is faster; most are much slower.

    flops: FLOP/s of dense bfloat16 products accumulated in float32. bytes: B/s of its memory.
    clock: Hz at which `flops` is reached.
    """

    flops: float
    bytes: float
    clock: float

    @property
    def step(self) -> float:
        """Latency of a multiply-add after another, in s (Abdelkhalik et al., 2022)."""
        return DEPENDENT_CYCLES / self.clock


DEPENDENT_CYCLES = 4
PEAKS = {  # NVIDIA's data sheets; half of what they state "with sparsity"
    "A100 80GB SXM": Peak(312e12, 2039e9, 1410e6),
    "H100 SXM": Peak(989.5e12, 3350e9, 1830e6),
    "H200": Peak(989.5e12, 4800e9, 1830e6),
    "RTX 4090": Peak(165.2e12, 1008e9, 2520e6),
}

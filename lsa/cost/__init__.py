"""Costs of computing: FLOPs, bytes, sequential steps and state size, as formulas.

Conventions. A multiply-add is 2 FLOPs, and only the products of matrices and vectors are
counted (as torch.utils.flop_counter does): they are what grows. Bytes are the least traffic with
main memory when everything that fits stays on the chip. Costs are for one head of one sequence
unless said otherwise; K features, V values, T tokens, C tokens a chunk.
"""

from .exchanges import head_exchange, key_exchange, state_exchange
from .kernels import DESIGNS, DesignCost, design_cost, least_flops
from .machines import MACHINES, machine_cost
from .memory import training_memory
from .models import tick_cost, update_flops
from .modes import best_chunk_size, least_bytes, mode_cost, reference_flops, training_cost
from .rooflines import DEPENDENT_CYCLES, PEAKS, STATE_BYTES, Cost, Peak

__all__ = [
    "DEPENDENT_CYCLES",
    "DESIGNS",
    "MACHINES",
    "PEAKS",
    "STATE_BYTES",
    "Cost",
    "DesignCost",
    "Peak",
    "best_chunk_size",
    "design_cost",
    "head_exchange",
    "key_exchange",
    "least_bytes",
    "least_flops",
    "machine_cost",
    "mode_cost",
    "reference_flops",
    "state_exchange",
    "tick_cost",
    "training_cost",
    "training_memory",
    "update_flops",
]

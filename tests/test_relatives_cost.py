"""The cost of a relative's tick, against its machine ticking."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from experiments.sampling_speed import state_bytes
from lsa.cost.relatives import RELATIVES, relative_cost
from lsa.layers.aft import AFTFull, AFTLocal, AFTSimple
from lsa.layers.convolution import CausalConv
from lsa.layers.delta import DeltaNet
from lsa.layers.gated import DECAYS, GatedLinearAttention
from lsa.layers.mamba import S6, Mamba
from lsa.layers.power import PowerAttention
from lsa.layers.rwkv import RWKVChannelMixing, RWKVTimeMixing
from lsa.layers.s4 import S4
from lsa.layers.s4d import S4D

D, H, N, WINDOW = 24, 2, 6, 5
K = D // H
BUILD = {
    "aft full": lambda: AFTFull(D, max_length=8),
    "aft local": lambda: AFTLocal(D, window=WINDOW),
    "aft simple": lambda: AFTSimple(D),
    "rwkv time mixing": lambda: RWKVTimeMixing(D),
    "rwkv channel mixing": lambda: RWKVChannelMixing(D),
    "causal conv": lambda: CausalConv(D),
    "s4": lambda: S4(D, d_state=N),
    "s4d": lambda: S4D(D, d_state=N),
    "s6": lambda: S6(D, d_state=N),
    "mamba": lambda: Mamba(D, d_state=N),
    **{f"gated {decay}": lambda d=decay: GatedLinearAttention(D, H, decay=d) for decay in DECAYS},
    "delta": lambda: DeltaNet(D, H),
    "gated delta": lambda: DeltaNet(D, H, gated=True),
    "power": lambda: PowerAttention(D, H, degree=4),
}
SEEN_ON_STATE = {  # what of the state's use is a matrix product, which torch counts
    "s6": 2 * N * D,
    "mamba": 2 * N * 2 * D,
    **{f"gated {decay}": 2 * H * K * K for decay in DECAYS},
    "delta": 4 * H * K * K,
    "gated delta": 4 * H * K * K,
    "power": 2 * H * 1365 * (K + 1),
}


@pytest.mark.parametrize("machine", RELATIVES)
def test_relative_cost_is_what_ticking_costs(machine):
    running = BUILD[machine]().machine()
    state = running.initial_state
    for t in range(1, 6):
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            state, _ = running.step(state, torch.randn(1, D))
        cost = relative_cost(machine, t, D, n_heads=H, d_state=N, window=WINDOW, degree=4)
        assert state_bytes(state) == cost.state
        # torch counts products of matrices; the rest of a state's use is elementwise.
        on_state = {
            "aft full": 4 * t * D,
            "aft local": 4 * WINDOW * D + 4 * D,
            "aft simple": 4 * D,
            "rwkv time mixing": 8 * D,
            "causal conv": 2 * 4 * D,
            "s4": 20 * N * D,
            "s4d": 8 * N * D,
            "s6": 4 * N * D,
            "mamba": 4 * N * 2 * D + 2 * 4 * 2 * D,
            "delta": 6 * H * K * K,
            "gated delta": 6 * H * K * K,
            "power": 4 * H * 1365 * (K + 1),
        }.get(machine, 4 * H * K * K if machine.startswith("gated") else 0)
        # AFT-full's sums over the past are two products of matrices from the second tick on.
        seen = 4 * (t - 1) * D if machine == "aft full" else SEEN_ON_STATE.get(machine, 0)
        assert counter.get_total_flops() == cost.flops - on_state + seen


def test_only_aft_full_grows():
    growing = {
        m for m in RELATIVES if relative_cost(m, 100, D).state > relative_cost(m, 1, D).state
    }
    assert growing == {"aft full"}


def test_unknown_machines_are_named():
    with pytest.raises(ValueError, match="machine: expected one of aft full"):
        relative_cost("hyena", 1, 1)

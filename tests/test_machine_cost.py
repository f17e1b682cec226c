"""The cost table of the chapter on state machines, against real machines ticking."""

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa.cost import MACHINES, machine_cost
from lsa.layers import RNN, DeepRNN, KGram, LinearAttention, SoftmaxAttention, TaylorAttention
from lsa.machines import state_bytes, tape
from lsa.sequences import take_last
from tests.helpers import counted

D, H, DEGREE, K_GRAM = 12, 2, 4, 3


def built(machine):
    torch.manual_seed(0)
    return {
        "rnn tape": lambda: tape(take_last(RNN(D))),
        "rnn state": lambda: RNN(D).machine(),
        "k-gram state": lambda: KGram(D, K_GRAM, 4 * D).machine(),
        "attention tape": lambda: tape(take_last(SoftmaxAttention(D, H))),
        "kv cache": lambda: SoftmaxAttention(D, H).machine(),
        "linear state": lambda: LinearAttention(D, H).machine(),
        "taylor state": lambda: TaylorAttention(D, H, degree=DEGREE).machine(),
    }[machine]()


def not_counted(machine, t):
    """What torch's counter leaves out (outer products), less what it counts twice (the mask)."""
    if machine in ("linear state", "taylor state"):
        K = D // H
        return 2 * H * K * {"linear state": K, "taylor state": 210}[machine]
    return -2 * t * (t - 1) * D if machine == "attention tape" else 0


@pytest.mark.parametrize("machine", MACHINES)
def test_machine_cost_is_what_ticking_costs(machine):
    running = built(machine)
    state = running.initial_state
    for t in range(1, 8):
        (state, _), flops = counted(partial(running.step, state, torch.randn(1, D)))
        cost = machine_cost(machine, t, D, n_heads=H, degree=DEGREE, k=K_GRAM)
        assert state_bytes(state) == cost.state
        assert flops == cost.flops - not_counted(machine, t)


@given(H=st.integers(1, 4), K=st.integers(1, 16), t=st.integers(1, 5000))
def test_a_layers_own_counts_and_its_projections_are_the_cost_of_its_machine(H, K, t):
    """Widths and contexts that no machine here ticks through: the chapter's formulas by hand."""
    D, F, k = H * K, (K + 1) * (K + 2) // 2, 8
    attention, rnn, k_gram = 4 * D * D, 2 * D * D, (k + 1) * D * 4 * D
    by_hand = {  # weights of the projections, FLOPs of the mixing, numbers in the state
        "rnn state": (rnn, 0, D),
        "k-gram state": (k_gram, 0, (k - 1) * D),
        "kv cache": (attention, 4 * t * D, 2 * t * D),
        "linear state": (attention, 4 * D * K, D * (K + 1)),
        "taylor state": (attention, 4 * F * D, H * F * (K + 1)),
        "rnn tape": (rnn * t, 0, t * D),
        "attention tape": (attention * t, 2 * t * (t + 1) * D, t * D),
    }
    for machine, (projections, mixing, numbers) in by_hand.items():
        cost = machine_cost(machine, t, D, n_heads=H)
        assert cost.flops == 2 * projections + mixing
        assert cost.state == 4 * numbers


def test_a_deep_machine_costs_the_sum_of_its_layers():
    torch.manual_seed(0)
    running, x = DeepRNN(D, 5).machine(), torch.randn(1, D)
    (state, _), flops = counted(partial(running.step, running.initial_state, x))
    cost = machine_cost("rnn state", 1, D)
    assert (flops, state_bytes(state)) == (5 * cost.flops, 5 * cost.state)

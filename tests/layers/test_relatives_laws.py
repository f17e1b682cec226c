"""The law unroll(layer.machine())(x) == layer(x), and what follows from it, for the relatives."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lsa import is_causal_at, unroll
from lsa.layers.aft import AFTFull, AFTLocal, AFTSimple
from lsa.layers.convolution import CausalConv
from lsa.layers.delta import DeltaNet
from lsa.layers.gated import DECAYS, GatedLinearAttention
from lsa.layers.mamba import S6, Mamba
from lsa.layers.power import PowerAttention
from lsa.layers.rwkv import RWKVChannelMixing, RWKVTimeMixing
from lsa.layers.s4 import S4
from lsa.layers.s4d import DISCRETISATIONS, S4D
from lsa.layers.state_space import MODES

D, LONGEST = 12, 1000
RELATIVES = {
    "aft-full": lambda: AFTFull(D, max_length=LONGEST),
    "aft-full-chunks": lambda: AFTFull(D, max_length=LONGEST, chunk_size=5),
    "aft-local": lambda: AFTLocal(D, window=5, max_length=LONGEST),
    "aft-local-shared": lambda: AFTLocal(D, window=1),
    "aft-simple": lambda: AFTSimple(D),
    "rwkv-time": lambda: RWKVTimeMixing(D),
    "rwkv-channel": lambda: RWKVChannelMixing(D),
    **{f"s4-{mode}": lambda mode=mode: S4(D, d_state=8, mode=mode) for mode in MODES},
    **{f"s4d-{rule}": lambda rule=rule: S4D(D, d_state=8, discretisation=rule)
       for rule in DISCRETISATIONS},
    "s4d-direct": lambda: S4D(D, d_state=4, mode="direct"),
    "s6-tree": lambda: S6(D, d_state=4, mode="tree"),
    "s6-steps": lambda: S6(D, d_state=4, input_rule="zoh", chunk_size=5),
    "mamba": lambda: Mamba(D, d_state=4),
    "conv": lambda: CausalConv(D),
    **{f"gated-{decay}": lambda decay=decay: GatedLinearAttention(D, 3, decay=decay)
       for decay in DECAYS},
    "gated-normalized": lambda: GatedLinearAttention(
        D, 2, feature_map="elu_plus_one", normalize=True, chunk_size=5),
    "delta": lambda: DeltaNet(D, 3, chunk_size=5),
    "delta-gated": lambda: DeltaNet(D, 3, gated=True),
    **{f"power-{p}": lambda p=p: PowerAttention(D, 3, degree=p) for p in (2, 4)},
    "power-gated": lambda: PowerAttention(D, 3, gated=True),
}  # fmt: skip
relatives = pytest.mark.parametrize("name", RELATIVES)


def close(name, a, b, allowed=1e-10):
    """Within 1e-10, or 1e-8 where an FFT lies between."""
    through_fft = name in ("s4-fft", "s4d-zoh", "s4d-bilinear")
    allowed = 1e-8 if through_fft else allowed
    torch.testing.assert_close(a, b, rtol=allowed, atol=allowed)


@relatives
@pytest.mark.parametrize("T", [0, 1, 7, 64, 1000])
def test_unrolled_machine_is_the_layer(name, T):
    layer, x = RELATIVES[name]().double(), torch.randn(1, T, D).double()
    with torch.no_grad():
        y = layer(x)
        close(name, unroll(layer.machine())(x), y)
    assert y.shape == x.shape


@relatives
@settings(max_examples=6)
@given(B=st.integers(1, 3), cuts=st.lists(st.integers(0, 40), max_size=5))
def test_pieces_are_the_whole(name, B, cuts):
    layer = RELATIVES[name]().double().requires_grad_(False)
    x = torch.randn(B, sum(cuts), D, dtype=torch.float64)
    machine = layer.machine()
    state, pieces = machine.initial_state, [layer(x[:, :0])]
    for piece in x.split(cuts, dim=1):
        state, y = machine.prefill(state, piece)
        pieces.append(y)
    close(name, torch.cat(pieces, 1), layer(x))
    if sum(cuts):
        # The state that pieces leave is a state to tick on from.
        _, after = machine.step(state, x[:, -1])
        close(name, after, layer(torch.cat((x, x[:, -1:]), 1))[:, -1])


@relatives
def test_gradients_pass_through_every_face(name):
    layer = RELATIVES[name]().double()
    x = torch.randn(2, 11, D, dtype=torch.float64)
    machine = layer.machine()

    def in_pieces(x):
        state, first = machine.prefill(machine.initial_state, x[:, :4])
        return torch.cat((first, machine.prefill(state, x[:, 4:])[1]), 1)

    gradients = []
    for face in (layer, unroll(machine), in_pieces):
        layer.zero_grad()
        leaf = x.clone().requires_grad_()
        face(leaf).square().sum().backward()
        gradients.append([leaf.grad, *(p.grad.clone() for p in layer.parameters())])
    for found in gradients[1:]:
        torch.testing.assert_close(found, gradients[0], rtol=1e-8, atol=1e-8)


@relatives
def test_it_is_causal(name):
    layer = RELATIVES[name]().double().requires_grad_(False)
    assert is_causal_at(layer, torch.randn(1, 14, D).double(), atol=1e-9)


@relatives
@pytest.mark.parametrize(("dtype", "allowed"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_the_law_holds_in_lower_precision(name, dtype, allowed):
    layer, x = RELATIVES[name]().to(dtype), torch.randn(2, 17, D).to(dtype)
    with torch.no_grad():
        whole, ticked = layer(x), unroll(layer.machine())(x)
    assert whole.dtype == ticked.dtype == dtype
    assert (ticked - whole).float().norm() < allowed * whole.float().norm()


@relatives
def test_a_step_does_not_change_the_state_it_was_given(name):
    layer = RELATIVES[name]().double().requires_grad_(False)
    machine = layer.machine()
    x = torch.randn(2, 9, D, dtype=torch.float64)
    state, _ = machine.prefill(machine.initial_state, x[:, :5])
    _, first = machine.step(state, x[:, 5])
    _, other = machine.step(state, x[:, 6])
    _, again = machine.step(state, x[:, 5])
    torch.testing.assert_close(first, again)
    assert not torch.equal(first, other)


LONG = {
    "s4": (lambda: S4(2, d_state=16), 1e-3),
    "s4-learned": (lambda: disturbed(S4(2, d_state=16)), 1e-3),
    "s4d": (lambda: S4D(2, d_state=16), 1e-3),
    "s6": (lambda: S6(2, d_state=4, mode="tree", chunk_size=1000), 1e-5),
    "mamba": (lambda: Mamba(2, d_state=2, mode="tree", chunk_size=1000), 1e-5),
}


def disturbed(layer):
    """Weights far from their start: A stays stable whatever is learned."""
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(torch.randn_like(p))
    return layer


@pytest.mark.parametrize("name", LONG)
def test_a_hundred_thousand_steps_stay_stable(name):
    build, allowed = LONG[name]
    layer = build()
    x, machine = torch.randn(1, 100_000, 2), layer.machine()
    with torch.no_grad():
        whole = layer(x)
        state, pieces = machine.initial_state, []
        for piece in x.split(2000, dim=1):
            state, y = machine.prefill(state, piece)
            pieces.append(y)
    early, late = whole[:, 10_000:20_000], whole[:, -10_000:]
    assert whole.isfinite().all()
    assert late.abs().max() < 3 * early.abs().max()
    ticked = torch.cat(pieces, 1)
    assert (ticked - whole).norm() < allowed * whole.norm()


BAD = {
    "max_length: expected at least 1, got 0": lambda: AFTFull(D, max_length=0),
    "chunk_size: expected at least 1, got 0": lambda: AFTFull(D, max_length=4, chunk_size=0),
    "window: expected at least 1, got 0": lambda: AFTLocal(D, window=0),
    "max_length: expected at least 1 or None, got -1": lambda: AFTLocal(D, window=2, max_length=-1),
    "x: expected at most max_length 4 tokens, got 5": lambda: AFTFull(D, max_length=4)(
        torch.zeros(1, 5, D)
    ),
    "hidden: expected at least 1, got 0": lambda: RWKVChannelMixing(D, hidden=0),
    "d_state: expected an even number from 2, got 5": lambda: S4(D, d_state=5),
    "mode: expected one of fft, direct, recurrent, got 'scan'": lambda: S4D(D, mode="scan"),
    "discretisation: expected one of zoh, bilinear, got 'euler'": lambda: S4D(
        D, discretisation="euler"
    ),
    "d_state: expected at least 1, got 0": lambda: S6(D, d_state=0),
    "input_rule: expected one of euler, zoh, got 'foh'": lambda: Mamba(D, input_rule="foh"),
    "mode: expected one of steps, tree, got 'fft'": lambda: S6(D, mode="fft"),
    "expand: expected at least 1, got 0": lambda: Mamba(D, expand=0),
    "width: expected at least 1, got 0": lambda: CausalConv(D, width=0),
    "decay: expected one of fixed, head, channel, got 'row'": lambda: GatedLinearAttention(
        D, 2, decay="row"
    ),
    "feature_map: expected one that is not negative with normalize, got 'identity'": lambda: (
        GatedLinearAttention(D, 2, normalize=True)
    ),
    "degree: expected an even number from 2, got 3": lambda: PowerAttention(D, 2, degree=3),
    "n_heads: expected a divisor of d_model 12, got 5": lambda: DeltaNet(D, 5),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_options_are_named(message):
    with pytest.raises(ValueError, match="^" + message.replace("'", ".")):
        BAD[message]()

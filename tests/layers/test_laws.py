"""The two-faces law, once for every layer: unroll(layer.machine())(x) == layer(x).

A machine knows nothing of later tokens, so a layer that keeps the law is causal.
"""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from lsa import unroll
from lsa.layers import LAYERS, LinearAttention, make_layer
from lsa.layers.aft import AFTSimple
from lsa.layers.mamba import S6, Mamba
from lsa.layers.power import PowerAttention
from lsa.layers.rwkv import RWKVTimeMixing
from lsa.layers.s4 import S4
from lsa.layers.s4d import S4D
from lsa.layers.window import WindowAttention
from lsa.layers.window_state import WindowStateAttention
from tests.examples import examples
from tests.helpers import in_pieces
from tests.layers.layer_cases import CASES, LONGEST, THROUGH_FFT, D

layers = pytest.mark.parametrize("name", CASES)
some = examples(8)


def close(name, a, b):
    """Within 1e-10, or 1e-8 where an FFT lies between."""
    allowed = 1e-8 if name in THROUGH_FFT else 1e-10
    torch.testing.assert_close(a, b, rtol=allowed, atol=allowed)


@pytest.mark.parametrize(
    "name",
    [
        "softmax-decay",
        "linear-decay-chunked",
        "taylor-decay",
        "power-decay",
        "power-gated",
        "window-5-1",
        "window-2-7",
        "window-decay",
    ],
)
def test_the_weights_of_a_layer_mix_its_values(name):
    """What a layer says it looks at is what it does."""
    layer, x = CASES[name]().double(), torch.randn(2, 9, D).double()
    A, v = layer.weights(x), layer.qkv(x)[2].transpose(1, 2)
    mixed = layer.out((A @ v).transpose(1, 2))
    torch.testing.assert_close(mixed, layer(x), rtol=1e-5, atol=1e-5)


@layers
@some
@given(B=st.integers(1, 3), T=st.integers(0, 20))
@example(B=1, T=0)
@example(B=1, T=1)
@example(B=1, T=64)
@example(B=1, T=LONGEST)
def test_unrolled_machine_is_the_layer(name, B, T):
    layer = CASES[name]().double().requires_grad_(False)
    x = torch.randn(B, T, D, dtype=torch.float64)
    y = layer(x)
    close(name, unroll(layer.machine())(x), y)
    assert y.shape == x.shape


@layers
@some
@given(B=st.integers(1, 3), cuts=st.lists(st.integers(0, 9) | st.integers(0, 40), max_size=5))
def test_pieces_are_the_whole(name, B, cuts):
    layer = CASES[name]().double().requires_grad_(False)
    x = torch.randn(B, sum(cuts), D, dtype=torch.float64)
    machine = layer.machine()
    state, found = in_pieces(machine, x, cuts or [0])
    close(name, found, layer(x))
    if sum(cuts):
        # The state that pieces leave is a state to tick on from.
        _, after = machine.step(state, x[:, -1])
        close(name, after, layer(torch.cat((x, x[:, -1:]), 1))[:, -1])


@layers
def test_gradients_pass_through_every_face(name):
    layer = CASES[name]().double()
    x = torch.randn(2, 11, D, dtype=torch.float64)
    machine = layer.machine()

    gradients = []
    for face in (layer, unroll(machine), lambda x: in_pieces(machine, x, [4, 7])[1]):
        layer.zero_grad(set_to_none=True)
        leaf = x.clone().requires_grad_()
        face(leaf).square().sum().backward()
        # What a state learns has no gradient, or zero, before anything enters it.
        learned = [torch.zeros_like(p) if p.grad is None else p.grad for p in layer.parameters()]
        gradients.append([leaf.grad, *learned])
    for found in gradients[1:]:
        torch.testing.assert_close(found, gradients[0], rtol=1e-8, atol=1e-8)


@layers
def test_gradients_are_those_of_finite_differences(name):
    """Maxima that are left out of the graph must cancel, and masks must leak nothing."""
    layer = CASES[name]().double()
    names, parameters = zip(*layer.named_parameters(), strict=True)

    def run(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), x)

    x = torch.randn(2, 7, D, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(run, (x, *parameters), fast_mode=True)


@layers
@pytest.mark.parametrize(("dtype", "allowed"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_the_law_holds_in_lower_precision(name, dtype, allowed):
    layer, x = CASES[name]().to(dtype), torch.randn(2, 17, D).to(dtype)
    with torch.no_grad():
        whole, ticked = layer(x), unroll(layer.machine())(x)
    assert whole.dtype == ticked.dtype == dtype
    error = (ticked - whole).float().norm(dim=-1) / condition(layer, x)
    assert error.norm() < allowed * whole.float().norm()


def condition(layer, x):
    """How much larger what a tick adds up is than the sum, a number a token. [B, T] or 1.

    Power attention's weights are sums of features of either sign, as large as (|q| |k|)^p however
    small (q·k)^p is. A token whose weights all nearly vanish has few digits left in float32.
    """
    if not isinstance(layer, PowerAttention):
        return 1.0
    A, _ = layer.weighed(x)
    q, k, _, _ = (heads.transpose(1, 2) for heads in layer.scaled_qkv(x))
    scores = q @ k.transpose(-1, -2)
    largest = q.norm(dim=-1).unsqueeze(-1) * k.norm(dim=-1).unsqueeze(-2)
    fades = torch.where(scores == 0, 0, A / scores**layer.degree)  # and zero for what comes later
    terms = (fades * largest**layer.degree).sum(-1)
    return (terms / A.sum(-1)).amax(1).detach()


@pytest.mark.parametrize("name", ["power", "taylor"])
def test_a_tick_of_high_degree_is_not_rounded_by_autocast(name):
    """Features of degree 4 cancel; in bfloat16 nothing would be left of what they sum to."""
    scale = {"scale": 12.0} if name == "taylor" else {}
    layer, x = make_layer(name, 8, 2, options={"degree": 4, **scale}), torch.randn(2, 20, 8)
    wanted, machine = layer(x), layer.machine()
    with torch.autocast("cpu", torch.bfloat16):
        for found in (unroll(machine)(x), machine.prefill(machine.initial_state, x)[1]):
            assert (found - wanted).norm() <= 0.02 * wanted.norm()


@layers
def test_under_autocast_ticks_and_whole_texts_leave_the_same_state(name):
    """No sum is rounded to bfloat16 in one of them alone."""
    machine, x = CASES[name]().requires_grad_(False).machine(), torch.randn(2, 40, D)
    with torch.autocast("cpu", torch.bfloat16):
        whole, _ = machine.prefill(machine.initial_state, x)
        ticked = machine.initial_state
        for x_t in x.unbind(1):
            ticked, _ = machine.step(ticked, x_t)
    for one, other in zip(tree_leaves(whole), tree_leaves(ticked), strict=True):
        if isinstance(one, torch.Tensor):
            assert (one - other).norm() <= 1e-4 * one.norm()


def halfway(machine, x, first, later):
    """The output at the last of x, under autocast only until then, or only there."""
    with torch.autocast("cpu", torch.bfloat16, enabled=first):
        state, _ = machine.prefill(machine.initial_state, x[:, :-1])
    with torch.autocast("cpu", torch.bfloat16, enabled=later):
        return machine.step(state, x[:, -1])[1]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_autocast_may_begin_and_end_between_ticks(name, first):
    torch.manual_seed(0)
    layer, x = CASES[name]().requires_grad_(False), torch.randn(2, 9, D)
    found, wanted = halfway(layer.machine(), x, first, not first), layer(x)[:, -1]
    assert (found - wanted).norm() <= 0.05 * wanted.norm()


@layers
def test_a_state_is_a_tree_of_tensors(name):
    """A state that is moved, detached or split by `tree_map` goes on as that state."""
    layer, x = CASES[name]().double(), torch.randn(3, 9, D).double()
    machine = layer.machine()
    wanted = layer(x)
    state, _ = machine.prefill(machine.initial_state, x[:, :7])
    assert all(isinstance(leaf, torch.Tensor | int) for leaf in tree_leaves(state))
    one = tree_map_only(torch.Tensor, lambda part: part[1:2].detach(), state)
    assert not any(part.requires_grad for part in tree_leaves(one) if torch.is_tensor(part))
    for t in (7, 8):
        one, y = machine.step(one, x[1:2, t])
        close(name, y, wanted[1:2, t])
    close(name, machine.prefill(state, x[:, 7:])[1], wanted[:, 7:])  # it is what it was
    nothing = tree_map(lambda part: None, state)
    assert len(tree_leaves(nothing)) == len(tree_leaves(state))


@layers
def test_a_batch_of_none_is_a_batch(name):
    layer = CASES[name]()
    machine = layer.machine()
    assert layer(torch.zeros(0, 3, D)).shape == (0, 3, D)
    state, y = machine.prefill(machine.initial_state, torch.zeros(0, 3, D))
    assert y.shape == (0, 3, D)
    assert machine.step(state, y[:, 0])[1].shape == (0, D)


@layers
def test_a_step_does_not_change_the_state_it_was_given(name):
    layer = CASES[name]().double().requires_grad_(False)
    machine = layer.machine()
    x = torch.randn(2, 9, D, dtype=torch.float64)
    state, _ = machine.prefill(machine.initial_state, x[:, :5])
    _, first = machine.step(state, x[:, 5])
    _, other = machine.step(state, x[:, 6])
    _, again = machine.step(state, x[:, 5])
    torch.testing.assert_close(first, again)
    assert not torch.equal(first, other)  # it reads what it is given, too


@layers
@some
@given(T=st.integers(1, 12))
def test_the_last_answer_alone_is_the_last_of_all(name, T):
    layer = CASES[name]().double().requires_grad_(False)
    x = torch.randn(2, T, D, dtype=torch.float64)
    machine = layer.machine()
    _, y = machine.read(machine.initial_state, x)
    close(name, y, layer(x)[:, -1])


LONG = {
    "aft-simple": (lambda: AFTSimple(2), 1e-4),
    "rwkv": (lambda: RWKVTimeMixing(2), 1e-4),
    "s4": (lambda: S4(2, d_state=16), 1e-3),
    "s4-learned": (lambda: disturbed(S4(2, d_state=16)), 1e-3),
    "s4d": (lambda: S4D(2, d_state=16), 1e-3),
    "s6": (lambda: S6(2, d_state=4, mode="tree", chunk_size=1000), 1e-5),
    "mamba": (lambda: Mamba(2, d_state=2, mode="tree", chunk_size=1000), 1e-5),
    # In linear memory: the scores of all pairs would be 40 GB.
    "window": (lambda: WindowAttention(2, 1, window=16), 1e-5),
    "window-state": (lambda: WindowStateAttention(2, 1, window=16), 1e-5),
}


def disturbed(layer):
    """Weights far from their start: A stays stable whatever is learned."""
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(torch.randn_like(p))
    return layer


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_a_hundred_thousand_steps_stay_stable(name):
    build, allowed = LONG[name]
    layer, x = build(), torch.randn(1, 100_000, 2)
    with torch.no_grad():
        whole = layer(x)
        _, found = in_pieces(layer.machine(), x, 2000)
    early, late = whole[:, 10_000:20_000], whole[:, -10_000:]
    assert whole.isfinite().all()
    assert late.abs().max() < 3 * early.abs().max()
    assert (found - whole).norm() < allowed * whole.norm()


@pytest.mark.parametrize("autocast", [True, False])
def test_an_output_norm_reads_sums_beyond_float16(autocast):
    layer = LinearAttention(16, 2, normalize=False, output_norm=True).requires_grad_(False)
    x = torch.randn(1, 4000, 16) + 8
    wanted = layer(x)
    if autocast:
        with torch.autocast("cpu", torch.float16):
            found = layer(x)
    else:
        found = layer.half()(x.half())
    assert found.dtype == torch.float16
    torch.testing.assert_close(found.float(), wanted, atol=0.02, rtol=0.02)

"""The two-faces law, once for every layer: unroll(layer.machine())(x) == layer(x)."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import (
    GPT,
    RNN,
    DeepRNN,
    GPTConfig,
    KGram,
    LinearAttention,
    SoftmaxAttention,
    TaylorAttention,
    is_causal_at,
    tape,
    unroll,
)
from lsa.layers import KVCache
from lsa.linear_attention.feature_maps import FEATURE_MAPS
from lsa.linear_attention.functional import MODES
from lsa.machines import StateMachine

D = 12
LAYERS = {
    "softmax": lambda: SoftmaxAttention(D, 3),
    **{f"linear-{mode}": lambda mode=mode: LinearAttention(D, 3, mode=mode) for mode in MODES},
    "linear-unnormalized": lambda: LinearAttention(D, 2, normalize=False, chunk_size=3),
    **{
        f"linear-{name}": lambda name=name: LinearAttention(D, 2, feature_map=name)
        for name in FEATURE_MAPS
        if name != "identity"
    },
    "linear-identity": lambda: LinearAttention(D, 2, feature_map="identity", normalize=False),
    **{f"taylor-{n}": lambda n=n: TaylorAttention(D, 3, degree=n) for n in (0, 2, 4)},
    "rnn": lambda: RNN(D),
    "deep-rnn": lambda: DeepRNN(D, 3),
    **{f"kgram-{k}": lambda k=k: KGram(D, k, 16) for k in (1, 4)},
}
layers = pytest.mark.parametrize("name", LAYERS)


@layers
@given(B=st.integers(1, 3), T=st.integers(0, 20))
def test_unrolled_machine_is_the_layer(name, B, T):
    layer = LAYERS[name]().double()
    x = torch.randn(B, T, D, dtype=torch.float64)
    torch.testing.assert_close(unroll(layer.machine())(x), layer(x), rtol=1e-9, atol=1e-9)


@layers
@given(B=st.integers(1, 3), cuts=st.lists(st.integers(0, 9), max_size=5))
def test_prefill_in_pieces_is_the_layer(name, B, cuts):
    layer = LAYERS[name]().double()
    x = torch.randn(B, sum(cuts), D, dtype=torch.float64)
    machine = layer.machine()
    state, pieces = machine.initial_state, [layer(x[:, :0])]
    for piece in x.split(cuts, dim=1):
        state, y = machine.prefill(state, piece)
        pieces.append(y)
    torch.testing.assert_close(torch.cat(pieces, 1), layer(x), rtol=1e-9, atol=1e-9)


@layers
def test_gradients_pass_through_both_faces(name):
    layer = LAYERS[name]().double()
    x = torch.randn(2, 7, D, dtype=torch.float64)
    gradients = []
    for face in (layer, unroll(layer.machine())):
        layer.zero_grad()
        face(x).square().sum().backward()
        gradients.append([p.grad.clone() for p in layer.parameters()])
    torch.testing.assert_close(*gradients, rtol=1e-8, atol=1e-8)


@layers
@given(T=st.integers(1, 12))
def test_every_layer_with_a_machine_is_causal(name, T):
    assert is_causal_at(LAYERS[name]().double(), torch.randn(1, T, D).double(), atol=1e-9)


@layers
@pytest.mark.parametrize(("dtype", "allowed"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_the_law_holds_in_lower_precision(name, dtype, allowed):
    layer, x = LAYERS[name]().to(dtype), torch.randn(2, 17, D).to(dtype)
    with torch.no_grad():
        whole, ticked = layer(x), unroll(layer.machine())(x)
    assert whole.dtype == ticked.dtype == dtype
    error = (ticked - whole).float().norm() / whole.float().norm()
    assert error < allowed


@layers
def test_a_step_does_not_change_the_state_it_was_given(name):
    layer = LAYERS[name]().double().requires_grad_(False)
    machine = layer.machine()
    x = torch.randn(2, 9, D, dtype=torch.float64)
    state, _ = machine.prefill(machine.initial_state, x[:, :5])
    _, first = machine.step(state, x[:, 5])
    _, other = machine.step(state, x[:, 6])
    _, again = machine.step(state, x[:, 5])
    torch.testing.assert_close(first, again)
    assert not torch.equal(first, other)


@layers
def test_the_tape_of_the_last_output_is_the_layer(name):
    layer = LAYERS[name]().double()
    x = torch.randn(2, 6, D, dtype=torch.float64)
    machine = tape(lambda prefix: layer(prefix)[:, -1])
    torch.testing.assert_close(unroll(machine)(x), layer(x), rtol=1e-9, atol=1e-9)


def test_kv_cache_grows_and_linear_state_does_not():
    x = torch.randn(1, 32, D)
    softmax, linear = SoftmaxAttention(D, 3).machine(), LinearAttention(D, 3).machine()
    assert KVCache().nbytes == 0
    for t in (1, 8, 32):
        cache, _ = softmax.prefill(softmax.initial_state, x[:, :t])
        assert cache.nbytes == 2 * t * D * 4
        state, _ = linear.prefill(linear.initial_state, x[:, :t])
        assert sum(s.nbytes for s in state) == 3 * (4 * 4 + 4) * 4


@pytest.mark.parametrize("attention", ["softmax", "linear"])
@given(T=st.integers(0, 12))
def test_the_law_holds_for_the_whole_gpt(attention, T):
    config = GPTConfig(
        vocab_size=17, n_positions=12, n_layer=2, n_head=2, d_model=8, attention=attention
    )
    model = GPT(config).double()
    tokens = torch.randint(17, (2, T))
    torch.testing.assert_close(unroll(model.machine())(tokens), model(tokens), rtol=1e-9, atol=1e-9)


def test_unroll_of_plain_sequences():
    running_sum = StateMachine(0, lambda s, x: (s + x, s + x))
    assert unroll(running_sum)([1, 2, 3]) == (1, 3, 6)
    assert unroll(running_sum)([]) == ()
    assert unroll(tape(lambda xs: xs[::-1]))("abc") == (("a",), ("b", "a"), ("c", "b", "a"))


def test_bad_layers_are_named():
    with pytest.raises(ValueError, match="n_heads: expected a divisor of d_model 12, got 5"):
        SoftmaxAttention(D, 5)
    with pytest.raises(ValueError, match="feature_map: expected one of elu_plus_one"):
        LinearAttention(D, 2, feature_map="sigmoid")
    with pytest.raises(ValueError, match="degree: expected 0 or more, got -1"):
        TaylorAttention(D, 2, degree=-1)
    with pytest.raises(ValueError, match="k: expected at least 1, got 0"):
        KGram(D, 0, 4)

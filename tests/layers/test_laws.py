"""The two-faces law, once for every layer: unroll(layer.machine())(x) == layer(x)."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments.sampling_speed import state_bytes
from lsa import (
    GPT,
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
from lsa.layers import LAYERS, KVCache, make_layer
from lsa.layers.softmax import positions_as_features
from lsa.linear_attention.feature_maps import FEATURE_MAPS
from lsa.linear_attention.functional import MODES
from lsa.machines import StateMachine

D = 12
DECAY = (-0.7, 0.0, -0.1)
# Every layer of the catalogue as it is by default, and then with its options.
CASES = {
    **{name: lambda name=name: make_layer(name, D, 3) for name in LAYERS},
    "softmax-decay": lambda: SoftmaxAttention(D, 3, log_decay=DECAY),
    **{
        f"linear-decay-{mode}": lambda mode=mode: LinearAttention(
            D, 3, mode=mode, chunk_size=4, log_decay=DECAY
        )
        for mode in MODES
    },
    **{f"linear-{mode}": lambda mode=mode: LinearAttention(D, 3, mode=mode) for mode in MODES},
    "linear-unnormalized": lambda: LinearAttention(D, 2, normalize=False, chunk_size=3),
    **{
        f"linear-{name}": lambda name=name: LinearAttention(D, 2, feature_map=name)
        for name in FEATURE_MAPS
        if name != "identity"
    },
    "linear-identity": lambda: LinearAttention(D, 2, feature_map="identity", normalize=False),
    **{f"taylor-{n}": lambda n=n: TaylorAttention(D, 3, degree=n) for n in (0, 2, 4)},
    "deep-rnn": lambda: DeepRNN(D, 3),
    **{f"kgram-{k}": lambda k=k: KGram(D, k, 16) for k in (1, 4)},
}
layers = pytest.mark.parametrize("name", CASES)


@layers
@given(B=st.integers(1, 3), T=st.integers(0, 20))
def test_unrolled_machine_is_the_layer(name, B, T):
    layer = CASES[name]().double()
    x = torch.randn(B, T, D, dtype=torch.float64)
    torch.testing.assert_close(unroll(layer.machine())(x), layer(x), rtol=1e-9, atol=1e-9)


@layers
@given(B=st.integers(1, 3), cuts=st.lists(st.integers(0, 9), max_size=5))
def test_prefill_in_pieces_is_the_layer(name, B, cuts):
    layer = CASES[name]().double()
    x = torch.randn(B, sum(cuts), D, dtype=torch.float64)
    machine = layer.machine()
    state, pieces = machine.initial_state, [layer(x[:, :0])]
    for piece in x.split(cuts, dim=1):
        state, y = machine.prefill(state, piece)
        pieces.append(y)
    torch.testing.assert_close(torch.cat(pieces, 1), layer(x), rtol=1e-9, atol=1e-9)


@layers
def test_gradients_pass_through_both_faces(name):
    layer = CASES[name]().double()
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
    assert is_causal_at(CASES[name]().double(), torch.randn(1, T, D).double(), atol=1e-9)


@layers
@pytest.mark.parametrize(("dtype", "allowed"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_the_law_holds_in_lower_precision(name, dtype, allowed):
    layer, x = CASES[name]().to(dtype), torch.randn(2, 17, D).to(dtype)
    with torch.no_grad():
        whole, ticked = layer(x), unroll(layer.machine())(x)
    assert whole.dtype == ticked.dtype == dtype
    error = (ticked - whole).float().norm() / whole.float().norm()
    assert error < allowed


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
def test_the_tape_of_the_last_output_is_the_layer(name):
    layer = CASES[name]().double()
    x = torch.randn(2, 6, D, dtype=torch.float64)
    machine = tape(lambda prefix: layer(prefix)[:, -1])
    torch.testing.assert_close(unroll(machine)(x), layer(x), rtol=1e-9, atol=1e-9)


@layers
@given(T=st.integers(1, 12))
def test_the_last_answer_alone_is_the_last_of_all(name, T):
    layer = CASES[name]().double()
    x = torch.randn(2, T, D, dtype=torch.float64)
    machine = layer.machine()
    _, y = machine.read(machine.initial_state, x)
    torch.testing.assert_close(y, layer(x)[:, -1], rtol=1e-9, atol=1e-9)


@layers
def test_a_layer_tells_the_size_of_its_state(name):
    layer = CASES[name]()
    if getattr(layer, "log_decay", None) is not None or isinstance(layer, DeepRNN):
        return  # keys that know their position are wider; a stack is the sum of its layers
    machine, x = layer.machine(), torch.randn(1, 9, D)
    state = machine.initial_state
    for t in range(1, 10):
        with torch.no_grad():
            state, _ = machine.step(state, x[:, t - 1])
        assert state_bytes(state) == 4 * layer.state_numbers(t)


def test_weights_that_fade_are_those_of_the_definition():
    """Softmax with decay, written out: scores lose what each token of distance costs."""
    layer = SoftmaxAttention(D, 3, log_decay=DECAY).double()
    x = torch.randn(2, 30, D, dtype=torch.float64)
    q, k, v = (heads.transpose(1, 2) for heads in layer.qkv(x))
    gap = torch.arange(30)[:, None] - torch.arange(30)
    scores = q @ k.transpose(-1, -2) / 4**0.5 + torch.tensor(DECAY)[:, None, None] * gap
    A = scores.masked_fill(gap < 0, float("-inf")).softmax(-1)
    wanted = layer.out((A @ v).transpose(1, 2))
    torch.testing.assert_close(layer(x), wanted, rtol=1e-6, atol=1e-6)


def test_positions_stay_exact_in_bf16_for_a_long_text():
    """-0.171875 halves a weight about every four tokens; 70,000 of them make 12,000."""
    T, slope = 70_000, torch.tensor([0.171875])
    zeros = torch.zeros(1, T, 1, 64, dtype=torch.bfloat16)
    q, k, _ = positions_as_features(zeros, zeros, zeros, slope, 0)
    last = (q[0, -1, 0].double() @ k[0, :, 0].double().T) * 64**-0.5
    assert torch.equal(last, slope.double() * torch.arange(T))


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
    with pytest.raises(ValueError, match="degree: expected a whole number, 0 or more, got -1"):
        TaylorAttention(D, 2, degree=-1)
    with pytest.raises(ValueError, match="k: expected at least 1, got 0"):
        KGram(D, 0, 4)

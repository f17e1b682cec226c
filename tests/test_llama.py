"""Llama: the law for every way its heads can attend, and what each way sees."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from lsa import is_causal_at, unroll
from lsa.layers.mixes import SoftmaxMix
from lsa.llama import Llama, LlamaConfig, rotated
from lsa.machines import state_bytes
from tests.examples import examples
from tests.helpers import in_pieces

TINY = {
    "vocab_size": 11, "n_layer": 2, "n_head": 6, "n_kv_head": 3, "head_width": 4, "d_model": 16,
    "d_mlp": 24,
}  # fmt: skip
NEAR = {"window": 3, "first": 2}
ATTENTIONS = {
    "softmax": {},
    "window": {"all": {"kind": "window", **NEAR}},
    "adjacent": {
        "all": {"kind": "window", **NEAR, "adjacent": True},
        "0.1": {"kind": "window", "window": 4, "first": 1, "adjacent": True},
    },
    "linear": {"all": {"kind": "linear"}},
    "window-state": {"all": {"kind": "window-state", "feature_map": "taylor", **NEAR}},
    "no distance grows": {
        "all": {"kind": "window-state", **NEAR, "adjacent": True, "rotary": False},
        "0.1": {"kind": "window-state", "window": 0, "first": 1, "adjacent": True},
        "1": {"kind": "linear", "feature_map": "taylor", "rotary": False},
    },
    "window-delta": {
        "all": {"kind": "window-delta", **NEAR},
        "1": {"kind": "window-delta", **NEAR, "erase": False},
    },
    "a layer": {"1": {"kind": "linear", "log_decay": [-0.1] * 6}},
    "a head": {"0.5": {"kind": "window", **NEAR}},
    "each its own": {
        "all": {"kind": "window", **NEAR},
        "1": {"kind": "window-state", **NEAR},
        "1.4": {"kind": "softmax"},
        "1.0": {"kind": "linear"},
        "0.3": {"kind": "window", "window": 2},
    },
}
ways = pytest.mark.parametrize("name", ATTENTIONS)


def llama(name="softmax", **changes):
    torch.manual_seed(0)
    model = Llama(LlamaConfig(**{**TINY, **changes}), attention=ATTENTIONS[name])
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(8).add_(0.1 * torch.randn_like(p))  # scores that differ
    return model.double()


@ways
@examples(10)
@given(B=st.integers(1, 2), T=st.integers(1, 20))
def test_the_unrolled_machine_is_the_model(name, B, T):
    model, tokens = llama(name), torch.randint(11, (B, T))
    torch.testing.assert_close(unroll(model.machine())(tokens), model(tokens))


class Largest(TorchDispatchMode):
    """The most numbers that an operation has written to memory of its own."""

    most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and not func.is_view and not func._schema.is_mutable:
            self.most = max(self.most, made.numel())
        return made


@pytest.mark.parametrize("name", ["softmax", "a head"])
def test_a_token_reads_the_cache_and_copies_it_for_no_head(name):
    machine, tokens = llama(name).requires_grad_(False).machine(), torch.randint(11, (1, 200))
    state, _ = machine.prefill(machine.initial_state, tokens)
    with Largest() as largest:
        machine.step(state, tokens[:, 0])
    assert largest.most < 200 * TINY["head_width"]


@ways
@examples(10)
@given(cuts=st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_pieces_are_the_whole(name, cuts):
    model, tokens = llama(name), torch.randint(11, (2, sum(cuts)))
    torch.testing.assert_close(in_pieces(model.machine(), tokens, cuts)[1], model(tokens))


@ways
def test_it_is_causal_and_learns(name):
    model = llama(name)
    assert is_causal_at(lambda x: model(x), torch.randint(11, (1, 9)), atol=1e-9)
    model(torch.randint(11, (2, 12))).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_a_state_grows_with_the_heads_that_look_back():
    sizes = {}
    for name in ATTENTIONS:
        machine = llama(name).machine()
        states = [
            machine.prefill(machine.initial_state, torch.zeros(1, T).long())[0] for T in (20, 40)
        ]
        sizes[name] = [state_bytes(state) for state in states]
    growing = {name for name, (less, more) in sizes.items() if more > less}
    assert growing == {"softmax", "a layer", "a head", "each its own"}
    # The one head of keys that 1.4 reads, and no other: k and v of 20 tokens.
    assert sizes["each its own"][1] - sizes["each its own"][0] == 20 * 2 * 4 * 8
    assert sizes["softmax"][1] - sizes["softmax"][0] == 20 * 2 * 4 * 8 * 3 * 2


def test_heads_attend_otherwise_with_the_same_weights():
    model, tokens = llama(), torch.randint(11, (1, 30))
    before = model(tokens)
    model.attend(ATTENTIONS["window"])
    assert not torch.allclose(model(tokens), before)
    model.attend({"all": {"kind": "window", "window": 30}})
    torch.testing.assert_close(model(tokens), before)
    model.attend({})
    assert torch.equal(model(tokens), before)


def test_grouped_keys_are_those_of_as_many_heads():
    """With keys and values repeated for every query head it is the same model."""
    grouped, full = llama(), llama(n_kv_head=6)
    weights = grouped.state_dict()
    for name, weight in weights.items():
        if "k_proj" in name or "v_proj" in name:
            weights[name] = weight.unflatten(0, (3, 4)).repeat_interleave(2, 0).flatten(0, 1)
    full.load_state_dict(weights)
    tokens = torch.randint(11, (2, 9))
    torch.testing.assert_close(grouped(tokens), full(tokens))


def test_rotary_positions_tell_distances_alone():
    q, k = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64).unbind(0)
    at = [torch.tensor([float(s)]) for s in (5, 0, 105, 100)]
    scores = [
        (rotated(q, later, 1e4) * rotated(k, place, 1e4)).sum() for later, place in (at[:2], at[2:])
    ]
    torch.testing.assert_close(*scores, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(rotated(q, at[1], 1e4), q)


@examples(10)
@given(T=st.integers(1, 20), window=st.integers(1, 4), first=st.integers(0, 3))
def test_first_tokens_next_to_the_window_have_the_positions_of_the_ring(T, window, first):
    """As if each query read the ring alone, from position 0 on."""
    kind = {"kind": "window", "window": window, "first": first, "adjacent": True}
    model = Llama(LlamaConfig(**TINY), attention={"all": kind}).double()
    layer, x = model.blocks[0].self_attn, torch.randn(1, T, TINY["d_model"], dtype=torch.float64)
    expected = []
    for t in range(T):
        seen = [j for j in range(t + 1) if j < first or j > t - window]
        ring = x[:, seen]
        q, k, v = (heads.transpose(1, 2) for heads in layer.qkv(ring, 0))
        k, v = (heads.repeat_interleave(2, 1) for heads in (k, v))
        o = torch.nn.functional.scaled_dot_product_attention(q[:, :, -1:], k, v)
        expected.append(layer.o_proj(o.transpose(1, 2).flatten(-2)))
    torch.testing.assert_close(layer(x), torch.cat(expected, 1), rtol=1e-5, atol=1e-6)


@examples(10)
@given(T=st.integers(1, 20), window=st.integers(0, 4), first=st.integers(1, 3))
def test_a_state_without_rotary_positions_reads_q_and_k_at_position_0(T, window, first):
    """The ring as above; all other tokens weigh phi(q)·phi(k) of unrotated q and k."""
    kind = {
        "kind": "window-state", "window": window, "first": first, "feature_map": "elu_plus_one",
        "adjacent": True, "rotary": False,
    }  # fmt: skip
    model = Llama(LlamaConfig(**TINY), attention={"all": kind}).double()
    layer, x = model.blocks[0].self_attn, torch.randn(1, T, TINY["d_model"], dtype=torch.float64)
    expected = []
    for t in range(T):
        ring = [j for j in range(t + 1) if j < first or j > t - window]
        rest = [j for j in range(t + 1) if j not in ring]
        at = ring if t in ring else [*ring, t]  # without a window the query is none of them
        q, k, v = layer.qkv(x[:, at], 0)
        if t not in ring:
            q = rotated(layer.qkv(x[:, [t]], 0)[0], torch.tensor([first - 1.0]), 1e5)
            k, v = k[:, :-1], v[:, :-1]
        near = torch.einsum("hk,jhk->hj", q[0, -1], k[0].repeat_interleave(2, 1)).div(2).exp()
        raw_q, raw_k, far_v = (
            torch.cat([layer.qkv(x[:, [j]], 0)[part] for j in [*rest, t]], 1) for part in range(3)
        )
        phi_q, phi_k = (torch.nn.functional.elu(y[0]) + 1 for y in (raw_q, raw_k))
        far = torch.einsum("hk,jhk->hj", phi_q[-1], phi_k[:-1].repeat_interleave(2, 1))
        weights, values = torch.cat((near, far), 1), torch.cat((v[0], far_v[0, :-1]))
        o = torch.einsum("hj,jhk->hk", weights, values.repeat_interleave(2, 1))
        expected.append(layer.o_proj((o / weights.sum(1, keepdim=True)).flatten()))
    torch.testing.assert_close(layer(x)[0], torch.stack(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("attention", "expected"),
    [
        ({"2": {"kind": "softmax"}}, "attention: expected 'all', a layer below 2.*, got '2'"),
        ({"0.6": {"kind": "softmax"}}, "attention: expected 'all', a layer .*, got '0.6'"),
        ({"all": {"kind": "cos"}}, "kind: expected one of softmax, window, .*, got 'cos'"),
        ({"all": {}}, "kind: expected one of .*, got None"),
        ({"0": "window"}, "attention: expected a kind and options at 0, got 'window'"),
        (
            {"0": {"kind": "window", "width": 3}},
            "attention: expected an option of window \\(window, first, adjacent\\) at '0'",
        ),
        (
            {"0": {"kind": "softmax", "window": 3}},
            "attention: expected no option of softmax at '0'",
        ),
        (
            {"all": {"kind": "linear", "window": 3}},
            "attention: expected an option of linear \\(feature_map.*\\) at 'all', got 'window'",
        ),
        ({"0": {"kind": "window", "window": 0}}, "window: expected at least 1, got 0"),
        ("window", "attention: expected layers and their kinds, got 'window'"),
    ],
)
def test_what_attention_refuses_is_named(attention, expected):
    with pytest.raises(ValueError, match="^" + expected):
        Llama(LlamaConfig(**TINY), attention=attention)


def test_what_is_refused_changes_nothing():
    model, tokens = llama(), torch.randint(11, (1, 9))
    before = model(tokens)
    with pytest.raises(ValueError, match="window: expected at least 1, got 0"):
        model.attend({"0": {"kind": "window", "window": 2}, "1": {"kind": "window", "window": 0}})
    assert torch.equal(model(tokens), before)
    with pytest.raises(ValueError, match="tokens: expected numbers from 0 to 10, got 11"):
        model(torch.tensor([[3, 11]]))


@ways
def test_tokens_that_do_not_fit_are_named(name):
    model, tokens = llama(name), torch.randint(11, (2, 3))
    machine = model.machine()
    state, _ = machine.prefill(machine.initial_state, tokens)
    for call, expected in (
        (lambda: model(tokens[0]), r"\[B, T\], got \[3\]"),
        (lambda: machine.step(state, tokens), r"a tensor \[B\], got \[2, 3\]"),
        (lambda: machine.prefill(state, tokens[0]), r"a tensor \[B, T\], got \[3\]"),
        (lambda: machine.step(state, tokens[0]), "the state's batch 2, got 3"),
        (lambda: machine.prefill(state, tokens[:1]), "the state's batch 2, got 1"),
    ):
        with pytest.raises(ValueError, match="^tokens: expected " + expected):
            call()


def test_a_shape_that_does_not_fit_is_named():
    for changes, expected in (
        ({"n_kv_head": 4}, "n_kv_head: expected a divisor of n_head 6, got 4"),
        ({"head_width": 3}, "head_width: expected an even number, got 3"),
        ({"rope_base": 0}, "rope_base: expected a finite number above 0, got 0"),
        ({"n_layer": -1}, "n_layer: expected at least 0, got -1"),
    ):
        with pytest.raises(ValueError, match="^" + expected):
            LlamaConfig(**{**TINY, **changes})
    with pytest.raises(ValueError, match="^groups: expected one for each of 3, got 2"):
        SoftmaxMix(3, 4, groups=[0, 0])


@pytest.mark.parametrize(("layers", "last"), [(1, 3), (3, 9)])
def test_each_layer_carries_a_change_one_window_on(layers, last):
    """The answer to an exercise of the chapter on a trained model."""
    near = {"kind": "window", "window": 4, "first": 0}
    model = llama(n_layer=layers)
    model.attend({"all": near})
    tokens = torch.randint(1, 11, (1, 40))
    other = tokens.clone()
    other[0, 0] = 0
    with torch.no_grad():
        changed = (model(tokens) - model(other)).abs().amax(-1)[0] > 0
    assert changed.nonzero().max() == last


def test_the_shape_by_default_is_smollm2s():
    """134,515,008 parameters, of which the embedding is one matrix."""
    with torch.device("meta"):
        model = Llama(LlamaConfig())
    assert sum(p.numel() for p in model.parameters()) == 134_515_008
    assert model.config.max_length == 8192

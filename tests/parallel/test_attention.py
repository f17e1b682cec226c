"""Linear attention over ranks is that of one process: values, states and all gradients."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import softmax_attention
from lsa.attention.api import MODES
from lsa.cost.exchanges import DECAYS, head_exchange, key_exchange, state_exchange
from lsa.layers import GatedLinearAttention, LinearAttention
from lsa.layers.mamba import S6
from lsa.parallel import (
    WAYS,
    Ranks,
    Transition,
    attention_by_heads,
    chain,
    linear_attention,
    ring_attention,
)
from tests.examples import examples
from tests.parallel import tasks

pytestmark = pytest.mark.slow

BOUND = {torch.float64: 1e-12, torch.float32: 1e-6}


def draw(B, T, H, K, V, decay, first, dtype, seed):
    """q, k, v, g, S, z, and weights of o, S_T, z_T in a loss."""
    generator = torch.Generator().manual_seed(seed)

    def new(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    g = {
        "none": lambda: None,
        "head": lambda: -new(H).abs(),
        "token": lambda: -new(B, T, H).abs(),
        "resets": lambda: torch.where(new(B, T, H) > 0.7, -math.inf, -new(B, T, H).abs()),
    }[decay]()
    states = (new(B, H, K, V), new(B, H, K).abs()) if first else (None, None)
    inputs = new(B, T, H, K), new(B, T, H, K), new(B, T, H, V), g, *states
    return inputs, (new(B, T, H, V), new(B, H, K, V), new(B, H, K))


def together(answers, constant):
    """Parts in a row: o, the state that each rank has, and gradients."""
    o = torch.cat([answer[0] for answer in answers], 1)
    grads = []
    for i, each in enumerate(zip(*(answer[2] for answer in answers), strict=True)):
        if i > 3 or each[0] is None:
            grads.append(each[0])  # of the first state: on the first rank
            assert not any(x is not None and x.any() for x in each[1:])
        else:
            grads.append(sum(each) if i == 3 and constant else torch.cat(each, 1))
    return o, [answer[1] for answer in answers], grads


def assert_close(found, wanted, bound, summands=()):
    """The RMS of each error within bound of the largest RMS: one of them may nearly cancel.

    summands: of which the test itself adds up what it compares, and which may cancel as well.
    """
    each = (*wanted, *summands)
    sizes = [x.double().square().mean().sqrt().item() for x in each if x.numel()]
    for x, y in zip(found, wanted, strict=True):
        error = (x.double() - y.double()).square().sum().sqrt()
        assert error <= bound * max(sizes, default=0.0) * math.sqrt(y.numel())


@pytest.mark.parametrize("way", WAYS)
@examples(40)
@given(
    lengths=st.lists(st.integers(0, 5) | st.integers(0, 40), min_size=1, max_size=4),
    sizes=st.tuples(*(st.integers(1, 3) for _ in range(4))),
    decay=st.sampled_from(["none", "head", "token", "resets"]), normalize=st.booleans(),
    mode=st.sampled_from(MODES), first=st.booleans(), dtype=st.sampled_from([*BOUND]),
    seed=st.integers(0, 9),
)  # fmt: skip
def test_ranks_are_one_process(
    pool, way, lengths, sizes, decay, normalize, mode, first, dtype, seed
):
    B, H, K, V = sizes
    inputs, weights = draw(B, sum(lengths), H, K, V, decay, first, dtype, seed)
    feature_map = "softplus" if normalize else "identity"
    options = {"normalize": normalize, "mode": mode, "chunk_size": 4, "feature_map": feature_map}
    answers = pool.run(len(lengths), tasks.attention, way, lengths, inputs, weights, options)
    o, states, grads = together(answers, decay == "head")
    wide = ([x if x is None else x.double() for x in each] for each in (inputs, weights))
    wanted_o, wanted_state, wanted_grads = tasks.attention(
        None, way, [sum(lengths)], *wide, options
    )
    assert {x.dtype for state in states for x in state} == {dtype}
    for state in states:
        assert_close([o, *state], [wanted_o, *wanted_state], BOUND[dtype])
    assert_close(
        *([x for x in each if x is not None] for each in (grads, wanted_grads)),
        BOUND[dtype],
        [answer[2][3] for answer in answers if decay == "head"],
    )


@examples(20)
@given(decays=st.lists(st.none() | st.floats(0, 1), min_size=3, max_size=3))
def test_chained_transitions_are_one_after_another(decays):
    state, *added = torch.arange(8.0, dtype=torch.float64).reshape(4, 2)
    parts = [
        Transition(x, None if decay is None else torch.tensor(decay, dtype=x.dtype))
        for x, decay in zip(added, decays, strict=True)
    ]
    one, two, three = parts
    for whole in (chain(chain(one, two), three), chain(one, chain(two, three))):
        torch.testing.assert_close(whole(state), three(two(one(state))))


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("way", WAYS)
def test_bytes_are_those_of_the_formula(pool, decay, way):
    """Counted at the exchanges; the same for every length, and backward as forward."""
    B, H, K, V = sizes = 2, 3, 4, 5
    for P in (2, 3, 4):
        wanted = state_exchange(P, B=B, H=H, K=K, V=V, decay=decay, way=way)
        for T in (1, 50):
            answers = pool.run(P, tasks.traffic, "linear", way, T, sizes, decay)
            forward, backward = zip(*answers, strict=True)
            assert max(received for _, received, _ in forward) == wanted
            assert max(sent for sent, _, _ in backward) == wanted
            if way == "gather":
                assert {*forward, *backward} == {(wanted, wanted, 1)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("layer", "numbers"),
    [  # of two sequences, which only decays that depend on no token share
        (LinearAttention(8, 2), 2 * 2 * 4 * 5),
        (LinearAttention(8, 2, log_decay=[-0.3, 0.0]), 2 * 2 * 4 * 5 + 2),
        (GatedLinearAttention(8, 2, decay="head"), 2 * 2 * (4 * 4 + 1)),
        (GatedLinearAttention(8, 2, decay="channel"), 2 * 2 * (4 * 4 + 4)),
        (S6(8, d_state=3), 2 * 8 * 2 * 3),
    ],
)
def test_bytes_of_layers_are_those_of_the_chapters_table(pool, layer, numbers, way):
    """The transition of each head or channel, float32, for every number of tokens."""
    wanted = 4 * numbers * 2  # of two other ranks
    for T in (1, 20):
        forward, backward = zip(*pool.run(3, tasks.layer_traffic, way, layer, T), strict=True)
        assert max(received for _, received, _ in forward) == wanted
        assert max(sent for sent, _, _ in backward) == wanted


def test_a_rings_bytes_are_those_of_the_formula(pool):
    B, H, K, V = sizes = 2, 3, 4, 5
    for P, T in ((2, 8), (3, 9), (4, 40)):
        wanted = key_exchange(P, T, B=B, H=H, K=K, V=V, itemsize=4)
        for forward, backward in pool.run(
            P, tasks.traffic, "ring", "gather", T // P, sizes, "none"
        ):
            told = 8 * (P - 1)  # of how many tokens each has
            assert forward == (wanted + told, wanted + told, P)
            assert backward == (wanted, wanted, P - 1)


@pytest.mark.parametrize(
    ("way", "P"), [("ring", 2), ("ring", 3), ("ring", 4), ("heads", 2), ("heads", 3)]
)
@examples(6)
@given(data=st.data(), B=st.integers(1, 2), H=st.integers(3, 5), seed=st.integers(0, 9))
def test_softmax_over_ranks_is_softmax(pool, way, P, data, B, H, seed):
    """Also where the ranks do not divide the heads."""
    lengths = data.draw(st.lists(st.integers(0, 9), min_size=P, max_size=P))
    generator = torch.Generator().manual_seed(seed)
    *inputs, weights = (
        torch.randn(B, sum(lengths), H, n, generator=generator, dtype=torch.float64)
        for n in (3, 3, 4, 4)
    )
    answers = pool.run(P, tasks.softmax, way, lengths, inputs, weights)
    leaves = [x.requires_grad_() for x in inputs]
    o = softmax_attention(*leaves)
    grads = torch.autograd.grad((o * weights).sum(), leaves, materialize_grads=True)
    found = [torch.cat(x, 1) for x in zip(*((o, *grads) for o, grads in answers), strict=True)]
    for x, y in zip(found, (o, *grads), strict=True):
        torch.testing.assert_close(x, y.detach(), rtol=1e-11, atol=1e-11)


def test_bytes_by_heads_are_those_of_the_formula(pool):
    """Of the busiest rank, which has a head more where the ranks do not divide them."""
    B, H, K, V = sizes = 2, 3, 4, 5
    for P, T in ((2, 8), (3, 9)):
        wanted = head_exchange(P, T, B=B, H=H, K=K, V=V, itemsize=4)
        found = pool.run(P, tasks.traffic, "heads", "gather", T // P, sizes, "none")
        told = 8 * (P - 1)  # of how many tokens each has
        forward, backward = zip(*found, strict=True)
        assert max(received for _, received, _ in forward) == wanted + told
        assert max(sent for sent, _, _ in backward) == wanted
        assert {calls for *_, calls in forward} == {3} and {calls for *_, calls in backward} == {2}


def test_what_does_not_fit_is_named_before_an_exchange():
    q = torch.rand(1, 3, 2, 4)
    ranks = object.__new__(Ranks)
    for changes, message in (
        ({"ranks": None}, "ranks: expected a Ranks, got None"),
        ({"log_decay": [-0.1, -0.1]}, "log_decay: expected a floating tensor, got list"),
        ({"log_decay": -torch.ones(3)}, r"log_decay: expected \[2\] or \[1, 3, 2\], got \[3\]"),
        ({"log_decay": torch.ones(2)}, "log_decay: expected numbers at most 0, got 1"),
        ({"cu_seqlens": torch.tensor([0, 3])}, "cu_seqlens: expected none with ranks"),
    ):
        with pytest.raises(ValueError, match=message):
            linear_attention(q, q, q, **{"ranks": ranks, **changes})
    for way in (ring_attention, attention_by_heads):
        with pytest.raises(ValueError, match="^scale: expected a finite number above 0"):
            way(q, q, q, ranks=ranks, scale=-1.0)

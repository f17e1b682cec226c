"""Packed documents and filled-up prompts: none sees another, and each is what it is alone."""

from itertools import accumulate

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import GPT, LAYERS, GPTConfig, LinearState, linear_attention, sample
from lsa.attention import MODES
from lsa.layers.mamba import S6
from lsa.layers.softmax import SoftmaxAttention
from tests.examples import examples
from tests.layers.layer_cases import CASES, D

# Zero-order hold, which one of the cases of S6 has, is refused.
LAYER_CASES = [
    name for name, made in CASES.items() if getattr(made(), "packs", False) and name != "s6-steps"
]
lengths = st.lists(st.integers(0, 9), min_size=1, max_size=5)


@pytest.mark.parametrize("name", LAYER_CASES)
@examples(15, deadline=None)
@given(lengths=lengths, seed=st.integers(0, 9))
def test_packed_documents_are_each_alone(name, lengths, seed):
    """Values and gradients of inputs and weights: T of 0, 1 and more, empty documents too."""
    torch.manual_seed(seed)
    layer = CASES[name]().double()
    x = torch.randn(1, sum(lengths), D, dtype=torch.float64, requires_grad=True)
    packed = layer(x, cu_seqlens=torch.tensor([0, *accumulate(lengths)]))
    alone = torch.cat([layer(one) for one in x.split(lengths, 1)], 1)
    torch.testing.assert_close(packed, alone, rtol=1e-9, atol=1e-9)
    leaves, w = (x, *layer.parameters()), torch.randn_like(alone)
    found, wanted = (
        torch.autograd.grad((y * w).sum(), leaves, allow_unused=True, materialize_grads=True)
        for y in (packed, alone)
    )
    torch.testing.assert_close(found, wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", LAYER_CASES)
def test_each_row_of_a_batch_is_packed_by_itself(name):
    """Rows laid end to end: a row begins a document whether the numbers say so or not."""
    layer, x = CASES[name]().double(), torch.randn(2, 7, D).double()
    packed = layer(x, cu_seqlens=torch.tensor([0, 3, 9, 14], dtype=torch.int32))
    pieces = (x[:1, :3], x[:1, 3:], x[1:, :2], x[1:, 2:])
    a, b, c, d = (layer(one) for one in pieces)
    wanted = torch.cat((torch.cat((a, b), 1), torch.cat((c, d), 1)))
    torch.testing.assert_close(packed, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_the_state_returned_is_that_of_the_last_document(mode):
    q, k, v = torch.rand(3, 1, 9, 2, 4).double().unbind()
    options = {"mode": mode, "chunk_size": 4, "return_state": True}
    _, state = linear_attention(q, k, v, cu_seqlens=torch.tensor([0, 2, 6, 9]), **options)
    _, alone = linear_attention(q[:, 6:], k[:, 6:], v[:, 6:], **options)
    torch.testing.assert_close(tuple(state), tuple(alone), rtol=1e-12, atol=1e-12)


def gpt(attention, **options):
    torch.manual_seed(0)
    shape = {"vocab_size": 11, "n_positions": 16, "n_layer": 2, "n_head": 2, "d_model": 8}
    return GPT(GPTConfig(**shape, attention=attention, **options)).double()


PACKED = [name for name, layer in LAYERS.items() if getattr(layer, "packs", False)]


@pytest.mark.parametrize("attention", PACKED)
def test_a_gpt_reads_packed_documents_and_filled_up_rows(attention):
    """Positions begin anew too: three documents of 9 in a row longer than n_positions."""
    model = gpt(attention)
    tokens = torch.randint(11, (1, 27))
    logits = model(tokens, cu_seqlens=torch.tensor([0, 9, 18, 27]))
    wanted = torch.cat([model(one) for one in tokens.split(9, 1)], 1)
    torch.testing.assert_close(logits, wanted, rtol=1e-9, atol=1e-9)
    # Two prompts, of 3 and 5 tokens, filled up on the left to 5.
    rows = torch.randint(11, (2, 5))
    logits = model(rows, cu_seqlens=torch.tensor([0, 2, 5, 10]))
    torch.testing.assert_close(logits[:1, 2:], model(rows[:1, 2:]), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(logits[1:], model(rows[1:]), rtol=1e-9, atol=1e-9)


def test_the_layers_that_read_packed_documents():
    assert {"linear", "gated", "softmax", "window", "s6"} <= set(PACKED)


@pytest.mark.parametrize("attention", sorted(set(LAYERS) - set(PACKED) - {"kgram"}))
def test_the_other_layers_refuse_in_one_line(attention):
    with pytest.raises(ValueError, match=r"cu_seqlens: expected attention softmax, .*; one doc"):
        gpt(attention)(torch.randint(11, (1, 6)), cu_seqlens=torch.tensor([0, 2, 6]))


@pytest.mark.parametrize(
    ("cu_seqlens", "message"),
    [
        ([0, 6], r"cu_seqlens: expected a tensor \[N \+ 1\], got list"),
        (torch.tensor([0.0, 6.0]), r"expected int32 or int64 \[N \+ 1\], got torch.float32 \[2\]"),
        (torch.tensor([[0, 6]]), r"expected int32 or int64 \[N \+ 1\], got torch.int64 \[1, 2\]"),
        (torch.tensor([0, 7]), r"expected to rise from 0 to B T = 6, got \[0, 7\]"),
        (torch.tensor([0, 4, 3, 6]), r"to rise from 0 to B T = 6, got \[0, 4, 3, 6\]"),
        (torch.tensor([2, 6]), r"expected to rise from 0 to B T = 6, got \[2, 6\]"),
        (torch.tensor([], dtype=torch.int64), r"expected to rise from 0 to B T = 6, got \[\]"),
        (torch.tensor([0, 6], device="meta"), "cu_seqlens: expected device cpu, got meta"),
    ],
)
def test_ends_that_do_not_fit_are_named(cu_seqlens, message):
    q = torch.rand(1, 6, 1, 2)
    for call in (
        lambda: linear_attention(q, q, q, cu_seqlens=cu_seqlens),
        lambda: SoftmaxAttention(D, 1)(torch.rand(1, 6, D), cu_seqlens=cu_seqlens),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_what_packed_documents_exclude_is_named():
    q, ends = torch.rand(1, 6, 1, 2), torch.tensor([0, 6])
    state = LinearState(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2))
    with pytest.raises(ValueError, match="initial_state: expected none beside cu_seqlens"):
        linear_attention(q, q, q, cu_seqlens=ends, initial_state=state)
    with pytest.raises(ValueError, match="cu_seqlens: expected input_rule euler, got zoh"):
        S6(D, input_rule="zoh")(torch.rand(1, 6, D), cu_seqlens=ends)
    with pytest.raises(ValueError, match="expected at most n_positions = 16 of them, got 17"):
        gpt("softmax")(torch.zeros(1, 20, dtype=torch.int64), torch.tensor([0, 17, 20]))


@pytest.mark.parametrize("attention", ["linear", "softmax", "rwkv", "window"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_prompts_of_several_lengths_are_continued_as_alone(attention, side):
    model, T = gpt(attention), 5
    lengths = (3, 5, 1, 3)
    prompt, mask = torch.full((4, T), -1), torch.zeros(4, T, dtype=torch.bool)
    alone = [torch.randint(11, (1, n)) for n in lengths]
    for row, one in enumerate(alone):
        at = slice(T - lengths[row], T) if side == "left" else slice(lengths[row])
        prompt[row, at], mask[row, at] = one[0], True
    options = {"max_tokens": 6, "temperature": 0}
    found = torch.stack([*sample(model.machine(), prompt, mask=mask, **options)])
    wanted = [torch.stack([*sample(model.machine(), one, **options)]) for one in alone]
    assert torch.equal(found, torch.cat(wanted, 1))
    whole = torch.stack([*sample(model.machine(), alone[1], mask=mask[1:2], **options)])
    assert torch.equal(whole, wanted[1])


def test_a_mask_that_does_not_fit_is_named():
    machine, prompt = gpt("linear").machine(), torch.zeros(2, 4, dtype=torch.int64)
    for mask, message in (
        (torch.ones(2, 4), r"mask: expected bool \[2, 4\] on cpu, got float32 \[2, 4\] on cpu"),
        (torch.ones(4, dtype=torch.bool), r"mask: expected bool \[2, 4\] on cpu, got bool \[4\]"),
        ([[True]], r"mask: expected a tensor \[B, T\], got list"),
        (prompt.bool(), "mask: expected at least one token a row, got none in row 0"),
    ):
        with pytest.raises(ValueError, match=message):
            sample(machine, prompt, max_tokens=1, mask=mask)
    none = prompt[:0]
    assert [one.shape for one in sample(machine, none, max_tokens=1, mask=none.bool())] == [(0,)]


def test_a_mask_is_no_list_of_ends():
    """It would make a document of every token."""
    mask, x = torch.ones(2, 6, dtype=torch.bool), torch.rand(2, 6, 1, 4)
    expected = r"^cu_seqlens: expected int32 or int64 \[N \+ 1\], got torch.bool \[2, 6\]$"
    with pytest.raises(ValueError, match=expected):
        linear_attention(x, x, x, cu_seqlens=mask)
    with pytest.raises(ValueError, match=expected):
        CASES["gated-normalized"]()(torch.rand(2, 6, D), cu_seqlens=mask)

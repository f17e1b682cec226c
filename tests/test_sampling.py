"""Sampling, written once over machines, draws what the logits say, repeatably."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import GPT, GPTConfig, StateMachine, sample
from lsa.sampling import choose

CONFIG = {"vocab_size": 23, "n_positions": 32, "n_layer": 2, "n_head": 2, "d_model": 8}


def machine(attention="softmax"):
    return GPT(GPTConfig(**CONFIG, attention=attention)).double().machine()


def test_a_stream_is_what_the_whole_model_says():
    for attention in ("softmax", "linear"):
        model = GPT(GPTConfig(**CONFIG, attention=attention)).double()
        prompt = torch.randint(23, (2, 5))
        tokens = torch.stack(list(sample(model.machine(), prompt, max_tokens=9, temperature=0)), 1)
        text = torch.cat((prompt, tokens), 1)
        assert torch.equal(model(text)[:, 4:-1].argmax(-1), tokens)


@pytest.mark.parametrize("attention", ["softmax", "linear", "window"])
def test_what_was_read_need_not_be_read_again(attention):
    m, text = machine(attention), torch.randint(23, (2, 9))
    state, _ = m.prefill(m.initial_state, text[:, :6])
    read = replace(m, initial_state=state)
    both = (
        torch.stack([*sample(which, prompt, max_tokens=9, seed=0)])
        for which, prompt in ((m, text), (read, text[:, 6:]))
    )
    assert torch.equal(*both)


def test_a_seed_repeats_and_another_does_not():
    m = machine()
    prompt = torch.zeros(1, 1, dtype=torch.long)
    first, again, other = (
        torch.stack(list(sample(m, prompt, max_tokens=20, seed=seed))) for seed in (1, 1, 2)
    )
    assert first.shape == (20, 1)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_positions_end_the_text():
    prompt = torch.zeros(1, 30, dtype=torch.long)
    # 32 positions can be read: the 30 given and two more; a third is drawn and never read.
    assert len(list(sample(machine(), prompt, max_tokens=100, seed=0))) == 3


def test_streaming_computes_only_what_is_taken():
    ticks = []

    def step(state, token):
        ticks.append(token)
        return state, torch.zeros(1, 4)

    stream = sample(StateMachine((), step), torch.zeros(1, 1, dtype=torch.long), max_tokens=100)
    next(stream)
    next(stream)
    assert len(ticks) == 2


@given(st.integers(1, 30), st.floats(0.05, 1.0), st.floats(0.1, 3.0), st.integers(0, 1000))
def test_only_allowed_tokens_are_drawn(top_k, top_p, temperature, seed):
    g = torch.Generator().manual_seed(seed)
    logits = torch.randn(64, 23, generator=g) * 3
    drawn = choose(logits, temperature, top_k, top_p, g)
    order = logits.argsort(-1, descending=True)
    rank = (order == drawn.unsqueeze(-1)).int().argmax(-1)
    assert (rank < top_k).all()
    kept = min(top_k, 23)
    p = (logits / temperature).gather(-1, order)[:, :kept].softmax(-1)
    before = (p.cumsum(-1) - p).gather(-1, rank.unsqueeze(-1)).squeeze(-1)
    assert (before < top_p + 1e-6).all()


def test_of_equal_logits_no_more_than_k_are_drawn():
    drawn = choose(torch.zeros(200, 9), top_k=2, generator=torch.Generator().manual_seed(0))
    assert drawn.unique().numel() == 2


def test_frequencies_are_the_softmax():
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0])
    g = torch.Generator().manual_seed(0)
    draws = choose(logits.expand(40000, 4), generator=g)
    counts = torch.bincount(draws, minlength=4) / 40000
    torch.testing.assert_close(counts, logits.softmax(-1), atol=0.01, rtol=0)


@pytest.mark.parametrize("temperature", [0.0, 1e-320, 1e-40, 1e-38, 2e-38])
def test_a_temperature_that_logits_overflow_by_takes_the_largest(temperature):
    logits = torch.tensor([[1.0, 3.0, 2.0], [-9.0, 0.0, -1.0], [-5.0, -7.0, -float("inf")]])
    for wide in (logits, logits.double(), logits.bfloat16()):
        for top_p in (None, 0.5, 1e-320):
            assert choose(wide, temperature, 2, top_p).tolist() == [1, 1, 0]
    m = machine()
    prompt = torch.zeros(1, 1, dtype=torch.long)
    surest, cold = (
        torch.stack(list(sample(m, prompt, max_tokens=4, temperature=t))) for t in (0, temperature)
    )
    assert torch.equal(surest, cold)


def test_a_row_that_overflows_leaves_the_others_their_chance():
    logits = torch.tensor([[3e38, -3e38, 2e38], [0.0, 0.0, 0.0]]).repeat(100, 1)
    g = torch.Generator().manual_seed(0)
    certain, open_ = choose(logits, 0.1, generator=g).view(100, 2).unbind(-1)
    assert certain.unique().tolist() == [0] and open_.unique().tolist() == [0, 1, 2]
    wide = torch.tensor([[1e300, 1e299]], dtype=torch.double)
    assert [choose(wide, t).item() for t in (0, 1.0, 1e30)] == [0, 0, 0]


def test_of_a_probability_of_nothing_the_first_stays():
    assert choose(torch.tensor([[0.0, 5.0, 1.0]]), top_p=1e-320).item() == 1


def test_every_seed_that_is_allowed_is_taken():
    prompt = torch.zeros(1, 1, dtype=torch.long)
    for seed in (0, 2**63, 2**64 - 1):
        assert len(list(sample(machine(), prompt, max_tokens=2, seed=seed))) == 2


def test_no_text_at_all_has_no_next_token():
    assert choose(torch.zeros(0, 4), 0.0).shape == (0,)

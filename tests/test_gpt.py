"""GPT-2 is GPT-2: the same weights give Hugging Face's logits."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import GPT, LAYERS, GPTConfig, gpt_config, sample, unroll
from lsa.gpt import gpt2_state_dict, next_token_loss
from lsa.layers import S6, ResidualLinear
from tests.examples import examples


def test_agrees_with_hugging_face():
    transformers = pytest.importorskip("transformers")
    theirs_config = transformers.GPT2Config(
        vocab_size=101, n_positions=64, n_embd=48, n_layer=3, n_head=4, attn_implementation="eager"
    )
    theirs = transformers.GPT2LMHeadModel(theirs_config).eval()
    ours = GPT(GPTConfig(vocab_size=101, n_positions=64, n_layer=3, n_head=4, d_model=48)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():  # biases and gains too, not only their start values
            parameter.add_(0.3 * torch.randn_like(parameter))
    ours.load_state_dict(gpt2_state_dict(theirs.state_dict()))
    tokens = torch.randint(101, (3, 64))
    with torch.no_grad():
        torch.testing.assert_close(ours(tokens), theirs(tokens).logits, rtol=1e-5, atol=1e-5)
    untied = theirs.state_dict() | {"lm_head.weight": torch.zeros(101, 48)}
    with pytest.raises(ValueError, match=r"lm_head.weight: expected wte.weight, got other weights"):
        gpt2_state_dict(untied)


@pytest.mark.parametrize(
    ("scale", "millions"), [("124M", 124.4), ("355M", 354.8), ("774M", 774.0), ("1.5B", 1557.6)]
)
def test_the_scales_are_gpt2s(scale, millions):
    """Counted on the meta device, positions included, as the counts are usually quoted."""
    with torch.device("meta"):
        model = GPT(gpt_config(scale))
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.1)


def test_loss_of_an_untrained_model_is_that_of_guessing():
    model = GPT(gpt_config("nano", vocab_size=256, n_positions=32))
    tokens = torch.randint(256, (4, 33))
    loss = next_token_loss(model(tokens[:, :-1]), tokens[:, 1:])
    assert loss.item() == pytest.approx(torch.tensor(256.0).log().item(), abs=0.15)
    without = tokens[:, 1:].masked_fill(torch.arange(32) < 16, -100)  # tokens that do not count
    wanted = next_token_loss(model(tokens[:, :-1])[:, 16:], tokens[:, 17:])
    torch.testing.assert_close(next_token_loss(model(tokens[:, :-1]), without), wanted)


def tiny(attention, **changes):
    shape = {"vocab_size": 17, "n_positions": 12, "n_layer": 2, "n_head": 2, "d_model": 8}
    return GPT(GPTConfig(**shape | changes, attention=attention))


@pytest.mark.parametrize("attention", LAYERS)
@examples(8)
@given(T=st.integers(0, 12))
def test_the_law_holds_for_the_whole_gpt(attention, T):
    model = tiny(attention).double().requires_grad_(False)
    tokens = torch.randint(17, (2, T))
    torch.testing.assert_close(unroll(model.machine())(tokens), model(tokens), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("attention", LAYERS)
def test_a_gpt_with_any_layer_learns_and_samples(attention):
    model = tiny(attention)
    tokens = torch.arange(13).repeat(2, 1) % 3
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        optimiser.zero_grad()
        loss = next_token_loss(model(tokens[:, :-1]), tokens[:, 1:])
        loss.backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
        optimiser.step()
        losses.append(loss.item())
    assert losses[2] < losses[0]
    drawn = list(sample(model.machine(), tokens[:, :4], max_tokens=3))
    assert [token.shape for token in drawn] == [(2,)] * 3


@pytest.mark.parametrize(
    ("attention", "rate"),
    [("mamba", "ssm.dt_proj"), ("s6", "dt_proj"), ("gated", "gate.proj")],
)
def test_rates_of_forgetting_start_where_their_papers_say(attention, rate):
    """softplus of the bias lies in [0.001, 0.1]; a model's own start would make it 0.69."""
    layer = tiny(attention).h[0].attn
    rates = torch.nn.functional.softplus(layer.get_submodule(rate).bias)
    assert rates.min() > 0.9e-3
    assert rates.max() < 0.11
    if attention == "s6":  # its inputs are dt_rank numbers
        assert 0.4 < S6(64, dt_rank=4).dt_proj.weight.abs().max() <= 0.5


def test_a_layer_that_needs_a_length_takes_the_models():
    assert tiny("aft-full").h[0].attn.max_length == 12
    options = {"max_length": 5}
    assert tiny("aft-full", attention_options=options).h[0].attn.max_length == 5


# These two end in no projection: a state space and a convolution of the channels themselves.
ENDS_IN_NO_PROJECTION = {"s6", "conv"}


@pytest.mark.parametrize("attention", LAYERS)
def test_what_a_branch_adds_starts_small_in_every_layer(attention):
    """Some projection of the layer has GPT-2's residual scale, 0.02 / sqrt(2 n_layer)."""
    model = tiny(attention, n_layer=8, d_model=32)
    scaled = [m for m in model.h[0].attn.modules() if isinstance(m, ResidualLinear)]
    assert len(scaled) == (attention not in ENDS_IN_NO_PROJECTION)
    for module in (*scaled, model.h[0].mlp.c_proj):
        assert module.weight.std().item() == pytest.approx(0.005, rel=0.1)


@pytest.mark.parametrize("attention", ["softmax", "linear", "taylor", "none"])
def test_first_weights_are_those_of_stored_runs(attention):
    """The same draws in the same order as when the runs in `results/` were trained."""
    torch.manual_seed(0)
    sizes = [p.double().abs().sum().item() for p in tiny(attention).parameters()]
    assert sum((i + 1) * size for i, size in enumerate(sizes)) == pytest.approx(896.90747, rel=1e-7)


def test_ranks_are_ranks():
    model = GPT(GPTConfig(vocab_size=9, n_positions=None, n_layer=1, n_head=2, d_model=8))
    with pytest.raises(ValueError, match="^ranks: expected .*Ranks.*, got"):
        model(torch.zeros(1, 3, dtype=torch.long), ranks=3)

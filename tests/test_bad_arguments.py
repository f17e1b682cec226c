"""What scans, costs, losses and draws refuse: the argument named in one line, as in bad inputs."""

from fractions import Fraction
from functools import partial
from random import Random

import pytest
import torch

from lsa import GPT, GPTConfig, gpt_config, is_causal_at, linear_attention, sample
from lsa.cost import (
    best_chunk_size,
    least_bytes,
    least_flops,
    machine_cost,
    mode_cost,
    reference_flops,
    tick_cost,
)
from lsa.gpt import gpt2_state_dict, next_token_loss
from lsa.layers import LAYERS, make_layer
from lsa.sampling import choose
from lsa.scans import scan, selective_scan
from lsa.sequences import sample_by_walking

NAN, INF = float("nan"), float("inf")
TINY = GPTConfig(vocab_size=8, n_positions=4, n_layer=1, n_head=1, d_model=4)
q, P = torch.ones(2, 3, 2, 4), torch.zeros(1, 2, dtype=torch.long)
LOGITS = torch.zeros(1, 2, 8)
m = GPT(TINY).machine()


def la(**changes):
    return linear_attention(**{"q": q, "k": q, "v": q, **changes})


def selective(**changes):
    shapes = {"u": (1, 4, 2), "delta": (1, 4, 2), "A": (2, 3), "B": (1, 4, 3), "C": (1, 4, 3)}
    return selective_scan(**{name: torch.ones(shape) for name, shape in shapes.items()} | changes)


# The argument that is at fault, and the call.
CALLS = [
    *[
        (name, partial(la, mode=mode, **{name: q.to_sparse()}))
        for mode in ("attention", "recurrent", "chunked")
        for name in "qkv"
    ],
    ("q", lambda: la(q=q.to_sparse(), log_decay=torch.zeros(2))),
    ("a", lambda: scan([1], [2])),
    ("b", lambda: scan(q, [2])),
    ("a", lambda: scan(q.long(), q.long())),
    ("b", lambda: scan(q, q > 0)),
    ("a", lambda: scan(torch.tensor(1.0), q)),
    ("a", lambda: scan(q.double(), q)),
    ("a", lambda: scan(q.to("meta"), q)),
    ("mode", lambda: scan(q, q, mode=["tree"])),
    ("A", lambda: selective(A=torch.zeros(2, 3, dtype=torch.complex64))),
    ("u", lambda: selective(u=torch.zeros(1, 4, 2, dtype=torch.long))),
    ("B", lambda: selective(B=[1.0])),
    ("u", lambda: selective(u=None)),
    ("delta", lambda: selective(delta=torch.ones(1, 4, 2, device="meta"))),
    ("initial_state", lambda: selective(initial_state=torch.zeros(1, 2, 3, device="meta"))),
    ("chunk_size", lambda: selective(chunk_size=1.5)),
    ("itemsize", lambda: mode_cost("chunked", 8, 4, 4, itemsize=-2)),
    ("itemsize", lambda: machine_cost("kv cache", 1, 1, itemsize=0)),
    ("itemsize", lambda: tick_cost(gpt_config("nano"), 1, itemsize=0)),
    ("T", lambda: least_bytes(-1, 4, 4)),
    ("K", lambda: least_bytes(8, NAN, 4)),
    ("T", lambda: reference_flops("chunked", -1, 4, 4)),
    ("D", lambda: least_flops(-1, 4, True)),
    ("K", lambda: best_chunk_size(0, 4, 1e12, 1e12)),
    *[
        (f"{name}_per_second", partial(best_chunk_size, 4, 4, **speeds))
        for value in (0, -1.0, NAN, INF, "fast")
        for name, speeds in (
            ("flops", {"flops_per_second": value, "bytes_per_second": 1e12}),
            ("bytes", {"flops_per_second": 1e12, "bytes_per_second": value}),
        )
    ],
    *[
        (name, partial(getattr(make_layer(layer, 8, 2, max_length=4), count), value))
        for layer in LAYERS
        for count, name, values in (
            ("sequence_flops", "T", (-1, 1.5)),
            ("tick_flops", "t", (-1, 0, "x")),
            ("state_numbers", "t", (-1, "x")),
        )
        for value in values
    ],
    ("targets", lambda: next_token_loss(LOGITS, P.float())),
    ("targets", lambda: next_token_loss(LOGITS, P > 0)),
    ("targets", lambda: next_token_loss(LOGITS, P[:, :1])),
    ("targets", lambda: next_token_loss(LOGITS, [[0, 0]])),
    ("logits", lambda: next_token_loss(P, P)),
    ("logits", lambda: next_token_loss([1], P)),
    ("std", lambda: GPT(TINY).initialise(NAN)),
    ("std", lambda: GPT(TINY).initialise(-1)),
    ("std", lambda: GPT(TINY).initialise(None)),
    ("start", lambda: GPT(TINY).embed(P, -1)),
    ("start", lambda: GPT(TINY).embed(P, 1.5)),
    ("prompt", lambda: sample(m, P.to("meta"), max_tokens=1)),
    ("logits", lambda: choose(torch.zeros(1, 8, device="meta"))),
    ("h", lambda: is_causal_at(lambda x: x[:, :1], q)),
    ("h", lambda: is_causal_at(lambda x: None, q)),
    ("atol", lambda: is_causal_at(lambda x: x, q, atol=NAN)),
    *[
        ("p", partial(sample_by_walking, lambda x, p=p: p, "ab", Random(0)))
        for p in (NAN, -1, INF, Fraction(-1, 2))
    ],
]


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_a_call(name, call):
    with pytest.raises(ValueError, match=f"^{name}: expected .*got [^\n]*$") as caught:
        call()
    assert "\n" not in str(caught.value)


def test_bad_arguments_that_torch_would_answer_in_its_own_words():
    logits, model = torch.rand(1, 2, 5), GPT(gpt_config("nano", vocab_size=5))
    machine = model.machine()
    state, _ = machine.prefill(machine.initial_state, P.expand(3, -1))
    eight = torch.rand(1, 4, 1, 4).to(torch.float8_e4m3fn)
    shape = {"n_head": 1, "d_model": 8}
    for call, message in (
        (lambda: linear_attention(eight, eight, eight), "q: expected a floating dtype of 16, 32"),
        (lambda: choose(eight[0, 0]), "logits: expected a floating dtype of 16, 32"),
        (lambda: scan(eight, eight), "a: expected a floating dtype of 16, 32"),
        (lambda: scan(logits[0, 0], logits), r"a: expected \[B, T, ...\], got \[5\]"),
        (lambda: next_token_loss(eight[0], P), "logits: expected a floating dtype of 16, 32"),
        (lambda: next_token_loss(logits, torch.tensor([[1, 7]])), "targets: .* or -100, got 7"),
        (lambda: next_token_loss(logits, torch.tensor([[1, -1]])), "targets: .* or -100, got -1"),
        (lambda: is_causal_at(lambda x: x, torch.rand(4)), r"x: expected \[B, T, ...\], got \[4\]"),
        (lambda: GPT(GPTConfig(n_layer=0, **shape)), "n_layer: expected at least 1, got 0"),
        (lambda: GPT(GPTConfig(vocab_size=0, **shape)), "vocab_size: expected at least 1, got 0"),
        (lambda: machine.step(state, P), r"tokens: expected a tensor \[B\], got \[1, 2\]"),
        (lambda: machine.step(state, 3), r"tokens: expected a tensor \[B\], got int"),
        (lambda: machine.step(state, P[0]), "tokens: expected the state's batch 3, got 2"),
        (lambda: machine.prefill(state, P), "tokens: expected the state's batch 3, got 1"),
        (lambda: model(torch.tensor([1, 2])), r"tokens: expected \[B, T\], got \[2\]"),
        (
            lambda: gpt2_state_dict({"model": {}, "optimizer": {}}),
            r"model: expected a tensor of a state_dict\(\), got dict",
        ),
        (lambda: gpt2_state_dict([P]), "weights: expected a Mapping, got "),
        (
            lambda: gpt2_state_dict({"h.0.attn.c_attn.weight": torch.rand(3)}),
            r"h.0.attn.c_attn.weight: expected two dimensions, got \[3\]",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert next_token_loss(logits, torch.tensor([[1, -100]])).isfinite()

"""Arguments that make no sense: each is named in one line, and nothing else happens.

What a layer's options may not be is in tests/layers/test_bad_options.py.
"""

import re
from dataclasses import replace
from fractions import Fraction
from functools import partial
from random import Random

import pytest
import torch

from lsa import (
    GPT,
    GPTConfig,
    LinearState,
    autoregressive,
    gpt_config,
    is_causal_at,
    linear_attention,
    sample,
    softmax_attention,
)
from lsa.cost import (
    best_chunk_size,
    design_cost,
    least_bytes,
    least_flops,
    machine_cost,
    mode_cost,
    reference_flops,
    tick_cost,
    training_cost,
    training_memory,
    update_flops,
)
from lsa.gpt import gpt2_state_dict, next_token_loss
from lsa.layers import LAYERS, make_layer, window_attention
from lsa.sampling import choose
from lsa.scans import scan, selective_scan
from lsa.sequences import sample_by_walking

NAN, INF, HUGE = float("nan"), float("inf"), 10**400
MODES = ("attention", "recurrent", "chunked")
TINY = GPTConfig(vocab_size=8, n_positions=4, n_layer=1, n_head=1, d_model=4)
NANO = gpt_config("nano")
q, P = torch.ones(2, 3, 2, 4), torch.zeros(1, 2, dtype=torch.long)
S, z = torch.zeros(2, 2, 4, 4), torch.zeros(2, 2, 4)
NESTED = torch.nested.nested_tensor([*q], layout=torch.jagged)
FLOAT8 = q.to(torch.float8_e4m3fn)
LOGITS = torch.zeros(1, 2, 8)
model, m = GPT(TINY), GPT(TINY).machine()
THREE = m.prefill(m.initial_state, P.expand(3, -1))[0]
attend, softmax = (partial(call, q=q, k=q, v=q) for call in (linear_attention, softmax_attention))
window = partial(window_attention, q, q, q, window=8)
draw, pick = partial(sample, m, prompt=P, max_tokens=1), partial(choose, logits=LOGITS[0])
loss = partial(next_token_loss, logits=LOGITS, targets=P)
ones = torch.ones
x, A = ones(1, 3, 2), -ones(2, 2)
select = partial(selective_scan, u=x, delta=x, A=A, B=x, C=x)
SIZES = {"T": 8, "K": 4, "V": 4}
cost = partial(mode_cost, "chunked", **SIZES)
SPEEDS = {"flops_per_second": 1e12, "bytes_per_second": 1e12}
chunk_size = partial(best_chunk_size, 4, 4, **SPEEDS)


def each(call, name, *values):
    """Calls with one argument at fault, by its name."""
    return [(name, partial(call, **{name: value})) for value in values]


# The argument that is at fault, or the beginning of what is said of it, and the call.
ATTENTION = [
    *each(attend, "q", [1, 2], None, q[0], q.to(torch.complex64), FLOAT8),
    *each(attend, "k", q.numpy(), q > 0, q[:1], q[..., :3]),
    ("q: expected a dense tensor .*, got a nested one", partial(attend, q=NESTED)),
    *each(attend, "v", q[:, :2], q[:, :, :1]),
    ("q", partial(attend, q=q[..., :0], k=q[..., :0])),
    *[(n, partial(attend, mode=mode, **{n: q.to_sparse()})) for mode in MODES for n in "qkv"],
    ("q", partial(attend, q=q.to_sparse(), log_decay=torch.zeros(2))),
    ("q: expected a floating dtype of 16, .* got torch.int64", partial(attend, q=q.long())),
    ("v: expected q's device cpu, got meta", partial(attend, v=q.to("meta"))),
    *each(attend, "mode", None, 3, ["chunked"]),
    ("mode: expected one of attention, recurrent, chunked", partial(attend, mode="parallel")),
    *each(attend, "chunk_size", 2.5, "64", -1, True, 2**63),
    ("chunk_size: expected at least 1, got 0", partial(attend, chunk_size=0)),
    *each(attend, "normalize", "no", None),
    *each(attend, "return_state", "x", 1),
    *each(attend, "scale", "1", INF, ones(()), True, ones(9, 9), HUGE, 10**9999, 1e300),
    ("scale", partial(attend, q=q.bfloat16(), k=q.bfloat16(), v=q.bfloat16(), scale=-1e39)),
    *each(attend, "eps", HUGE, 1e300, False, None, -1e-6, NAN, ones(2)),
    *each(attend, "feature_map", 3, torch.relu, 0, [], ""),
    ("feature_map: expected one of elu_plus_one", partial(attend, feature_map="gelu")),
    *each(attend, "initial_state", (S,), S, "zeros"),
    *[
        (f"initial_state.{name}", partial(attend, initial_state=LinearState(*state)))
        for name, *state in [
            ("z", S, None),
            ("S", S.long(), z),
            ("S", S.to(torch.complex64), z),
            ("S", S.to("meta"), z),
            ("S", S[:1], z),
            (r"S: expected \[2, 2, 4, 4\]", S[:, :1], z),
            (r"z: expected \[2, 2, 4\]", S, z[:, :1]),
        ]
    ],
    ("log_decay: expected a floating tensor, got float", partial(attend, log_decay=-0.1)),
    ("log_decay: expected a floating tensor, got torch.int64", partial(attend, log_decay=P[0])),
    ("log_decay: expected q's device cpu, got meta", partial(attend, log_decay=A[0].to("meta"))),
    (r"log_decay: expected \[2\] or \[2, 3, 2\], got \[3\]", partial(attend, log_decay=-ones(3))),
    *each(attend, "log_decay", torch.full((2, 3, 2), 1e-3)),
    *each(attend, "log_decay", *(torch.tensor([-0.1, value]) for value in (NAN, INF, 0.5))),
    *each(softmax, "scale", NAN, -1.0, 0.0, INF, "a", True, ones(2, 2), 1e-300, 1e300, HUGE),
    ("scale", partial(softmax_attention, q.double(), q.double(), q.double(), scale=0)),
    *each(softmax, "q", [1]),
    *each(window, "window", 0, 2.0),
    *each(window, "first", -1),
    *each(window, "scale", 0),
    (r"k: expected q's length 3, got 5", partial(attend, k=ones(2, 5, 2, 4))),
    *[
        (expected, partial(call, **wrong))
        for call in (attend, softmax)
        for expected, wrong in {
            "k: expected q's dtype torch.float32, got torch.float64": {"k": q.double()},
            "k: expected q's batch 4, got 2": {"q": ones(4, 3, 2, 4)},
            "v: expected k's length 3, got 5": {"v": ones(2, 5, 2, 4)},
            "v: expected q's heads 2, got 3": {"v": ones(2, 3, 3, 4)},
            "k: expected q's features 4, got 9": {"k": ones(2, 3, 2, 9)},
            r"q: expected \[B, T, H, features\], got \[3, 2, 4\]": {"q": q[0]},
        }.items()
    ],
]
MODELS = [
    *each(GPTConfig, "vocab_size", -1),
    ("n_layer: expected at least 0, got -1", partial(GPTConfig, n_layer=-1)),
    *each(GPTConfig, "n_layer", 1.5),
    *each(GPTConfig, "n_head", "12"),
    *each(GPTConfig, "d_model", None),
    ("n_positions: expected at least 1, got 0", partial(GPTConfig, n_positions=0)),
    *each(GPTConfig, "n_positions", 1.5),
    *each(GPTConfig, "attention", None, ["linear"]),
    ("attention: expected one of softmax, .*'cos'", partial(GPTConfig, attention="cos")),
    *each(GPTConfig, "bias", "no"),
    *[
        (expected, lambda changes=changes: GPT(replace(TINY, **changes)))
        for expected, changes in {
            "attention_options": {"attention_options": "mode"},
            "n_heads": {"d_model": 10, "n_head": 3},
            "attention_options: expected softmax's log_decay": {"attention_options": {"mode": 1}},
            "mode: expected one of attention": {
                "attention": "linear",
                "attention_options": {"mode": "parallel"},
            },
            "attention_options: expected aft-full's max_length": {
                "attention": "aft-full",
                "n_positions": None,
            },
            "n_layer: expected at least 1, got 0": {"n_layer": 0},
            "vocab_size: expected at least 1, got 0": {"vocab_size": 0},
        }.items()
    ],
    ("scale: expected one of nano, 124M", partial(gpt_config, "13B")),
    *each(gpt_config, "scale", None),
    ("overrides", partial(gpt_config, "nano", layers=3)),
    *each(GPT, "config", None, "nano"),
    *each(model, "tokens", ones(1, 2), P[0, 0], [[1]], P + 8, P - 1),
    (r"tokens: expected \[B, T\], got \[2\]", partial(model, P[0])),
    ("tokens: expected at most n_positions = 4", partial(model, P.expand(5, -1).reshape(1, 10))),
    ("tokens", lambda: GPT(replace(TINY, n_positions=None))(P + 9)),
    ("tokens", partial(m.step, m.initial_state, P[0, :1] + 8)),
    (r"tokens: expected a tensor \[B\], got \[1, 2\]", partial(m.step, THREE, P)),
    (r"tokens: expected a tensor \[B\], got int", partial(m.step, THREE, 3)),
    ("tokens: expected the state's batch 3, got 2", partial(m.step, THREE, P[0])),
    ("tokens: expected the state's batch 3, got 1", partial(m.prefill, THREE, P)),
    *each(partial(model.embed, P), "start", -1, 1.5),
    *each(model.initialise, "std", NAN, -1, None),
    *each(loss, "targets", P.float(), P > 0, P[:, :1], [[0, 0]]),
    ("targets: .* or -100, got 9", partial(loss, targets=P + 9)),
    ("targets: .* or -100, got -1", partial(loss, targets=P - 1)),
    *each(loss, "logits", P, [1]),
    ("logits: expected a floating dtype of 16, 32", partial(loss, logits=FLOAT8[0])),
    (r"model: expected .* a state_dict\(\), got dict", partial(gpt2_state_dict, {"model": {}})),
    ("weights: expected a Mapping, got ", partial(gpt2_state_dict, [P])),
    (
        r"h.0.attn.c_attn.weight: expected two dimensions, got \[3\]",
        partial(gpt2_state_dict, {"h.0.attn.c_attn.weight": ones(3)}),
    ),
]
SAMPLING = [
    *each(draw, "prompt", P[0], P.bool(), P.to("meta")),
    (r"prompt: expected integer tokens \[B, T\]", partial(draw, prompt=[[1]])),
    (r"prompt: expected integer tokens \[B, T\]", partial(draw, prompt=P.float())),
    ("prompt: expected at least one token", partial(draw, prompt=P[:, :0])),
    ("prompt: expected tokens from 0 to 7, got 8", partial(draw, prompt=P + 8)),
    ("prompt: expected tokens from 0 to 7, got -1", partial(draw, prompt=P - 1)),
    ("prompt: expected at most 4 tokens", partial(draw, prompt=P.expand(3, -1).reshape(1, 6))),
    *each(draw, "max_tokens", 1.5, "1"),
    ("max_tokens: expected at least 0", partial(draw, max_tokens=-1)),
    *each(draw, "seed", "a", 1.5, 2**64),
    ("machine", lambda: sample(model, P, max_tokens=1)),
    *[
        (expected, partial(call, **{expected.partition(":")[0]: value}))
        for call in (draw, pick)
        for expected, values in {
            "temperature": ("hot", True, 1e300, HUGE),
            "temperature: expected 0 or more": (-0.1, NAN),
            "top_k": (1.5,),
            "top_k: expected at least 1": (0,),
            "top_p": (2, NAN, True),
            "top_p: expected a number above 0 and at most 1": (0.0,),
        }.items()
        for value in values
    ],
    *each(pick, "generator", 1),
    *each(pick, "logits", [0.0, 1.0], torch.zeros(1, 0), P, torch.zeros(1, 8, device="meta")),
    ("logits: expected a floating dtype of 16, 32", partial(choose, FLOAT8[0, 0])),
    *[
        ("logits", partial(choose, torch.tensor(logits), temperature))
        for logits in ([[-INF, -INF]], [[0.0, 1.0], [-INF, -INF]], [[NAN, NAN]], [[INF, 0.0]])
        for temperature in (0.0, 1.0)
    ],
]
COSTS = [
    *[
        ("mode: expected", partial(f, "x", 8, 4, 4))
        for f in (mode_cost, reference_flops, training_cost)
    ],
    ("design: expected", partial(design_cost, "look-back", 1, 1, 16)),
    (
        "design: expected 'three passes' with decay",
        partial(design_cost, "one pass", 1, 1, 16, decay=True),
    ),
    ("machine: expected one of rnn tape", partial(machine_cost, "turing", 1, 1)),
    *each(cost, "T", -8),
    ("T", partial(mode_cost, "attention", 8.5, 4, 4)),
    *[
        (n, partial(mode_cost, mode, **{**SIZES, n: 0}))
        for mode in ("softmax", *MODES)
        for n in "KV"
    ],
    *each(cost, "chunk_size", 0),
    *each(cost, "itemsize", -2),
    ("itemsize", partial(machine_cost, "kv cache", 1, 1, itemsize=0)),
    ("t", partial(machine_cost, "kv cache", -1, 1)),
    ("n_heads", partial(machine_cost, "linear state", 1, 10, n_heads=3)),
    ("degree", partial(machine_cost, "taylor state", 1, 8, degree=-1)),
    ("T", partial(update_flops, NANO, 0)),
    ("config", partial(update_flops, "nano", 8)),
    ("config", partial(tick_cost, None, 8)),
    ("t", partial(tick_cost, NANO, -1)),
    ("itemsize", partial(tick_cost, NANO, 1, itemsize=0)),
    ("T", partial(least_bytes, -1, 4, 4)),
    ("K", partial(least_bytes, 8, NAN, 4)),
    ("T", partial(reference_flops, "chunked", -1, 4, 4)),
    *each(partial(training_memory, NANO), "tokens", -1),
    *each(partial(training_memory, NANO, 1), "devices", 0),
    *each(partial(training_memory, NANO, 1), "recompute", 1),
    *each(partial(training_memory, tokens=1), "config", None),
    ("D", partial(least_flops, -1, 4, True)),
    ("K", partial(best_chunk_size, 0, 4, 1e12, 1e12)),
    *each(chunk_size, "flops_per_second", 0, -1.0, NAN, INF, "fast"),
    *each(chunk_size, "bytes_per_second", 0, -1.0, NAN, INF, "fast"),
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
]
SCANS = [
    ("mode: expected one of steps, tree, got 'loop'", partial(scan, q, q, mode="loop")),
    ("mode", partial(scan, q, q, mode=["tree"])),
    ("a: expected b's length 3, got 1", partial(scan, q[:, :1], q)),
    *[("a", partial(scan, a, q)) for a in ([1], q.double(), q.to("meta"), torch.tensor(1.0))],
    ("a", partial(scan, q.long(), q.long())),
    *[("b", partial(scan, q, b)) for b in ([2], q > 0)],
    ("a: expected a floating dtype of 16, 32", partial(scan, FLOAT8, FLOAT8)),
    (r"a: expected \[B, T, ...\], got \[5\]", partial(scan, ones(5), q)),
    ("input_rule: expected one of euler, zoh, got 'foh'", partial(select, input_rule="foh")),
    ("mode: expected one of auto, kernel, steps, tree, got 'fft'", partial(select, mode="fft")),
    ("chunk_size: expected at least 1, got 0", partial(select, chunk_size=0)),
    *each(select, "chunk_size", 1.5),
    *each(select, "A", A.to(torch.complex64)),
    *each(select, "u", x.long(), None),
    *each(select, "B", [1.0]),
    *each(select, "delta", x.to("meta")),
    *each(select, "initial_state", torch.zeros(1, 2, 2, device="meta")),
    *[
        (f"{name}: expected {expected}", partial(select, mode=mode, **{name: wrong}))
        for mode in ("auto", "steps", "tree")
        for name, wrong, expected in (
            ("u", x[0], r"\[B, T, D\], got \[3, 2\]"),
            ("delta", x[:, :1], r"\[1, 3, 2\], got \[1, 1, 2\]"),
            ("A", A[:, 0], r"\[D, N\], got \[2\]"),
            ("A", A.repeat(2, 1), r"\[2, 2\], got \[4, 2\]"),
            ("B", x.repeat(2, 1, 1), r"\[1, 3, 2\], got \[2, 3, 2\]"),
            ("C", x[..., :1], r"\[1, 3, 2\], got \[1, 3, 1\]"),
            ("initial_state", torch.zeros(2, 2, 2), r"\[1, 2, 2\]"),
            ("initial_state", torch.zeros(2, 2), r"\[1, 2, 2\]"),
        )
    ],
]
SEQUENCES = [
    (
        "x: expected a sequence of length 2, got 3",
        partial(autoregressive(lambda x: {"a": 1}, 2), "aaa"),
    ),
    *[
        ("p", partial(sample_by_walking, lambda x, p=p: p, "ab", Random(0)))
        for p in (NAN, -1, INF, Fraction(-1, 2), 0)
    ],
    ("x", partial(is_causal_at, lambda x: x, "abc")),
    (r"x: expected \[B, T, ...\], got \[4\]", partial(is_causal_at, lambda x: x, ones(4))),
    ("h", partial(is_causal_at, lambda x: x[:, :1], q)),
    ("h", partial(is_causal_at, lambda x: None, q)),
    ("atol", partial(is_causal_at, lambda x: x, q, atol=NAN)),
]


@pytest.mark.parametrize(
    ("expected", "call"), [*ATTENTION, *MODELS, *SAMPLING, *COSTS, *SCANS, *SEQUENCES]
)
def test_a_call(expected, call):
    begin = expected if ":" in expected else f"{expected}: "
    with pytest.raises(ValueError, match=f"^{begin}") as caught:
        call()
    assert re.fullmatch(".*: expected .*got .*", str(caught.value))

"""A hundred arguments that make no sense: each is named in one line, and nothing else happens."""

import os
import re
from dataclasses import replace
from functools import partial
from random import Random

import pytest
import torch

from experiments.__main__ import main
from lsa import (
    GPT,
    RNN,
    DeepRNN,
    GPTConfig,
    KGram,
    LinearAttention,
    LinearState,
    SoftmaxAttention,
    TaylorAttention,
    autoregressive,
    gpt_config,
    is_causal_at,
    linear_attention,
    sample,
    softmax_attention,
)
from lsa.cost import machine_cost, mode_cost, tick_cost, update_flops
from lsa.layers import make_layer
from lsa.layers.aft import AFTFull, AFTSimple
from lsa.layers.convolution import CausalConv
from lsa.layers.delta import DeltaNet
from lsa.layers.gated import GatedLinearAttention
from lsa.layers.mamba import S6, Mamba
from lsa.layers.power import PowerAttention
from lsa.layers.rwkv import RWKVChannelMixing, RWKVTimeMixing
from lsa.layers.s4 import S4
from lsa.layers.s4d import S4D
from lsa.sampling import choose
from lsa.scans import scan, selective_scan
from lsa.sequences import sample_by_walking

NAN, INF = float("nan"), float("inf")
TINY = GPTConfig(vocab_size=8, n_positions=4, n_layer=1, n_head=1, d_model=4)
q, P = torch.ones(2, 3, 2, 4), torch.zeros(1, 2, dtype=torch.long)
S, z = torch.zeros(2, 2, 4, 4), torch.zeros(2, 2, 4)
m = GPT(TINY).machine()


def la(**changes):
    return linear_attention(**{"q": q, "k": q, "v": q, **changes})


# The argument that is at fault, and the call.
CALLS = [
    ("q", lambda: la(q=[1, 2])),
    ("q", lambda: la(q=None)),
    ("k", lambda: la(k=q.numpy())),
    ("q", lambda: la(q=q[0])),
    ("q", lambda: la(q=q.to(torch.complex64))),
    ("k", lambda: la(k=q > 0)),
    ("v", lambda: la(v=q[:, :2])),
    ("k", lambda: la(k=q[:1])),
    ("v", lambda: la(v=q[:, :, :1])),
    ("q", lambda: la(q=q[..., :0], k=q[..., :0])),
    ("mode", lambda: la(mode=None)),
    ("mode", lambda: la(mode=3)),
    ("mode", lambda: la(mode=["chunked"])),
    ("chunk_size", lambda: la(chunk_size=2.5)),
    ("chunk_size", lambda: la(chunk_size="64")),
    ("chunk_size", lambda: la(chunk_size=-1)),
    ("chunk_size", lambda: la(chunk_size=True)),
    ("chunk_size", lambda: la(chunk_size=2**63)),
    ("chunk_size", lambda: LinearAttention(8, 2, chunk_size=2**63)),
    ("normalize", lambda: la(normalize="no")),
    ("normalize", lambda: la(normalize=None)),
    ("return_state", lambda: la(return_state="x")),
    ("return_state", lambda: la(return_state=1)),
    ("scale", lambda: la(scale="1")),
    ("scale", lambda: la(scale=INF)),
    ("scale", lambda: la(scale=torch.ones(()))),
    ("scale", lambda: la(scale=True)),
    ("scale", lambda: la(scale=torch.ones(9, 9))),
    ("scale", lambda: la(scale=10**400)),
    ("scale", lambda: la(scale=10**9999)),
    ("scale", lambda: la(scale=1e300)),
    ("scale", lambda: la(q=q.bfloat16(), k=q.bfloat16(), v=q.bfloat16(), scale=-1e39)),
    ("eps", lambda: la(eps=10**400)),
    ("eps", lambda: la(eps=1e300)),
    ("eps", lambda: la(eps=False)),
    ("eps", lambda: la(eps=None)),
    ("eps", lambda: la(eps=-1e-6)),
    ("eps", lambda: la(eps=NAN)),
    ("eps", lambda: la(eps=torch.ones(2))),
    ("feature_map", lambda: la(feature_map=3)),
    ("feature_map", lambda: la(feature_map=torch.relu)),
    ("feature_map", lambda: la(feature_map=0)),
    ("feature_map", lambda: la(feature_map=[])),
    ("feature_map", lambda: la(feature_map="")),
    ("initial_state", lambda: la(initial_state=(S,))),
    ("initial_state", lambda: la(initial_state=S)),
    ("initial_state", lambda: la(initial_state="zeros")),
    ("initial_state.z", lambda: la(initial_state=LinearState(S, None))),
    ("initial_state.S", lambda: la(initial_state=LinearState(S.long(), z))),
    ("initial_state.S", lambda: la(initial_state=LinearState(S.to(torch.complex64), z))),
    ("initial_state.S", lambda: la(initial_state=LinearState(S.to("meta"), z))),
    ("initial_state.S", lambda: la(initial_state=LinearState(S[:1], z))),
    ("log_decay", lambda: la(log_decay=-0.1)),
    ("log_decay", lambda: la(log_decay=torch.zeros(2, dtype=torch.long))),
    ("log_decay", lambda: la(log_decay=torch.zeros(3))),
    *[
        ("log_decay", partial(la, log_decay=torch.tensor([-0.1, value])))
        for value in (NAN, INF, 0.5)
    ],
    ("log_decay", lambda: la(log_decay=torch.full((2, 3, 2), 1e-3))),
    ("q", lambda: softmax_attention([1], q, q)),
    ("k", lambda: softmax_attention(q, q.double(), q)),
    *[
        ("scale", partial(softmax_attention, q, q, q, scale=scale))
        for scale in (NAN, -1.0, 0.0, INF, "a", True, torch.ones(2, 2), 1e-300, 1e300, 10**400)
    ],
    ("scale", lambda: softmax_attention(q.double(), q.double(), q.double(), scale=0)),
    ("n_heads", lambda: LinearAttention(8, 0)),
    ("n_heads", lambda: LinearAttention(8, "2")),
    ("n_heads", lambda: LinearAttention(8, 2.0)),
    ("d_model", lambda: SoftmaxAttention(-8, 2)),
    ("d_model", lambda: SoftmaxAttention(8.0, 2)),
    ("degree", lambda: TaylorAttention(8, 2, degree=1.5)),
    ("degree", lambda: TaylorAttention(8, 2, degree="2")),
    ("normalize", lambda: LinearAttention(8, 2, normalize="no")),
    ("normalize", lambda: GatedLinearAttention(8, 2, normalize="no")),
    ("gated", lambda: DeltaNet(8, 2, gated="no")),
    ("gated", lambda: PowerAttention(8, 2, gated="no")),
    ("bias", lambda: SoftmaxAttention(8, 2, bias="no")),
    ("scale", lambda: TaylorAttention(8, 2, scale=True)),
    ("scale", lambda: TaylorAttention(8, 2, scale=10**400)),
    ("log_decay", lambda: LinearAttention(8, 2, log_decay=[-(10**400), 0])),
    ("log_decay", lambda: LinearAttention(8, 2, log_decay=[-1e300, 0])),
    ("log_decay", lambda: LinearAttention(8, 2, log_decay="ab")),
    ("log_decay", lambda: LinearAttention(8, 2, log_decay=[None, None])),
    ("log_decay", lambda: LinearAttention(8, 2, log_decay=[-1.0])),
    ("log_decay", lambda: SoftmaxAttention(8, 2, log_decay=[1.0, 0])),
    ("log_decay", lambda: SoftmaxAttention(8, 2, log_decay=-0.5)),
    ("d_model", lambda: RNN(0)),
    ("d_model", lambda: RNN("8")),
    ("n_layers", lambda: DeepRNN(8, -1)),
    ("k", lambda: KGram(8, 2.5)),
    ("hidden", lambda: KGram(8, 2, 0)),
    ("max_length", lambda: AFTFull(8, max_length="9")),
    ("d_state", lambda: S4(8, d_state=4.0)),
    ("dt_min", lambda: S4(8, dt_min=-1.0)),
    ("dt_min", lambda: S4D(8, dt_min=1.0, dt_max=0.1)),
    ("dt_max", lambda: S4D(8, dt_max=10**400)),
    ("expand", lambda: Mamba(8, expand=1.5)),
    ("dt_min", lambda: S6(8, dt_min=0)),
    ("dt_min", lambda: Mamba(8, dt_min=1.0, dt_max=0.1)),
    ("dt_max", lambda: S4D(8, dt_max="1")),
    *[
        ("d_model", partial(layer, width))
        for layer in (AFTSimple, CausalConv, RWKVTimeMixing, RWKVChannelMixing, S4D, S6, Mamba)
        for width in (0, 2.5)
    ],
    ("width", lambda: CausalConv(8, width=2.5)),
    ("degree", lambda: PowerAttention(8, 2, degree=2.0)),
    ("chunk_size", lambda: DeltaNet(8, 2, chunk_size=0)),
    ("chunk_size", lambda: GatedLinearAttention(8, 2, chunk_size=1.5)),
    ("attention", lambda: make_layer("lstm", 8, 2)),
    ("attention", lambda: make_layer(None, 8, 2)),
    ("attention", lambda: make_layer(["linear"], 8, 2)),
    ("attention_options", lambda: make_layer("linear", 8, 2, options=["mode"])),
    ("vocab_size", lambda: GPTConfig(vocab_size=-1)),
    ("n_layer", lambda: GPTConfig(n_layer=1.5)),
    ("n_head", lambda: GPTConfig(n_head="12")),
    ("d_model", lambda: GPTConfig(d_model=None)),
    ("n_positions", lambda: GPTConfig(n_positions=1.5)),
    ("attention", lambda: GPTConfig(attention=None)),
    ("attention", lambda: GPTConfig(attention=["linear"])),
    ("attention_options", lambda: GPT(GPTConfig(attention_options="mode", n_layer=1, d_model=12))),
    ("n_heads", lambda: GPT(GPTConfig(d_model=10, n_head=3, n_layer=1))),
    ("scale", lambda: gpt_config("nanoo")),
    ("scale", lambda: gpt_config(None)),
    ("overrides", lambda: gpt_config("nano", layers=3)),
    ("tokens", lambda: GPT(TINY)(torch.zeros(1, 2))),
    ("tokens", lambda: GPT(TINY)(torch.tensor(1))),
    ("tokens", lambda: GPT(TINY)([[1]])),
    ("tokens", lambda: GPT(TINY)(torch.tensor([[1, 8]]))),
    ("tokens", lambda: GPT(TINY)(torch.tensor([[1, -1]]))),
    ("tokens", lambda: GPT(replace(TINY, n_positions=None))(torch.tensor([[9]]))),
    ("tokens", lambda: m.step(m.initial_state, torch.tensor([8]))),
    ("config", lambda: GPT(None)),
    ("config", lambda: GPT("nano")),
    ("bias", lambda: GPTConfig(bias="no")),
    ("prompt", lambda: sample(m, [[1]], max_tokens=1)),
    ("prompt", lambda: sample(m, P[0], max_tokens=1)),
    ("prompt", lambda: sample(m, P.float(), max_tokens=1)),
    ("prompt", lambda: sample(m, P.bool(), max_tokens=1)),
    ("prompt", lambda: sample(m, P[:, :0], max_tokens=1)),
    ("prompt", lambda: sample(m, P + 8, max_tokens=1)),
    ("prompt", lambda: sample(m, torch.zeros(1, 5, dtype=torch.long), max_tokens=1)),
    ("max_tokens", lambda: list(sample(m, P, max_tokens=1.5))),
    ("max_tokens", lambda: sample(m, P, max_tokens="1")),
    ("max_tokens", lambda: sample(m, P, max_tokens=-1)),
    ("temperature", lambda: sample(m, P, max_tokens=1, temperature=NAN)),
    ("temperature", lambda: sample(m, P, max_tokens=1, temperature="hot")),
    ("temperature", lambda: sample(m, P, max_tokens=1, temperature=-1)),
    ("top_k", lambda: sample(m, P, max_tokens=1, top_k=0)),
    ("top_k", lambda: list(sample(m, P, max_tokens=1, top_k=1.5))),
    ("top_p", lambda: sample(m, P, max_tokens=1, top_p=2)),
    ("top_p", lambda: sample(m, P, max_tokens=1, top_p=NAN)),
    ("seed", lambda: sample(m, P, max_tokens=1, seed="a")),
    ("seed", lambda: sample(m, P, max_tokens=1, seed=1.5)),
    ("machine", lambda: sample(GPT(TINY), P, max_tokens=1)),
    ("seed", lambda: sample(m, P, max_tokens=1, seed=2**70)),
    ("seed", lambda: sample(m, P, max_tokens=1, seed=2**64)),
    *[
        (name, partial(call, **{name: value}))
        for call in (partial(sample, m, P, max_tokens=1), partial(choose, torch.zeros(1, 8)))
        for name, value in (
            ("temperature", -1),
            ("temperature", NAN),
            ("temperature", True),
            ("temperature", 1e300),
            ("temperature", 10**400),
            ("top_k", 0),
            ("top_k", 1.5),
            ("top_p", NAN),
            ("top_p", True),
            ("top_p", 0),
        )
    ],
    ("generator", lambda: choose(torch.zeros(1, 8), generator=1)),
    ("logits", lambda: choose([0.0, 1.0])),
    ("logits", lambda: choose(torch.zeros(1, 0))),
    ("logits", lambda: choose(torch.zeros(1, 8, dtype=torch.long))),
    ("logits", lambda: choose(torch.full((1, 4), -INF), 1.0)),
    ("logits", lambda: choose(torch.tensor([[0.0, 1.0], [-INF, -INF]]), 0.0)),
    ("logits", lambda: choose(torch.full((1, 4), NAN), 1.0)),
    ("logits", lambda: choose(torch.full((1, 4), NAN), 0.0)),
    ("logits", lambda: choose(torch.tensor([[INF, 0.0]]), 1.0)),
    ("mode", lambda: scan(q, q, mode="x")),
    ("a", lambda: scan(q[:, :1], q)),
    ("chunk_size", lambda: selective_scan(q[0], q[0], torch.zeros(4, 2), q[0], q[0], chunk_size=0)),
    ("x", lambda: autoregressive(lambda x: {"a": 1}, 2)("a")),
    ("p", lambda: sample_by_walking(lambda x: 0, "ab", Random(0))),
    ("mode", lambda: mode_cost("x", 8, 4, 4)),
    ("T", lambda: mode_cost("chunked", -8, 4, 4)),
    ("T", lambda: mode_cost("attention", 8.5, 4, 4)),
    ("machine", lambda: machine_cost("turing", 1, 1)),
    ("chunk_size", lambda: mode_cost("chunked", 8, 4, 4, chunk_size=0)),
    ("n_heads", lambda: machine_cost("linear state", 1, 10, n_heads=3)),
    ("degree", lambda: machine_cost("taylor state", 1, 8, degree=-1)),
    ("T", lambda: update_flops(gpt_config("nano"), 0)),
    ("t", lambda: machine_cost("kv cache", -1, 1)),
    *[
        (name, partial(mode_cost, mode, *sizes))
        for mode in ("softmax", "attention", "recurrent", "chunked")
        for name, sizes in (("K", (8, 0, 4)), ("V", (8, 4, 0)))
    ],
    ("config", lambda: update_flops("nano", 8)),
    ("config", lambda: tick_cost(None, 8)),
    ("t", lambda: tick_cost(gpt_config("nano"), -1)),
    ("x", lambda: is_causal_at(lambda x: x, "abc")),
]
# Stand for a file that is no archive, an empty folder, and a pipe that nobody writes to.
FILE, EMPTY, PIPE = "FILE", "EMPTY", "PIPE"
TO_EMPTY = ["--out", EMPTY]
SMOKE = ["run", "rnn_orders", "--smoke"]
COMMANDS = {
    "experiment: expected one of .*, got 'nothing'": ["run", "nothing"],
    "device: expected cpu or cuda, got 'tpu'": ["run", "--device", "tpu"],
    "device: expected cpu or cuda, got ''": ["list", "--device", ""],
    "--only: expected key=value, got 'x'": ["list", "--only", "x"],
    "--only: no run has 'nokey'; keys are": ["list", "--only", "nokey=1"],
    "--only: no run has scale=giga; scale can be": ["list", "--only", "scale=giga"],
    "--budget: expected seconds above 0, got nan": [*SMOKE, *TO_EMPTY, "--budget", "nan"],
    "--budget: expected seconds above 0, got -1.0": [*SMOKE, *TO_EMPTY, "--budget", "-1"],
    "argument --budget: invalid float value: 'soon'": [*SMOKE, *TO_EMPTY, "--budget", "soon"],
    "argument --out: expected a path, got ''": [*SMOKE, "--out", ""],
    "argument --corpus-source: expected a path, got ''": [*SMOKE, "--corpus-source", ""],
    "corpus source nowhere: no such file or folder": [
        "run", "variants", "--smoke", *TO_EMPTY, "--corpus-source", "nowhere",
    ],
    "corpus source PIPE: expected a folder or a regular file": [
        "run", "variants", "--smoke", *TO_EMPTY, "--corpus-source", PIPE,
    ],
    "corpus source /dev/zero: expected a folder or a regular file": [
        "run", "variants", "--smoke", *TO_EMPTY, "--corpus-source", "/dev/zero",
    ],
    "FILE: cannot be written": [*SMOKE, "--out", FILE],
    "nowhere: no such folder": ["check", "nowhere"],
    "argument folder: expected a path, got ''": ["check", ""],
    "nowhere: no such file or folder": ["collect", "nowhere"],
    "argument source: expected a path, got ''": ["collect", ""],
    "FILE: not a folder or a whole archive": ["collect", FILE],
    "EMPTY: no result files in it": ["collect", EMPTY],
    "PIPE: expected a folder or a regular file": ["collect", PIPE],
    "/dev/zero: expected a folder or a regular file": ["collect", "/dev/zero"],
    "invalid choice: 'fly'": ["fly"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_a_call(name, call):
    with pytest.raises(ValueError, match=f"^{name}: expected .*got [^\n]*$") as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("message", COMMANDS)
def test_a_command(message, tmp_path, capsys):
    places = {name: tmp_path / name.lower() for name in (FILE, EMPTY, PIPE)}
    places[FILE].write_text("no archive")
    places[EMPTY].mkdir()
    os.mkfifo(places[PIPE])
    status = 2
    try:
        status = main([str(places.get(word, word)) for word in COMMANDS[message]])
    except SystemExit as stop:  # argparse's own, after two lines on how the command is used
        assert stop.code == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    for word, path in places.items():
        last = last.replace(str(path), word)
    assert status and "error: " in last
    assert re.search(message, last)
    assert not [path for path in places[EMPTY].rglob("*") if path.suffix == ".json"]

"""The memory lab's arithmetic, in JavaScript, is that of the layers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from py_mini_racer import MiniRacer

from lsa import linear_attention, softmax_attention
from lsa.layers.delta import delta_step

SCRIPT = Path(__file__).resolve().parents[3] / "book" / "stages" / "recall.js"
# Vectors of words, the answer to each key when it was written, the last state, and what the last
# key gets from it and from the cache, as weights of the values.
RUN = """(settings) => {
    const words = Array.from({ length: 9 }, (_, i) => [`key ${i}`, `value ${i}`]);
    const pairs = Recall.pairs(words, settings);
    const { states, shares } = Recall.memory(pairs, settings);
    const f = pairs.map(({ k }) => Recall.features(k, settings)), n = pairs.length;
    return JSON.stringify({
        k: pairs.map(({ k }) => k), v: pairs.map(({ v }) => v), f,
        o: f.map((q, i) => Recall.read(states[i + 1], q, settings)),
        S: states[n].S, z: states[n].z,
        shares: Recall.read(shares[n], f[n - 1], settings),
        cache: Recall.softmax(pairs[n - 1].k, pairs.map(({ k }) => k)),
    });
}"""
CLOSE = {"rtol": 1e-10, "atol": 1e-12}


@pytest.fixture(scope="module")
def script():
    racer = MiniRacer()
    racer.eval(f"var window = globalThis;\n{SCRIPT.read_text(encoding='utf-8')}")
    return racer


@pytest.fixture
def recall(script):
    """Run the lab: settings to tensors."""

    def run(**settings):
        found = json.loads(script.eval(f"({RUN})({json.dumps(settings)})"))
        return {name: torch.tensor(x, dtype=torch.float64) for name, x in found.items()}

    return run


def one_head(*heads):
    return [x[None, :, None] for x in heads]


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("decay", [1, 0.8])
@pytest.mark.parametrize("name", ["elu_plus_one", "relu", "softplus", "exp", "identity"])
def test_adding_is_linear_attention(recall, name, decay, width):
    found = recall(width=width, map=name, decay=decay, delta=False)
    features, options = found["k"], {"feature_map": name}
    if name == "identity":  # no normaliser, and keys of length 1
        features, options = found["f"], {"normalize": False, "scale": 1.0}
        torch.testing.assert_close(features.norm(dim=1), torch.ones(9, dtype=torch.float64))
    g = torch.tensor([math.log(decay)], dtype=torch.float64)
    heads = one_head(features, features, found["v"])
    o, state = linear_attention(*heads, log_decay=g, return_state=True, **options)
    torch.testing.assert_close(found["o"], o[0, :, 0], **CLOSE)
    torch.testing.assert_close(found["S"], state.S[0, 0], **CLOSE)
    torch.testing.assert_close(found["z"], state.z[0, 0], **CLOSE)
    torch.testing.assert_close(found["shares"] @ found["v"], found["o"][-1], **CLOSE)


@pytest.mark.parametrize("decay", [1, 0.8])
@pytest.mark.parametrize("name", ["elu_plus_one", "identity"])
def test_the_delta_rule_is_the_layers(recall, name, decay):
    found = recall(width=8, map=name, decay=decay, delta=True)
    S, beta = torch.zeros(1, 1, 8, 8, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    for f, v, said in zip(found["f"], found["v"], found["o"], strict=True):
        f, v = f[None, None], v[None, None]
        o, S = delta_step(f, f, v, beta, math.log(decay) * beta, S)
        torch.testing.assert_close(said, o[0, 0], **CLOSE)
        torch.testing.assert_close(o, v, **CLOSE)  # what was just written is read back whole
    torch.testing.assert_close(found["S"], S[0, 0], **CLOSE)
    torch.testing.assert_close(found["shares"] @ found["v"], found["o"][-1], **CLOSE)


def test_the_cache_is_softmax_attention(recall):
    found = recall(width=8, map="elu_plus_one", decay=1, delta=False)
    o = softmax_attention(*one_head(found["k"], found["k"], found["v"]))[0, -1, 0]
    torch.testing.assert_close(found["cache"] @ found["v"], o, **CLOSE)


def test_more_pairs_are_recalled_worse_and_a_wider_state_recalls_more(script):
    """The mean over many lists; the cache loses nothing at these widths."""

    def curve(**settings):
        return json.loads(
            script.eval(f"JSON.stringify([...Recall.curve({json.dumps(settings)}, 16, 8)].at(-1))")
        )

    signed = {"map": "identity", "decay": 1, "delta": False}
    narrow, wide = curve(width=8, **signed), curve(width=32, **signed)
    assert narrow[0] == 1 and narrow[15] < 0.75 < narrow[7]
    assert wide[15] > 0.95
    assert min(curve(width=16)) > 0.95

"""The memory lab's arithmetic, in JavaScript, is that of the layers."""

import io
import math

import numpy as np
import pytest
import torch

from experiments.harness.core import record
from experiments.harness.core.weights import WEIGHTS
from lsa import linear_attention, softmax_attention
from lsa.layers.delta import delta_step
from tests.book.stages.scripts import engine

# Vectors of words, the answer to each key when it was written, the last state, and what the last
# key gets from it and from the cache, as weights of the values.
RUN = """(settings) => {
    const words = Array.from({ length: 9 }, (_, i) => [`key ${i}`, `value ${i}`]);
    const pairs = Recall.pairs(words, settings);
    const { states, shares } = Recall.memory(pairs, settings);
    const f = pairs.map(({ k }) => Recall.features(k, settings)), n = pairs.length;
    return {
        k: pairs.map(({ k }) => k), v: pairs.map(({ v }) => v), f,
        o: f.map((q, i) => Recall.read(states[i + 1], q, settings)),
        S: states[n].S, z: states[n].z,
        shares: Recall.read(shares[n], f[n - 1], settings),
        cache: Recall.softmax(pairs[n - 1].k, pairs.map(({ k }) => k)),
    };
}"""
CLOSE = {"rtol": 1e-10, "atol": 1e-12}


@pytest.fixture(scope="module")
def script():
    return engine("recall", "memory-lab")


@pytest.fixture
def recall(script):
    """Run the lab: settings to tensors."""

    def run(**settings):
        found = script(RUN, settings)
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


TOLD = """(n, settings, trained) => {
    const lab = new MemoryLab.Lab();
    lab.trained = trained;
    lab.set(Array.from({ length: 64 }, (_, i) => [`key ${i}`, `value ${i}`]), settings);
    const { of, cache, state } = lab.told(n);
    return { of, cache, state };
}"""


@pytest.fixture
def right(script):
    """Of n keys, how many either memory answers right."""

    def told(n, trained=None, **settings):
        found = script(TOLD, n, settings, trained)
        assert found.pop("of") == n
        return found

    return told


def test_keys_of_both_signs_are_kept_apart_and_positive_ones_are_not(right):
    assert [right(64, width=width)["state"] <= 4 for width in (8, 16, 32, 64)] == [True] * 4
    assert right(64, keys="signed", width=64) == {"cache": 64, "state": 64}
    assert right(64, keys="signed", width=16)["state"] < 32
    assert right(64, width=16)["cache"] > 60


@pytest.mark.parametrize("width", [4, 8, 32, 64])
def test_a_state_holds_as_many_keys_at_right_angles_as_it_is_wide(right, recall, width):
    at_right_angles = {"keys": "orthogonal", "width": width}
    assert right(width, **at_right_angles)["state"] == width
    if width < 64:
        assert right(2 * width, **at_right_angles)["state"] < 2 * width
    n = min(width, 9)
    f = recall(map="identity", decay=1, delta=False, **at_right_angles)["f"][:n]
    torch.testing.assert_close(f @ f.T, torch.eye(n, dtype=torch.float64), **CLOSE)


def test_trained_keys_are_found_more_often_than_random_ones(right):
    trained = {}
    for memory, model in (("state", "linear"), ("cache", "softmax")):
        (path,) = [
            path
            for path in record.paths(record.RESULTS, "task_examples")
            if path.stem == f"recall-{model}"
        ]
        with np.load(io.BytesIO(path.with_suffix(WEIGHTS).read_bytes())) as arrays:
            trained[memory] = {name: arrays[name].tolist() for name in "qk"}
    found = right(64, trained, keys="trained")
    assert found["state"] > 3 * right(64, width=32)["state"]
    assert found["cache"] > 60

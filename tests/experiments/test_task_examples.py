"""Stored answers are those of the model, and stored keys those that its layer writes and reads."""

import pytest
import torch

from experiments import made_up_tasks, task_examples
from experiments.harness.learning.task_training import task_model
from experiments.harness.learning.tasks import draw
from experiments.task_examples import LAYERS, TASKS, keys
from lsa import linear_attention
from tests.experiments.command import with_arrays


def test_models_are_those_of_the_made_up_tasks():
    runs = task_examples.runs("cpu", smoke=False)
    assert len(runs) == len(TASKS) * len(LAYERS) and not task_examples.runs("cuda", smoke=False)
    for run in runs:
        config = dict(run.config)
        case, n = config.pop("case"), config.pop("texts")
        trained = made_up_tasks._run(config["task"], config["model"], 3e-3, 0).config
        assert config == {key: value for key, value in trained.items() if key in config}
        assert trained.keys() - config.keys() == {"asked", "lengths", "distances"}
        inputs, _ = draw(config["task"], seed=0, update=-1, batch=n, vocab=config["vocab"], **case)
        assert len(inputs) == n and inputs.shape[1] <= (config["n_positions"] or 64)


def test_a_run_keeps_answers_and_keys(tmp_path):
    found, arrays = with_arrays(tmp_path, "task_examples")
    config, texts = found["config"], found["tables"]["texts"]
    length, pairs = config["case"]["length"], config["case"]["pairs"]
    n = config["texts"]
    assert texts["place"] == n * [*range(length)]
    asked = [wanted >= 0 for wanted in texts["wanted"]]
    assert sum(asked) == n * pairs and asked == [said >= 0 for said in texts["said"]]
    wanted = {}  # by what stands in the text itself
    for i, (token, place) in enumerate(zip(texts["token"], texts["place"], strict=True)):
        wanted = {} if place == 0 else wanted
        if place < 2 * pairs and place % 2 == 0:
            wanted[token] = texts["token"][i + 1]
        elif asked[i]:
            assert texts["wanted"][i] == wanted[token]
    assert {name: one.shape for name, one in arrays.items()} == dict.fromkeys(
        "qk", (config["cases"][-1]["pairs"], config["d_model"])
    )


@pytest.mark.parametrize("layer", LAYERS)
def test_keys_are_in_the_order_of_the_pairs(layer):
    """Asked with the keys' own queries, a layer's features give what the layer computes."""
    config = task_examples._config("recall", layer)
    model, pairs = task_model(config), 5
    (text,), _ = draw("recall", seed=3, update=0, batch=1, length=24, pairs=pairs, vocab=136)
    q, k = keys(model, text, pairs)
    assert q.shape == k.shape == (pairs, 32)
    front, block = model.blocks
    x = block.ln_1(front(model.embed(text[None])))
    places = [int((text[10:] == key).nonzero()) + 10 for key in text[0:10:2]]
    if layer in ("linear", "softmax"):
        heads = block.attn.qkv(x)
        torch.testing.assert_close(q, heads[0][0, places, 0])
        torch.testing.assert_close(k, heads[1][0, 1:10:2, 0])
    if layer == "linear":
        o = linear_attention(*heads, feature_map="elu_plus_one")
        torch.testing.assert_close(block.attn.out(o), block.attn(x))
    if layer == "delta":
        torch.testing.assert_close(k.norm(dim=-1), torch.ones(pairs))

"""What a trained model's heads look at on a page, and what it guesses: as the model itself does."""

import numpy as np
import pytest
import torch

from experiments.harness.learning.returning import trained
from experiments.look_inside import BASE, SMOKE, kept_weights, looks, packed_looks
from tests.experiments.command import with_arrays

NEAR = SMOKE["attention"]


def unpacked(arrays, T):
    """The attention weights [layers, H, T, T] that were stored, zero where none was."""
    A = np.zeros((*arrays["counts"].shape, T))
    rows = np.repeat(np.arange(arrays["counts"].size), arrays["counts"].ravel())
    weights = arrays["low"] + 256 * arrays["high"].astype(int)
    A.reshape(-1, T)[rows, arrays["places"]] = weights / 1000
    return torch.from_numpy(A).float()


@pytest.fixture
def stored(made_corpus, tmp_path):
    return with_arrays(tmp_path, "look_inside")


def logits(tokens, heads):
    """What `lsa` says with these heads confined, by a pass through the whole model."""
    model = trained("tiny").model
    model.attend({f"{layer}.{head}": NEAR for layer, head in heads})
    with torch.no_grad():
        found = model(tokens[None])[0].softmax(-1)
    model.attend({})
    return found


def test_stored_guesses_are_those_of_the_model(stored):
    found, arrays = stored
    tables = found["tables"]
    tokens = torch.tensor(tables["tokens"]["token"])
    ranking = [*zip(tables["ranking"]["layer"], tables["ranking"]["head"], strict=True)]
    assert len(ranking) == 8
    vocabulary = np.array(tables["vocabulary"]["guess"])
    n, first = SMOKE["passage"], SMOKE["lead"]
    again = first + n + SMOKE["distance"]
    assert torch.equal(tokens[first : first + n], tokens[again:]) and len(tokens) == again + n
    rows = [*zip(*tables["sets"].values(), strict=True)]
    names = [row[:2] for row in rows]
    assert names == [
        ("once", 0), ("none", 0), ("first", 1), ("first", 3), ("first", 8),
        ("head", 0), ("head", 1), ("head", 2),
    ]  # fmt: skip
    for i, (where, number, right, loss) in enumerate(rows):
        heads = {"first": ranking[:number], "head": ranking[number : number + 1]}.get(where, [])
        at = first if where == "once" else again
        shares = logits(tokens, heads)[at - 1 : at - 1 + n]
        wanted = shares[torch.arange(n), tokens[at : at + n]]
        likeliest = shares.topk(3)
        np.testing.assert_array_equal(vocabulary[arrays["guesses"][i]], likeliest.indices)
        np.testing.assert_allclose(arrays["shares"][i] / 1000, likeliest.values, atol=6e-4)
        np.testing.assert_allclose(arrays["wanted"][i] / 1000, wanted, atol=6e-4)
        assert right == (likeliest.indices[:, 0] == tokens[at : at + n]).sum()
        assert loss == pytest.approx(-wanted.log().mean().item(), abs=1e-4)


def test_stored_weights_are_those_of_the_model(stored):
    found, arrays = stored
    tokens = torch.tensor(found["tables"]["tokens"]["token"])
    A = looks(trained("tiny").model, tokens)
    torch.testing.assert_close(A.sum(-1), torch.ones(A.shape[:-1]))
    assert not A.triu(1).any()
    kept = unpacked(arrays, len(tokens))
    assert (kept > 0).any() and ((kept > 0).sum(-1) <= BASE["largest"]).all()
    assert ((kept - A).abs()[kept > 0] < 6e-4).all()
    assert (kept.sum(-1).mean() - found["tables"]["kept"]["mean"][0]).abs() < 1e-3


def test_attention_that_is_looked_at_is_the_models_own(made_corpus):
    """o = A v: the weights that are kept give what the model computed with its own."""
    model = trained("tiny").model
    tokens = torch.randint(256, (37,), generator=torch.Generator().manual_seed(0))
    A = looks(model, tokens)
    with torch.no_grad():
        x = model.embed(tokens[None])
        for layer, block in enumerate(model.blocks):
            q, k, v = block.self_attn.qkv(block.input_layernorm(x), 0)
            mix = block.self_attn.mixes[0]
            o = torch.einsum("hij,jhv->ihv", A[layer], mix.spread(v)[0])
            torch.testing.assert_close(o, mix(q, k, v)[0])
            x = block(x)


def test_the_largest_weights_are_kept():
    A = torch.tensor([[[[1.0, 0, 0], [0.3, 0.7, 0], [0.5, 0.4, 0.1]]]])
    kept = kept_weights(A, 2, 0.2)
    arrays = packed_looks(A, kept)
    assert arrays["counts"].tolist() == [[[1, 2, 2]]]
    assert arrays["places"].tolist() == [0, 0, 1, 0, 1]
    assert (arrays["low"] + 256 * arrays["high"].astype(int)).tolist() == [1000, 300, 700, 500, 400]
    with pytest.raises(ValueError, match="^A: expected at most 256 tokens, got 300"):
        packed_looks(torch.zeros(1, 1, 1, 300), torch.zeros(1, 1, 1, 300, dtype=torch.bool))

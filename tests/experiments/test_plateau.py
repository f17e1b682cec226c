"""The plateau: each run differs from the next in the one thing that its remedy names."""

import pytest
import torch

from experiments import plateau, recipes
from tests.experiments.command import nano


def test_a_remedy_changes_what_it_names_and_nothing_else():
    runs = {run.name: run.config for run in plateau.runs("cpu", smoke=False)}
    assert len(runs) == 3 * (2 * len(plateau.EITHER) + len(plateau.CONTROLS))
    named = {"remedy", "attention", "attention_options", "seed"}
    for config in runs.values():
        change = plateau.EITHER.get(config["remedy"], {})
        differs = {key for key, value in plateau.BASE.items() if config[key] != value}
        assert differs <= named | change.keys()
    both = [name for name in runs if name.startswith("linear-")]
    for name in both:
        of_softmax = runs[name.replace("linear-", "softmax-", 1)]
        assert {**runs[name], "attention": "softmax"} == of_softmax


@pytest.mark.parametrize("attention", ["softmax", "linear", "none"])
@pytest.mark.parametrize("meets", plateau.MEETS)
def test_tokens_meet_otherwise_and_never_the_future(meets, attention):
    tokens = torch.randint(256, (2, 33))
    other = tokens.clone()
    other[:, 20:] = (other[:, 20:] + 1) % 256
    n_positions = 64 if meets == "sinusoids" else None
    model = nano(attention, n_positions=n_positions)
    before = model(tokens)
    plateau.MEETS[meets](model)
    after = model(tokens)
    torch.testing.assert_close(model(other)[:, :20], after[:, :20])
    changes = attention != "none" or meets != "rotation"
    assert torch.equal(before, after) != changes


def test_products_of_rotated_vectors_know_their_distance():
    q, k = torch.randn(2, 1, 1, 2, 64).expand(2, 1, 40, 2, 64)
    scores = torch.einsum("bihk,bjhk->hij", plateau.rotated(q), plateau.rotated(k))
    torch.testing.assert_close(scores[:, 1:, 1:], scores[:, :-1, :-1], atol=1e-4, rtol=1e-4)
    assert (scores[:, 30, 0] - scores[:, 0, 0]).abs().max() > 0.1
    torch.testing.assert_close(plateau.rotated(q).norm(dim=-1), q.norm(dim=-1))


def test_sinusoids_are_as_large_as_what_was_drawn_and_tell_positions_apart():
    model = nano("linear", n_positions=1024)
    drawn = model.wpe.weight.detach().clone()
    plateau.sinusoids(model)
    size = model.wpe.weight.detach().square().mean().sqrt()
    torch.testing.assert_close(size, drawn.std())
    likeness = torch.nn.functional.cosine_similarity(
        model.wpe.weight[512], model.wpe.weight, dim=-1
    )
    assert likeness.argmax() == 512 and likeness[511] > likeness[500] > likeness[300]


def test_a_shift_takes_half_of_what_came_before():
    x = torch.arange(12.0).view(1, 3, 4)
    wanted = torch.tensor([[[0.0, 0, 2, 3], [0, 1, 6, 7], [4, 5, 10, 11]]])
    assert torch.equal(recipes.shifted(x), wanted)

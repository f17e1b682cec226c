"""Weights of far tokens in the heads that recall: each way against what it claims to be."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments import far_weights
from experiments.far_weights import FIRST, WINDOW, FarWeights
from experiments.harness.learning.returning import trained
from lsa.layers.mixes import SoftmaxMix
from lsa.layers.window_state import WindowStateMix
from tests.experiments.command import performed
from tests.experiments.distilled import teacher

GROUPS = [0, 0, 1, 1]
LENGTHS = st.sampled_from([1, 2, 67, 68, 69, 131, 150])


def drawn(T, scale=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = ((1, T, heads, 8) for heads in (4, 2, 2))
    q, k, v = (torch.randn(one, generator=generator, dtype=torch.float64) for one in shape)
    return q * scale, k * scale, v


def changed(way, number, total=False, places=None, **more):
    config = {"way": way, "number": number, "keeps_total": total, "seed": 0, **more}
    mix = FarWeights(SoftmaxMix(4, 8, groups=GROUPS), config)
    mix.places = places
    return mix


@given(T=LENGTHS, seed=st.integers(0, 99))
def test_at_temperature_one_and_in_a_long_sum_it_is_softmax(T, seed):
    qkv = drawn(T, seed=seed)
    o = SoftmaxMix(4, 8, groups=GROUPS)(*qkv)
    for mix in (changed("softened", 1.0, total=True), changed("taylor", 40)):
        torch.testing.assert_close(mix(*qkv), o)


@given(T=LENGTHS, degree=st.sampled_from([2, 4]), seed=st.integers(0, 99))
def test_a_taylor_sum_is_a_window_and_a_state(T, degree, seed):
    options = {"feature_map": "taylor", "degree": degree, "window": WINDOW, "first": FIRST}
    state = WindowStateMix(4, 8, **options, groups=GROUPS)
    qkv = drawn(T, seed=seed)
    torch.testing.assert_close(changed("taylor", degree)(*qkv), state(*qkv))


def test_a_kept_total_shares_out_softmax_weight_of_what_is_far():
    """With v = 1 for far tokens and 0 for others, o is their share."""
    q, k, _ = drawn(150)
    v = torch.zeros(1, 150, 2, 8, dtype=torch.float64)
    v[:, FIRST : 150 - WINDOW] = 1  # far from the last token
    o = SoftmaxMix(4, 8, groups=GROUPS)(q, k, v)[:, -1]
    assert 0.1 < o.min() < o.max() < 0.9
    for way, number in (("softened", "even"), ("softened", 2.0), ("taylor", 2)):
        torch.testing.assert_close(changed(way, number, total=True)(q, k, v)[:, -1], o)
    assert (changed("taylor", 2)(q, k, v)[:, -1] - o).abs().max() > 1e-3
    flat = q, torch.zeros_like(k), drawn(150)[2]
    torch.testing.assert_close(
        changed("softened", "even", total=True)(*flat), SoftmaxMix(4, 8, groups=GROUPS)(*flat)
    )


def test_weights_change_for_the_passage_alone_where_a_run_says_so():
    qkv, places = drawn(200), torch.arange(140, 200)
    o = changed("taylor", 2, True, places, passage_alone=True)(*qkv)
    torch.testing.assert_close(o[:, 140:], changed("taylor", 2, True)(*qkv)[:, 140:])
    torch.testing.assert_close(o[:, :140], SoftmaxMix(4, 8, groups=GROUPS)(*qkv)[:, :140])


@pytest.mark.slow
def test_random_features_are_right_in_the_mean():
    qkv = drawn(100, scale=0.5)
    o = SoftmaxMix(4, 8, groups=GROUPS)(*qkv)
    few, many = ((changed("random", n)(*qkv) - o).abs().max() for n in (64, 65536))
    assert many < 0.02 < few


def test_an_approximation_changes_one_block_alone_and_is_whole_at_full_size():
    T, places = 200, torch.arange(140, 200)
    q, k, _ = drawn(T)
    v = torch.eye(T, dtype=torch.float64)[None, :, None].expand(-1, -1, 2, -1)  # o is the weights
    A = SoftmaxMix(4, 8, groups=GROUPS)(q, k, v).transpose(1, 2)
    rows, columns = slice(140, 200), slice(FIRST, 140 - WINDOW + 1)
    for way, number in (("rank", 5), ("polynomial", 4)):
        found = changed(way, number, places=places)(q, k, v).transpose(1, 2)
        block = found[..., rows, columns].clone()
        error = (block - A[..., rows, columns]).norm()
        assert error > 1e-3
        found[..., rows, columns] = A[..., rows, columns]
        torch.testing.assert_close(found, A)
        if way == "rank":
            assert (torch.linalg.matrix_rank(block) == 5).all()
            values = torch.linalg.svdvals(A[..., rows, columns])
            assert error.item() == pytest.approx(values[..., 5:].norm().item())
        else:  # the best polynomial is at least as good as any other, say the Taylor sum's
            s = (q.transpose(1, 2) @ k[:, :, GROUPS].transpose(1, 2).mT / 8**0.5)[
                ..., rows, columns
            ]
            powers = torch.stack([s**m for m in range(5)], -1)
            best = torch.linalg.lstsq(powers, A[..., rows, columns].unsqueeze(-1)).solution
            torch.testing.assert_close(block, (powers @ best).squeeze(-1))
    for way, number in (("rank", 60), ("polynomial", 40)):
        found = changed(way, number, places=places)(q, k, v).transpose(1, 2)
        torch.testing.assert_close(found, A, rtol=1e-5, atol=1e-7)


def test_only_the_heads_of_the_list_look_back():
    model = teacher().model
    halved = {"way": "softened", "number": 2.0, "keeps_total": True, "seed": 0}
    mixes = far_weights.replaced(model, halved, [(0, 1), (0, 2), (1, 3)])
    assert [mix.n_heads for mix in mixes] == [2, 1]
    assert [members for members, _ in model.blocks[0].self_attn.parts] == [[0, 3], [1, 2]]


def test_the_next_run_finds_the_model_as_trained():
    halved = {"way": "softened", "number": 2.0, "keeps_total": True, "seed": 0}
    far_weights.replaced(trained("tiny").model, halved, [(0, 1)])
    mixes = [mix for block in trained("tiny").model.blocks for mix in block.self_attn.mixes]
    assert [type(mix) for mix in mixes] == [SoftmaxMix, SoftmaxMix]


def test_runs_are_stored_with_the_size_of_a_state(made_corpus, tmp_path):
    found = {one["name"]: one["tables"] for one in performed(tmp_path, "far_weights")}
    sizes = {name: tables.get("features", {}).get("numbers") for name, tables in found.items()}
    assert sizes == {
        "taylor-2": [45], "polynomial-2": [45], "rank-4": [4], "random-256-passage": [256],
        "softened-even": None,
    }  # fmt: skip
    assert all(tables["texts"]["text"] == [0, 1] for tables in found.values())

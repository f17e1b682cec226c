"""A trained Llama is converted: what is written, what it computes, and what is refused."""

import os
import signal

import pytest
import torch

from experiments import convert, linearise
from experiments.__main__ import main
from experiments.harness.core import record
from experiments.harness.learning import distilled_runs
from experiments.harness.learning.corpora import load_corpus
from experiments.harness.learning.distilling import Distillation
from experiments.recipes import FADING
from lsa import sample, unroll
from lsa.llama import Llama, LlamaConfig
from lsa.llama_files import Text, load_llama, save_llama

from .distilled import teacher

tokenizers = pytest.importorskip("tokenizers")


@pytest.fixture
def folder(tmp_path, made_corpus, monkeypatch):
    """A tiny Llama of bytes, as Hugging Face keeps them; few texts rank it and teach it."""
    monkeypatch.setattr(convert, "TEXTS", 1)
    few = {"texts": 1, "length": 200, "feature_tokens": 400}
    monkeypatch.setattr(convert, "TEACHING", {**linearise.BASE, **few})
    save_llama(teacher().model, tmp_path / "model")
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    text = tokenizers.Tokenizer(
        tokenizers.models.BPE({letter: i for i, letter in enumerate(sorted(alphabet))}, [])
    )
    text.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    text.decoder = tokenizers.decoders.ByteLevel()
    Text(text).save(tmp_path / "model")
    return tmp_path / "model"


def converted(folder, name, *more, keep=3):
    out = folder.parent / name
    command = ["convert", "--model", str(folder), "--keep", str(keep), "--out", str(out), *more]
    return main(command), out


@pytest.mark.slow
def test_the_first_heads_of_the_ranking_look_back_and_no_others(folder):
    status, out = converted(folder, "out")
    assert status == 0
    model, text = load_llama(out), Text.of(out)
    ranking = convert.rank(
        load_llama(folder).requires_grad_(False), text.tokens,
        load_corpus("novels").splits["validation"],
    )  # fmt: skip
    assert sorted(ranking) == [(layer, head) for layer in range(2) for head in range(4)]
    attention = linearise.attention_of(convert.WAYS["window"], ranking[:3])
    wanted, tokens = load_llama(folder, attention=attention), torch.randint(256, (1, 300))
    with torch.no_grad():
        assert torch.equal(model(tokens), wanted(tokens))
        ticked = unroll(model.machine())(tokens)
    assert (ticked - wanted(tokens)).abs().max() <= 1e-4 * ticked.abs().max()
    prompt = torch.tensor([text.tokens("Call me")])
    found = [int(token) for token in sample(model.machine(), prompt, max_tokens=5, seed=0)]
    assert isinstance(text.text(found), str) and len(found) == 5


def test_heads_of_two_rankings_look_back_in_turn(folder):
    status, out = converted(folder, "out", "--distance", "300", "100", keep=2)
    assert status == 0
    model, validation = load_llama(folder).requires_grad_(False), load_corpus("novels").splits
    far, near = (
        convert.rank(model, Text.of(folder).tokens, validation["validation"], distance)
        for distance in (300, 100)
    )
    both = [far[0], near[0] if near[0] != far[0] else far[1]]
    wanted = linearise.attention_of(convert.WAYS["window"], both)
    tokens = torch.randint(256, (1, 300))
    with torch.no_grad():
        assert torch.equal(load_llama(out)(tokens), load_llama(folder, attention=wanted)(tokens))


@pytest.mark.slow
@pytest.mark.parametrize("way", convert.WAYS)
def test_an_interrupted_conversion_goes_on_to_the_same_end(way, folder, monkeypatch):
    more = ("--heads", way, "--tokens", "500")
    assert converted(folder, "whole", *more)[0] == 0
    update = Distillation.update

    def interrupted(one):
        update(one)
        if one.done == 2 + (way == "window-state"):
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as within:
        within.setattr(Distillation, "update", interrupted)
        assert converted(folder, "parts", *more)[0] == 128 + signal.SIGINT
    assert [path.name for path in (folder.parent / "parts").iterdir()] == ["unfinished.pt"]
    status, out = converted(folder, "parts", *more)
    assert status == 0 and not (out / "unfinished.pt").exists()
    whole, parts, before = map(load_llama, (folder.parent / "whole", out, folder))
    for name, p in whole.state_dict().items():
        assert torch.equal(p, parts.state_dict()[name])
    assert not torch.equal(before.blocks[0].self_attn.q_proj.weight,
                           whole.blocks[0].self_attn.q_proj.weight)  # fmt: skip


def test_what_was_taught_is_kept_where_it_cannot_be_written(folder, monkeypatch):
    def full(*_, **__):
        raise OSError("no space")

    more = ("--heads", "window", "--tokens", "500")
    with monkeypatch.context() as within:
        within.setattr(distilled_runs, "SAVE_EVERY", 0.0)
        within.setattr(convert, "save_llama", full)
        status, out = converted(folder, "full", *more)
    assert status == 1 and [path.name for path in out.iterdir()] == ["unfinished.pt"]
    assert converted(folder, "full", *more)[0] == 0
    assert not (out / "unfinished.pt").exists() and load_llama(out)
    (out / "config.json").unlink()
    assert converted(folder, "full", *more)[0] == 1  # weights are a model too


def test_states_learn_their_features_without_being_asked(folder):
    status, out = converted(folder, "out", "--heads", "window-state", keep=0)
    assert status == 0
    model, before = load_llama(out), load_llama(folder)
    assert any(p.any() for n, p in model.named_parameters() if n.endswith("balance"))
    assert model.attention["all"]["adjacent"] and not model.attention["all"]["rotary"]
    assert model.attention["all"]["log_decay"] == [FADING] * 4
    assert torch.equal(model.blocks[1].mlp.up_proj.weight, before.blocks[1].mlp.up_proj.weight)


@pytest.mark.parametrize(
    ("keep", "more", "message"),
    [
        (9, (), "--keep: expected 0 to 8 heads, got 9"),
        (-1, (), "--keep: expected 0 to 8 heads, got -1"),
        (1, ("--tokens", "-1"), "--tokens: expected 0 or more, got -1"),
        (1, ("--distance", "0"), "--distance: expected 1 or more tokens, got 0"),
        (1, ("--distance", "9999"), "--distance: 9999: length: expected at most "),
        (1, ("--model", "nowhere"), "--model: expected a GGUF file or a folder, got nowhere"),
        (1, ("--corpus-source", "nowhere"), "nowhere"),
    ],
)
def test_mistakes_are_one_line(folder, keep, more, message, capsys, monkeypatch):
    if "--corpus-source" in more:
        monkeypatch.setenv("LSA_CACHE", str(folder.parent / "empty"))
    status, out = converted(folder, "out", *more, keep=keep)
    error = capsys.readouterr().err
    assert status == 1 and message in error and error.count("\n") == 1
    assert not (out / "config.json").exists()


def test_a_model_is_not_written_over_another(folder, capsys):
    assert converted(folder, "model")[0] == 1
    assert "--out: expected a folder without a model, got " in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_told_before_heads_are_ranked(folder, capsys, monkeypatch):
    monkeypatch.setattr(convert, "rank", None)
    (folder.parent / "file").write_text("taken", encoding="utf-8")
    assert converted(folder, "file")[0] == 1
    assert "--out: expected a folder, got " in capsys.readouterr().err


def test_the_stored_ranking_is_of_the_same_weights():
    (one,) = (
        one for one in record.load("remove_exponential", partial=False)
        if one["name"] == "rank-passages"
    )  # fmt: skip
    found = convert.stored_ranking(one["tables"]["weights"]["sha256"][0])
    shape = LlamaConfig()
    assert len({*found}) == shape.n_layer * shape.n_head
    assert convert.stored_ranking("0" * 64) == []


def test_a_model_whose_text_is_missing_is_refused(folder, capsys):
    (folder / "tokenizer.json").unlink()
    assert converted(folder, "out")[0] == 1
    assert "--model: expected a tokenizer.json in " in capsys.readouterr().err


def test_a_model_goes_through_a_folder_as_it_is(tmp_path):
    for shape in ({"tied": False, "head_width": 6}, {"n_kv_head": 4, "max_length": None}):
        small = {"vocab_size": 11, "n_layer": 1, "n_head": 4, "d_model": 8, "d_mlp": 12}
        model = Llama(LlamaConfig(**{**small, "n_kv_head": 2, "head_width": 2, **shape}))
        folder = tmp_path / str(model.config.tied)
        save_llama(model, folder)
        again = load_llama(folder)
        assert again.config == model.config
        for name, p in model.named_parameters():
            assert torch.equal(again.get_parameter(name), p)

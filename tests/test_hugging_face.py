"""lsa's attention in transformers' Llama: the same numbers, with their cache and in their files."""

import json

import pytest
import torch
from transformers import LlamaConfig as TheirConfig
from transformers import LlamaForCausalLM, StaticCache

from lsa import sample
from lsa.hugging_face import attend, load_converted
from lsa.llama_files import load_llama, save_llama
from tests.test_llama_files import SHAPE

NEAR = {"window": 5, "first": 2}
WAYS = {
    "softmax": {"all": {"kind": "softmax"}},
    "window": {"all": {"kind": "window", **NEAR}},
    "linear": {"all": {"kind": "linear"}},
    "window-state": {"all": {"kind": "window-state", **NEAR}},
    "no distance grows": {
        "all": {"kind": "window-state", **NEAR, "adjacent": True, "rotary": False},
        "0": {"kind": "window", **NEAR, "adjacent": True},
    },
    "window-delta": {"all": {"kind": "window-delta", **NEAR}},
    "mixed": {
        "all": {"kind": "window-state", **NEAR},
        "1.2": {"kind": "softmax"},
        "0": {"kind": "window", **NEAR},
        "0.1": {"kind": "window-state", "window": 0, "first": 0, "feature_map": "taylor"},
    },
}


def llama(**changes):
    torch.manual_seed(0)
    model = LlamaForCausalLM(TheirConfig(**{**SHAPE, **changes})).eval()
    return scrambled(model)


def scrambled(model):
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(std=0.4)
    return model


def attending(attention, **changes):
    """Their model, whose heads have learned something."""
    model = llama(**changes)
    attend(model, attention)
    return scrambled(model)


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_their_model_is_ours_and_goes_through_files(way, tmp_path):
    theirs = attending(WAYS[way])
    theirs.save_pretrained(tmp_path)
    ours, again = load_llama(tmp_path), load_converted(tmp_path)
    for T in (1, 2, 7, 8, 40):
        tokens = torch.randint(19, (2, T))
        with torch.no_grad():
            close(ours(tokens), theirs(tokens).logits)
            close(again(tokens).logits, theirs(tokens).logits)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_their_cache_gives_what_our_machine_samples(way, tmp_path):
    theirs, prompt = attending(WAYS[way]), torch.randint(19, (2, 20))
    theirs.save_pretrained(tmp_path)
    machine = load_llama(tmp_path).machine()
    found = theirs.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False,
        pad_token_id=18, eos_token_id=None,
    )  # fmt: skip
    with torch.no_grad():
        wanted = [*sample(machine, prompt, max_tokens=12, temperature=0)]
    assert found[:, 20:].tolist() == torch.stack(wanted, 1).tolist()


def test_what_heads_learn_has_gradients():
    model = attending(WAYS["window-state"])
    tokens = torch.randint(19, (2, 40))
    model(tokens, labels=tokens).loss.backward()
    assert all(p.grad is not None and p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("tied", [False, True])
def test_our_file_is_read_by_both(tied, tmp_path):
    theirs, tokens = attending(WAYS["mixed"], tie_word_embeddings=tied), torch.randint(19, (1, 40))
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load_llama(tmp_path / "theirs")
    save_llama(ours, tmp_path / "ours", attention=WAYS["mixed"])
    with torch.no_grad():
        wanted = ours(tokens)
        close(load_llama(tmp_path / "ours")(tokens), wanted)
        close(load_converted(tmp_path / "ours")(tokens).logits, wanted)
        other = load_llama(tmp_path / "ours", attention=WAYS["softmax"])(tokens)
        close(other, load_llama(tmp_path / "theirs", attention=WAYS["softmax"])(tokens))
    with pytest.raises(ValueError, match="^folder: expected one without config.json, got "):
        save_llama(ours, tmp_path / "ours")


def test_weights_that_a_head_learned_are_missed(tmp_path):
    attending(WAYS["window"]).save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    fields = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps({**fields, "lsa_attention": WAYS["window-state"]}))
    for read in (load_llama, load_converted):
        with pytest.raises(ValueError, match=r"expected weights .*layers.0.*mixes.*, got none"):
            read(tmp_path)
    config.write_text(json.dumps({**fields, "lsa_attention": {"2": {"kind": "window"}}}))
    for read in (load_llama, load_converted):
        with pytest.raises(ValueError, match="^attention: expected 'all', a layer below 2 as '3'"):
            read(tmp_path)


def test_what_does_not_fit_is_said_in_a_line(tmp_path):
    with pytest.raises(ValueError, match="^folder: expected a config.json in .*nowhere, got none"):
        load_converted(tmp_path / "nowhere")  # no name of a model on their hub
    tokens, model = torch.randint(19, (2, 10)), llama()
    with pytest.raises(ValueError, match="^attention: expected kinds, or lsa_attention in config"):
        attend(model)
    with pytest.raises(ValueError, match="^model: expected "):
        attend(torch.nn.Linear(1, 1), WAYS["window"])
    model.set_attn_implementation("lsa_window_state")
    with pytest.raises(ValueError, match="^model: expected one prepared for lsa_window_state by"):
        model(tokens)
    mask = torch.ones_like(tokens)
    mask[0, :3] = 0
    ours = attending(WAYS["window"])
    with pytest.raises(ValueError, match="^attention_mask: expected all ones, got padding"):
        ours(tokens, attention_mask=mask)
    with pytest.raises(ValueError, match="^attention_mask: expected none, got one of .2, 1, 10, 1"):
        ours(tokens, attention_mask=torch.ones(2, 1, 10, 10, dtype=torch.bool))
    with pytest.raises(ValueError, match="^position_ids: expected one text a row, got several"):
        packed = torch.arange(10).remainder(5).expand(2, -1)
        ours(tokens, position_ids=packed, use_cache=False)
    with pytest.raises(ValueError, match="^past_key_values: expected a DynamicCache of 10 tokens"):
        ours(tokens, past_key_values=StaticCache(ours.config, max_cache_len=32))
    with pytest.raises(ValueError, match="^attention_dropout: expected 0, got 0.1"):
        attending(WAYS["window"], attention_dropout=0.1).train()(tokens)


def test_scaled_positions_are_refused():
    rope = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}
    with pytest.raises(ValueError, match="^rope_type: expected 'default', got 'linear'"):
        attending(WAYS["window"], rope_parameters=rope)

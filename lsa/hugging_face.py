"""The attention of `lsa.llama` in a Llama of Hugging Face's transformers.

    model = AutoModelForCausalLM.from_pretrained(FOLDER)
    attend(model, {"all": {"kind": "window-state", "window": 64, "first": 4}})

Importing this registers `attn_implementation="lsa_window_state"` with transformers. The cache is
theirs: it stores the keys and values of all tokens, and each new token reads all of them again. For
a cost per token that does not grow with the text, read the model with `lsa.llama_files.load_llama`
and continue the text with `lsa.sampling.sample`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from .checks import instance
from .llama import Attention, LlamaConfig, chosen, mixed, mixes_of, placed
from .llama_files import ATTENTION

NAME = "lsa_window_state"


def _transformers() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError:
        raise ImportError(
            "transformers: expected the package, which is not installed: "
            "pip install 'transformers>=5' safetensors"
        ) from None


def window_state(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, *,
    scaling: float | None = None, dropout: float = 0.0, **kwargs: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """Attention by transformers' interface: q [B, H, T, K], k and v [B, G, L, K] to [B, T, H, K].

    The queries are the last T of L positions. Raises ValueError for a model that `attend` has not
    prepared, a mask, dropout, or scores that are scaled otherwise.
    """
    if not hasattr(module, "mixes"):
        raise ValueError(f"model: expected one prepared for {NAME} by lsa.hugging_face.attend")
    if attention_mask is not None:
        raise ValueError(f"attention_mask: expected none, got one of {[*attention_mask.shape]}")
    if dropout:
        raise ValueError(f"attention_dropout: expected 0, got {dropout}")
    width = query.shape[-1]
    if scaling is not None and abs(scaling * width**0.5 - 1) > 1e-6:
        raise ValueError(f"scaling: expected 1 / sqrt({width}), got {scaling}")
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    T, L = q.shape[1], k.shape[1]
    q = F.pad(q, (0, 0, 0, 0, L - T, 0))  # the state is formed from all tokens

    def each(i: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mix = module.mixes[i]
        return mix(*placed(mix, q, k, 0, module.rope_base), v)

    o = mixed(module.parts, q, k, v, each)
    return o[:, L - T :], None


def no_mask(
    *, q_length: int, kv_length: int, q_offset: Any, attention_mask: Tensor | None,
    mask_function: Any, **kwargs: Any,
) -> None:  # fmt: skip
    """No mask: `window_state` needs none. Raises ValueError if transformers' mask hides tokens."""
    if attention_mask is not None and not attention_mask.all():
        raise ValueError("attention_mask: expected all ones, got padding; give texts of one length")
    if mask_function.__name__ != "causal_mask_function":
        raise ValueError("position_ids: expected one text a row, got several")
    if kv_length != q_offset + q_length:
        expected = f"a DynamicCache of {q_offset + q_length} tokens"
        raise ValueError(f"past_key_values: expected {expected}, got room for {kv_length}")


_transformers().AttentionInterface.register(NAME, window_state)
_transformers().AttentionMaskInterface.register(NAME, no_mask)


def attend(model: Any, attention: Attention | None = None) -> None:
    """Change how the heads of a `LlamaForCausalLM` attend, with the same weights.

    attention: as for `lsa.llama.Llama`; None: from the model's configuration, where
        `lsa.llama_files.save_llama` or this function has written it. Learned features and balances
        of heads become new parameters of the model.

    Raises ValueError.
    """
    instance("model", model, _transformers().LlamaForCausalLM)
    attention = getattr(model.config, ATTENTION, None) if attention is None else attention
    if attention is None:
        raise ValueError(f"attention: expected kinds, or {ATTENTION} in config.json, got neither")
    theirs = model.config
    rope = theirs.rope_parameters
    if rope.get("rope_type", "default") != "default":  # other positions are computed from these
        raise ValueError(f"rope_type: expected 'default', got {rope['rope_type']!r:.60}")
    config = LlamaConfig(
        n_layer=theirs.num_hidden_layers,
        n_head=theirs.num_attention_heads,
        n_kv_head=theirs.num_key_value_heads,
        head_width=theirs.head_dim,
    )
    each = [mixes_of(heads, config) for heads in chosen(attention, config)]
    for layer, (parts, mixes) in zip(model.model.layers, each, strict=True):
        module = layer.self_attn
        module.parts, module.rope_base = parts, rope["rope_theta"]
        module.mixes = mixes.to(module.q_proj.weight)
    setattr(theirs, ATTENTION, {key: dict(value) for key, value in attention.items()})
    model.set_attn_implementation(NAME)


def load_converted(folder: Path | str, **options: Any) -> Any:
    """A model of transformers, from a folder of `save_llama`, or of their own after `attend`.

    options: of `from_pretrained`. Raises ValueError.
    """
    if not (Path(folder) / "config.json").is_file():  # they would look for it on their hub
        raise ValueError(f"folder: expected a config.json in {folder}, got none")
    model = _transformers().AutoModelForCausalLM.from_pretrained(folder, **options)
    attend(model)
    learned = {n: p for n, p in model.named_parameters() if ".mixes." in n}
    safetensors = importlib.import_module("safetensors.torch")
    for file in sorted(Path(folder).glob("*.safetensors")):
        for name, weight in safetensors.load_file(file).items():
            if name in learned:
                learned.pop(name).data.copy_(weight)
    for name in learned:
        raise ValueError(f"folder: expected weights {name}, got none")
    return model

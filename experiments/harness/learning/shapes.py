"""The model of a run's configuration: its shape, the memory it needs, and a recipe of many runs."""

from __future__ import annotations

from typing import Any

from lsa.cost import training_memory
from lsa.gpt import GPTConfig, gpt_config
from lsa.layers import LAYERS, SoftmaxAttention

from ..core.plan import UsageError
from .corpora import VOCAB

# The recipe of nano models whose heads decay, and so need no positions.
NANO: dict[str, Any] = {
    "scale": "nano",
    "corpus": "novels",
    "n_positions": None,
    "learning_rate": 2e-3,
    "warmup_updates": 100,
    "weight_decay": 0.1,
    "micro_batches": 1,
    "train_seconds": 0,
}
# Of the smallest runs.
SMOKE = {"context": 64, "span": 64, "updates": 3, "validate_every": 2, "validation_span": 256}
# Older names under which a configuration may give an option of its attention.
OPTIONS = {
    "feature_map": "feature_map",
    "normalize": "normalize",
    "output_norm": "output_norm",
    "taylor_degree": "degree",
}


def shape_of(config: dict[str, Any]) -> GPTConfig:
    """The GPTConfig of a run's configuration.

    Options of the attention are in `attention_options`; older configurations have some under names
    of their own.
    """
    options = {OPTIONS[key]: config[key] for key in OPTIONS if key in config}
    return gpt_config(
        config["scale"],
        vocab_size=VOCAB,
        n_positions=config.get("n_positions", config["context"]),
        **config.get("shape", {}),  # overrides of the scale: n_layer, n_head, d_model
        attention=config["attention"],
        attention_options={**options, **config.get("attention_options", {})},
    )


def memory_needed(config: dict[str, Any], devices: int, *, recompute: bool | None = None) -> int:
    """Least B on each of so many devices for a training.

    recompute: whether blocks are computed again for their gradients; by default only with several
    devices, which do so if they must. Raises UsageError as `layout` does.
    """
    windows = config["spans"] * config["span"] // config["context"]
    data, sequence = layout(config, devices)
    parts = -(-config["micro_batches"] // data)
    tokens = -(-windows // (data * parts)) * -(-config["context"] // sequence)
    again = devices > 1 if recompute is None else recompute
    return training_memory(shape_of(config), tokens, devices=devices, recompute=again)


def layout(config: dict[str, Any], ranks: int) -> tuple[int, int]:
    """Number of groups of ranks that the windows are divided among, and of ranks in a group.

    The ranks of a group share each window. Raises UsageError if the attention cannot be split so.
    """
    windows = config["spans"] * config["span"] // config["context"]
    data = max(n for n in range(1, ranks + 1) if ranks % n == 0 and n <= windows)
    sequence, layer = ranks // data, LAYERS[config["attention"]]
    if sequence > 1 and not getattr(layer, "splits", False):
        raise UsageError(
            f"ranks: expected at most one for each of {windows} windows, since attention "
            f"{config['attention']} cannot be split, got {ranks}"
        )
    heads = shape_of(config).n_head
    if sequence > heads and layer is SoftmaxAttention:
        raise UsageError(
            f"ranks: {ranks} ranks share {windows} pieces of text, {sequence} each; softmax "
            f"attention expects at most one for each of {heads} heads"
        )
    return data, sequence

"""What a trained model is asked: its loss by position, how it continues a text, what it looks at.

Of the last both the weights themselves (`attention_weights`) and how many tokens share them
(`attended`). And how a model's own weights are kept: one file of at most a megabyte for a nano
model, see `pack_weights`.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from lsa.gpt import GPT, gpt_config
from lsa.sampling import sample

from .batches import VALIDATION_SPANS, held_out_tokens
from .corpora import Corpus
from .tables import Tables, append

WINDOW = 16384  # tokens of each held-out novel that a loss is taken over
PROMPT = "It was a bright cold evening in November, and the old gentleman "
WEIGHTS = ".weights.npz"  # beside a record, in place of its .json
PAIR = ("softmax", "linear")  # the race's models whose weights are kept, of the first seed
KEPT = (256, 1024, 4096)  # and of further seeds at these contexts; at 16,384 one takes hours
LOOKED_AT = 32  # tokens of the prompt whose weights are kept


def kept(contexts: Iterable[int], seeds: Iterable[int]) -> list[tuple[str, int, int]]:
    """Attention, context and seed of each model whose weights the race keeps, by seed."""
    return [
        (attention, context, seed)
        for seed, context in product(seeds, contexts)
        for attention in PAIR
        if seed == 0 or context in KEPT
    ]


def asked(attention: str, context: int, seed: int) -> tuple[str, dict[str, Any]]:
    """What a run that asks such a model is called, and the part of its configuration that names it.

    One of two heads fades by half in four bytes, as in the race; `model_of` reads the weights.
    """
    name = f"{attention}-{context}"
    return f"{name}-seed{seed}" if seed else name, {
        "seed": seed,
        "attention": attention,
        "attention_options": {"log_decay": [-0.171875, 0.0]},
        "context": context,
        "trained": f"{name}-seed{seed}",
    }


@torch.no_grad()
def loss_by_position(
    model: GPT, corpus: Corpus, *, context: int, device: torch.device, window: int = WINDOW
) -> Tables:
    """Mean loss of held-out text by how much of it a token has before it.

    The same `VALIDATION_SPANS` spans of `window` tokens for every model, read twice: in windows of
    the model's own context ("own"), and each as one text ("whole"), longer than any text the
    model was trained on unless its context was the window. A row holds the tokens at positions
    first .. last, counted from 1, where both bounds double.
    """
    tables: Tables = {}
    windows = {"own": context}
    if model.config.n_positions is None:
        windows["whole"] = window
    for reading, length in windows.items():
        inputs, targets = held_out_tokens(
            corpus.splits["validation"], span=window, context=length, spans=VALIDATION_SPANS
        )
        losses = []
        for tokens, wanted in zip(
            inputs.chunk(VALIDATION_SPANS), targets.chunk(VALIDATION_SPANS), strict=True
        ):
            with torch.autocast(device.type, dtype=torch.bfloat16):
                logits = model(tokens.to(device)).float()
            loss = F.cross_entropy(
                logits.flatten(0, 1), wanted.to(device).flatten().long(), reduction="none"
            )
            losses.append(loss.view(wanted.shape).cpu())
        by_position = torch.cat(losses).double()
        first = 1
        while first <= length:
            last = min(2 * first - 1, length)
            part = by_position[:, first - 1 : last]
            row = {
                "reading": reading,
                "first": first,
                "last": last,
                "tokens": part.numel(),
                "loss": round(part.mean().item(), 5),
            }
            append(tables, "positions", row)
            first = last + 1
    return tables


def continuations(model: GPT, device: torch.device, length: int) -> dict[str, str]:
    """`length` bytes a byte model writes after PROMPT: the most likely, and drawn with seed 0."""
    prompt = torch.frombuffer(bytearray(PROMPT.encode()), dtype=torch.uint8)[None].to(device)
    written = {}
    for kind, temperature in (("greedy", 0.0), ("sampled", 0.8)):
        tokens = sample(model.machine(), prompt, max_tokens=length, temperature=temperature, seed=0)
        written[kind] = bytes(int(token) for token in tokens).decode("utf-8", errors="replace")
    return written


@torch.no_grad()
def attention_weights(model: GPT, device: torch.device) -> list[dict[str, Any]]:
    """What each head of a byte model looks at: a row for each head and token of the prompt.

    `weights`: the weights of the tokens up to this one, in whole thousandths, space between.
    """
    tokens = torch.frombuffer(bytearray(PROMPT.encode()), dtype=torch.uint8)
    x = model.embed(tokens[None, :LOOKED_AT].long().to(device))
    rows = []
    for layer, block in enumerate(model.blocks):
        weights = getattr(block.attn, "weights", None)
        if weights is None:
            return []
        for head, A in enumerate(weights(block.ln_1(x))[0].float().cpu()):
            for i, line in enumerate(A.tolist()):
                shares = " ".join(str(round(1000 * share)) for share in line[: i + 1])
                rows.append({"layer": layer, "head": head, "token": i, "weights": shares})
        x = block(x)
    return rows


@torch.no_grad()
def attended(
    model: GPT, corpus: Corpus, *, context: int, device: torch.device
) -> list[dict[str, Any]]:
    """How many tokens each head weighs, and how far that is from weighing all alike.

    A row for each layer and head, over the queries in the second half of one window of `context`
    tokens from each held-out novel. `effective`: the exponential of the entropy of a query's
    weights, n if it weighs n tokens alike; the geometric mean over queries. `alike`: the same if
    all scores were equal, which is less than the number of tokens where the head fades. `moved`:
    the share of a query's weights that lies elsewhere than it would then; the mean.

    Empty for a layer without weights, or one whose weights may be negative.
    """
    inputs, _ = held_out_tokens(
        corpus.splits["validation"], span=context, context=context, spans=VALIDATION_SPANS
    )
    sums: dict[tuple[int, int], list[float]] = {}
    for tokens in inputs.split(1):
        x = model.embed(tokens.to(device))
        for layer, block in enumerate(model.blocks):
            attn: Any = block.attn
            if not (hasattr(attn, "weights") and hasattr(attn, "faded")):
                return []
            A = attn.weights(block.ln_1(x))[0, :, context // 2 :].float()
            if (A < 0).any():
                return []
            flat = attn.faded(torch.ones(1, attn.n_heads, context, context, device=device))[0]
            flat = (flat / flat.sum(-1, keepdim=True))[:, context // 2 :]
            told = (_log_effective(A), _log_effective(flat), (A - flat).abs().sum(-1).mean(-1) / 2)
            for head, values in enumerate(zip(*(one.tolist() for one in told), strict=True)):
                before = sums.setdefault((layer, head), [0.0, 0.0, 0.0])
                sums[layer, head] = [a + b for a, b in zip(before, values, strict=True)]
            x = block(x)
    rows = []
    for (layer, head), (effective, alike, moved) in sums.items():
        n = len(inputs)
        rows.append({
            "layer": layer,
            "head": head,
            "effective": round(math.exp(effective / n), 3),
            "alike": round(math.exp(alike / n), 3),
            "moved": round(moved / n, 5),
        })  # fmt: skip
    return rows


def _log_effective(A: torch.Tensor) -> torch.Tensor:
    """Mean entropy over queries, in nats, of weights [H, Q, T]: [H]."""
    return torch.special.entr(A).sum(-1).mean(-1)


def pack_weights(model: GPT) -> bytes:
    """A model's weights as a NumPy .npz: int8 rows and a float32 scale a row.

    For every parameter NAME of two axes, `NAME` is int8 [out, in] and `NAME.scale` float32 [out],
    the weight being their product; one of a single axis is float32 itself. Rounding moves a
    weight by at most half of a 127th of the largest in its row.
    """
    arrays = {}
    for name, weight in model.state_dict().items():
        values = weight.detach().float().cpu().numpy()
        if values.ndim != 2:
            arrays[name] = values
            continue
        scale = np.abs(values).max(axis=1) / 127
        scale[scale == 0] = 1.0
        arrays[name] = np.round(values / scale[:, None]).astype(np.int8)
        arrays[f"{name}.scale"] = scale.astype(np.float32)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def unpack_weights(packed: bytes) -> dict[str, torch.Tensor]:
    """The state dictionary that `pack_weights` was given, rounded. Raises ValueError."""
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            weights = {}
            for name in arrays.files:
                if name.endswith(".scale"):
                    continue
                values = arrays[name]
                if values.dtype == np.int8:
                    values = values * arrays[f"{name}.scale"][:, None]
                weights[name] = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
            return weights
    except Exception as error:  # whatever zip and NumPy may say of bytes that are not theirs
        raise ValueError(f"packed: expected what pack_weights writes ({error})") from error


def model_of(
    config: dict[str, Any], places: Sequence[Path], device: torch.device
) -> tuple[GPT, str]:
    """The race's model, from the first folder of results that has it, and its file's SHA-256.

    Raises FileNotFoundError, ValueError.
    """
    name = f"{config['trained']}{WEIGHTS}"
    found = [file for place in places for file in sorted(place.glob(f"race/*/{name}"))]
    if not found:
        command = f"python -m experiments run race --only context={config['context']}"
        raise FileNotFoundError(f"{places[0]}/race/*/{name}: not there; {command}")
    packed = found[0].read_bytes()
    shape = gpt_config(
        config["scale"], vocab_size=256, n_positions=None,
        attention=config["attention"], attention_options=config["attention_options"],
    )  # fmt: skip
    model = GPT(shape)
    model.load_state_dict(unpack_weights(packed))
    return model.to(device).eval(), hashlib.sha256(packed).hexdigest()

"""Whole novels, read from the first byte to the last by models trained on far shorter texts.

The race's models, from their stored weights, read the held-out novels. Linear attention's machine
reads to the end, up to a million bytes, in constant time a byte. Softmax's cache grows, so it reads
only `reach` bytes.

Some pages are easier than others for any model. So every byte is predicted twice by the same model:
with the whole novel before it, and with between half a window and a whole one before it. The
difference is the model's use of everything further back. It would show a state that deteriorates
after a million tokens, and also one that makes use of them.

SmolLM2-135M-Instruct reads novels too, past the 8,192 tokens of its training: with softmax in all
heads, in the first of a ranking alone, or in none. The other heads see a window and the first
tokens, so the last of these models has a state that never grows. In the run named `adjacent` the
first tokens count as next to the window, so that no distance is longer than in training. In those
named `states` each head also keeps a state of the tokens between, whose features are fitted first;
in `states-adjacent` it reads q and k without rotary positions. In `states-fading` it also decays: a
token's weight halves every 1,024 tokens.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lsa.gpt import GPT
from lsa.llama import Llama

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .harness.learning import distilled_runs
from .harness.learning.distilling import fitted
from .harness.learning.prepared import Split
from .harness.learning.returning import LETTERS, Tokens, trained
from .recipes import FADING, attention_of, first_heads, model_of, reading_runs

REACH = {"softmax": 65536, "linear": 1 << 20}  # no novel is longer than the latter
BASE = {
    "scale": "nano",
    "corpus": "novels",
    "window": 4096,
    "piece": 1024,  # bytes read at a time, so that a cache's scores fit into memory
}
SMOKE = {"window": 64, "piece": 32, "reach": 200}
LLAMA: dict[str, Any] = {
    "model": "SmolLM2-135M-Instruct",
    "context": 8192,  # of its training
    "corpus": "novels",
    "split": "test",
    "seed": 0,
    "order": "gradient",
    "attention": {"kind": "window", "window": 64, "first": 4},
    "window": 4096,
    "piece": 256,
}
STATES = {"kind": "window-state", "feature_map": "hedgehog"}
UNROTATED: dict[str, Any] = {**STATES, "adjacent": True, "rotary": False}
# Heads with softmax, how far they read, and options of the others. Without softmax a token's time
# does not grow.
LLAMAS: dict[str, tuple[int | None, int, dict[str, Any]]] = {
    "softmax": (None, 16384, {}),
    "confined": (0, 32768, {}),
    "confined-adjacent": (0, 32768, {"adjacent": True}),
    "24-heads": (24, 16384, {}),
    "states": (0, 32768, STATES),
    "states-adjacent": (0, 32768, UNROTATED),
    "states-fading": (0, 32768, {**UNROTATED, "log_decay": [FADING] * 9}),
}
FIT = {
    **{name: distilled_runs.BASE[name] for name in ("seed", "texts", "feature_rate")},
    "length": 2048,
    "feature_tokens": 81920,
}
FIT_SMOKE = {"length": 200, "feature_tokens": 400}
TABLES = {
    "weights": table(sha256=("name", "of the file of weights that was read")),
    "positions": table(
        novel=("number", "which of the held-out novels"),
        first=("tokens", "position in the novel of the first token counted, from 1"),
        last=("tokens", "of the last token: twice as far, or the end of what is read"),
        whole=("nats/token", "mean loss with the whole novel before each token"),
        window=("nats/token", "the same with between half a window and a whole one before it"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """The race's models whose weights are stored, first seeds before second ones; SmolLM2."""
    plan = []
    for name, read in reading_runs(smoke).items():
        config = {**BASE, "reach": REACH[read["attention"]], **read, **(SMOKE if smoke else {})}
        plan.append(Run("whole_novels", name, config, 310 + 100 * read["seed"]))
    if kind == "cpu":  # the weights come in a package that a GPU machine may lack
        tried = {"model": "tiny", "order": "counted", **SMOKE} if smoke else {}
        for name, (heads, reach, options) in LLAMAS.items():
            few = min(heads, 3) if smoke and heads else heads  # of the eight of a tiny model
            attention = {**LLAMA["attention"], **options}
            config = {**LLAMA, "softmax_heads": few, "reach": reach, "attention": attention}
            if smoke and "log_decay" in attention:
                attention["log_decay"] = attention["log_decay"][:4]  # a tiny model has four heads
            if "feature_map" in attention:
                config["fit"] = {**FIT, **FIT_SMOKE} if smoke else FIT
            plan.append(Run("whole_novels", f"smollm2-{name}", {**config, **tried}, 720))
    return plan


def novels(split: Split, reach: int, tokens: Tokens | None = None) -> list[Tensor]:
    """The tokens of each document, at most `reach` and one to predict. tokens: of a tokenizer."""
    found = []
    for start, end in zip(split.starts[:-1], split.starts[1:], strict=True):
        letters = split.tokens[start : min(end, start + (LETTERS if tokens else 1) * (reach + 1))]
        if tokens:
            text = bytes(letters).decode(errors="ignore")
            found.append(torch.tensor(tokens(text)[: reach + 1]))
        else:
            found.append(torch.from_numpy(letters.astype("int64")))
    return found


def _loss(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.float(), targets, reduction="none").cpu().double()


@torch.no_grad()
def read_whole(model: GPT | Llama, tokens: Tensor, piece: int) -> Tensor:
    """Loss of each token but the first, [T - 1], with all earlier tokens read by the machine."""
    machine = model.machine()
    state, losses = machine.initial_state, []
    for start in range(0, len(tokens) - 1, piece):
        read = tokens[start : start + piece + 1]
        state, logits = machine.prefill(state, read[None, :-1])
        losses.append(_loss(logits[0], read[1:]))
    return torch.cat(losses)


@torch.no_grad()
def read_windows(model: GPT | Llama, tokens: Tensor, window: int) -> Tensor:
    """The same loss with nothing before a window; each begins half a window after the last.

    All of the first window counts, and the second half of each other one.
    """
    half = window // 2
    losses = []
    for start in range(0, max(1, len(tokens) - 1 - half), half):
        read = tokens[start : start + window + 1]
        logits = model(read[None, :-1])[0]
        counted = half if start else 0
        losses.append(_loss(logits[counted:], read[1 + counted :]))
    return torch.cat(losses)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    splits, tables = session.corpus(config["corpus"]).splits, Tables()
    model: GPT | Llama
    if "model" in config:
        found = trained(config["model"])
        model, sha256 = found.model, found.sha256
        if (number := config["softmax_heads"]) is not None:
            attention = attention_of(config["attention"], first_heads(config, number, session))
            if "fit" in config:
                model = fitted(config["fit"], attention, found, splits)
            else:
                model.attend(attention)
        texts = novels(splits[config["split"]], config["reach"], found.tokens)
    else:
        model, sha256 = model_of(config, session.places, session.device)
        texts = novels(splits["validation"], config["reach"])
    append(tables, "weights", {"sha256": sha256})
    for novel in session.through(range(len(texts)), tables, "novel {}".format):
        tokens = texts[novel].to(session.device)
        whole = read_whole(model, tokens, config["piece"])
        window = read_windows(model, tokens, config["window"])
        first = config["window"] + 1  # before it both have read the same
        while first <= len(whole):
            last = min(2 * (first - 1), len(whole))
            means = {
                name: round(losses[first - 1 : last].mean().item(), 6)
                for name, losses in (("whole", whole), ("window", window))
            }
            append(tables, "positions", {"novel": novel, "first": first, "last": last, **means})
            first = last + 1
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "whole_novels", "novels read from the first byte to the last", TABLES, runs, perform
)

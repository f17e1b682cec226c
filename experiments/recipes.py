"""Parts shared by experiments: the decaying head, the race's stored models, ranked heads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lsa.gpt import GPT

from .harness.bench.timing import summarize
from .harness.core import record
from .harness.core.plan import Outcome, Session
from .harness.core.tables import Table, Tables, append, table
from .harness.core.weights import read_weights
from .harness.learning.shapes import shape_of
from .harness.learning.training import Training
from .harness.learning.weights import WEIGHTS, unpack_weights

# A weight halves in about four bytes of distance: log 2 / 0.171875 = 4.03. Exact in bf16.
NEAR = -0.171875
FADING = -log(2) / 1024  # of states that read on past a trained model's longest texts
PAIR = ("softmax", "linear")  # the race's models whose weights are stored, for the first seed
KEPT = (256, 1024, 4096)  # for further seeds only these contexts; at 16,384 a run takes hours
# x [B, T, D] to q, k, v.
Projection = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]


def shifted(x: Tensor) -> Tensor:
    """Each token's first half of features replaced by those of the token before. x [B, T, D]."""
    half = x.shape[-1] // 2
    return torch.cat((F.pad(x[..., :half], (0, 0, 1, -1)), x[..., half:]), -1)


def token_shift(model: GPT) -> None:
    """Add RWKV's token shift to every layer (Peng et al., 2023, 3.1.1), in its simplest form."""
    change_projections(model, lambda qkv: lambda x: qkv(shifted(x)))


def change_projections(model: GPT, changed: Callable[[Projection], Projection]) -> None:
    """Change how every layer forms q, k and v."""
    for block in model.blocks:
        attention: Any = block.attn  # a MultiHead; so is no attention
        attention.qkv = changed(attention.qkv)


def stored_models(contexts: Iterable[int], seeds: Iterable[int]) -> list[tuple[str, int, int]]:
    """Attention, context and seed of each model whose weights the race stores, ordered by seed."""
    return [
        (attention, context, seed)
        for seed, context in product(seeds, contexts)
        for attention in PAIR
        if seed == 0 or context in KEPT
    ]


def reading_runs(smoke: bool) -> dict[str, dict[str, Any]]:
    """Name and partial configuration of a run for each such model, first seeds before second ones.

    One of two heads decays to a half in four bytes, as in the race; `model_of` reads the weights.
    """
    contexts, seeds = ((64,), (0,)) if smoke else ((4096, 1024, 16384, 256), (0, 1, 2))
    found = {}
    for attention, context, seed in stored_models(contexts, seeds):
        name = f"{attention}-{context}"
        found[f"{name}-seed{seed}" if seed else name] = {
            "seed": seed,
            "attention": attention,
            "attention_options": {"log_decay": [NEAR, 0.0]},
            "context": context,
            "trained": f"{name}-seed{seed}",
        }
    return found


def model_of(
    config: dict[str, Any], places: Sequence[Path], device: torch.device
) -> tuple[GPT, str]:
    """A race's trained model, from the first results folder that has it, and its file's SHA-256.

    config: of a run that reads it. `race` is the experiment that trained it, "race" by default.
    Raises FileNotFoundError; RecordError, unless the weights are those of the run beside them.
    """
    name, race = f"{config['trained']}{WEIGHTS}", config.get("race", "race")
    found = [file for place in places for file in sorted(place.glob(f"{race}/*/{name}"))]
    if not found:
        command = f"python -m experiments run {race} --only name={config['trained']}"
        raise FileNotFoundError(f"{places[0]}/{race}/*/{name}: not there; {command}")
    run = found[0].with_name(f"{config['trained']}.json")
    packed = read_weights(run, record.read(run)) or b""
    model = GPT(shape_of({**config, "n_positions": None}))
    model.load_state_dict(unpack_weights(packed))
    return model.to(device).eval(), hashlib.sha256(packed).hexdigest()


def speed_table(runs: str) -> Table:
    """The table that `time_updates` writes. runs: those that have it, in words."""
    return table(
        optional=f"in {runs} named `speed`",
        model=("name", "as in `config.model`"),
        seconds=("s", "median of one update"),
        low=("s", "first quartile"),
        high=("s", "third quartile"),
        repeats=("updates", "how many were timed"),
    )


def time_updates(planned: dict[str, dict[str, Any]], rounds: int, session: Session) -> Outcome:
    """Time an update of every model, given its configuration: one update each in every round."""
    trainings = {
        model: Training(config, session.corpus(config["corpus"]), session.device)
        for model, config in planned.items()
    }
    for training in trainings.values():
        training.warm_up()
    for i in range(rounds):
        if session.out_of_time():
            return Outcome({}, complete=False)
        for training in trainings.values():
            training.update()
        session.show(i + 1, rounds, "rounds of updates")
    tables: Tables = {}
    for model, training in trainings.items():
        append(tables, "speed", {"model": model, **summarize(training.train["seconds"]).columns})
    return Outcome(tables)


RANKED = 256  # tokens between both comings of what ranks heads, unless a name says otherwise


def ranking_name(text: str, distance: int = RANKED) -> str:
    """Name of the run of `remove_exponential` that ranks heads for a kind of text."""
    return f"rank-{text}" if distance == RANKED else f"rank-{text}-{distance}"


def ranked_heads(
    model: str, text: str, order: str, places: Sequence[Path], distance: int = RANKED
) -> list[tuple[int, int]]:
    """Layer and head of all heads of a model, the most important first, in one of several orders.

    From a finished run of `remove_exponential` named `rank`, in the first folder that has one.
    text: what comes again, "passages" or "lists". order: "gradient", "mass", or "random-" and a
    seed. distance: how many tokens after the first coming. Raises FileNotFoundError if there is
    none.
    """
    name = ranking_name(text, distance)
    found = [
        one["tables"]["heads"]
        for place in places
        for one in record.load("remove_exponential", place, partial=False)
        if one["name"] == name and one["config"]["model"] == model
    ]
    if not found:
        command = "python -m experiments run remove_exponential --only where=rank"
        raise FileNotFoundError(f"remove_exponential/*/{name}.json: not there; {command}")
    heads = found[0]
    # The heads are in the same order for each text.
    texts = max(heads["text"]) + 1
    each = list(zip(heads["layer"], heads["head"], strict=True))[: len(heads["text"]) // texts]
    if order.startswith("random"):
        places_in_order = np.random.default_rng(int(order[-1])).permutation(len(each))
    else:
        columns = {"gradient": "slope", "mass": "mass"}
        means = np.reshape(heads[columns[order]], (texts, -1)).mean(0)
        places_in_order = np.argsort(means if order == "gradient" else -means, kind="stable")
    return [each[i] for i in places_in_order]


def in_turn(rankings: Iterable[Sequence[tuple[int, int]]]) -> list[tuple[int, int]]:
    """Several rankings of the same heads as one: a head of each in turn, none twice."""
    return list(dict.fromkeys(head for heads in zip(*rankings, strict=True) for head in heads))


def first_heads(config: dict[str, Any], number: int, session: Session) -> list[tuple[int, int]]:
    """Layer and head of the first heads of a ranking; config has its model and its order.

    The order "counted" is for trials with an unranked model: the heads are then those of the first
    two layers. Raises FileNotFoundError without a ranking.
    """
    if config["order"] == "counted" or not number:
        return [(i % 2, i) for i in range(number)]
    places = session.checkpoint.parents[3], record.RESULTS
    return ranked_heads(config["model"], "passages", config["order"], places)[:number]


def attention_of(
    kind: dict[str, Any], heads: Iterable[tuple[int, int]]
) -> dict[str, dict[str, Any]]:
    """All heads attend in one way, except those of a list, which have softmax."""
    return {"all": kind, **{f"{layer}.{head}": {"kind": "softmax"} for layer, head in heads}}

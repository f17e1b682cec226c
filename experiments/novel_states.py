"""States of the linear writer in a held-out novel, for a page that continues from them.

The long race's linear model, which has read all the training novels, reads a novel of the test
split from its first letter, in float64, so that no rounding of a long sum is stored. Beside a
record lie arrays in float32. `S` [layers, heads, K, V] and `z` [layers, heads, K] are the state
after a number of letters, `logits` [256] those of the next letter. The arrays have the same size
after a thousand letters as after a million.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lsa import LinearState
from lsa.gpt import GPT

from .harness.core import checkpoint
from .harness.core.plan import Experiment, Outcome, Run, Session, UsageError
from .harness.core.tables import Tables, append, table
from .harness.core.weights import pack_arrays
from .harness.learning.corpora import TEST_NOVELS
from .recipes import NEAR, model_of

NOVEL = "Cbronte_Villette_1853"  # one of two novels in its split that are long enough
LETTERS = (1000, 10_000, 100_000, 1_000_000)
BASE: dict[str, Any] = {
    "race": "long_race",
    "trained": "linear-all-seed0",
    "scale": "nano",
    "shape": {"n_layer": 6, "d_model": 192},
    "attention": "linear",
    "attention_options": {"log_decay": [NEAR, 0.0]},
    "context": 1024,
    "seed": 0,
    "corpus": "novels",
    "split": "test",
    "novel": NOVEL,
    "piece": 4096,  # letters read at a time
    "shown": 240,  # of the last letters, for the reader
}
SMOKE = {
    "trained": "linear-seed0",
    "shape": {"n_layer": 2, "d_model": 16},
    "context": 64,
    "piece": 32,
    "shown": 20,
}
TABLES = {
    "weights": table(sha256=("name", "of the file of weights that was read")),
    "state": table(
        letters=("number", "how many were read"),
        bytes=("B", "of the state, in float32"),
        text=("text", "the last letters read"),
    ),
}

Reading = tuple[list[LinearState], Tensor]  # S and z of every layer, and the logits


def runs(kind: str, smoke: bool) -> list[Run]:
    """The plan, a state each; the longest takes minutes on one CPU thread."""
    if smoke:
        return [_run(100, SMOKE)]
    return [_run(letters, {}) for letters in LETTERS]


def _run(letters: int, rest: dict[str, Any]) -> Run:
    config = {**BASE, "letters": letters, **rest}
    return Run("novel_states", f"long-race-linear-after-{letters}", config, 725)


def sums(state: Any) -> Iterator[LinearState]:
    """S and z of every linear attention layer in a GPT's state, the first layer first."""
    if isinstance(state, LinearState):
        yield state
    elif isinstance(state, tuple):
        for part in state:
            yield from sums(part)


def resumed(state: Any, read: int, found: Iterator[LinearState]) -> Any:
    """A GPT's state with the sums of `found` instead of its own, after `read` letters."""
    if isinstance(state, LinearState):
        return next(found)
    if isinstance(state, int):
        return read
    return tuple(resumed(part, read, found) for part in state)


def novel(config: dict[str, Any], session: Session) -> Tensor:
    """The letters to read [letters]. Raises UsageError if the novel has fewer."""
    split = session.corpus(config["corpus"]).splits[config["split"]]
    place = sorted(TEST_NOVELS).index(config["novel"])
    start, end = split.starts[place], split.starts[place + 1]
    if end - start < config["letters"]:
        got = f"{config['novel']} of {end - start:,}"
        raise UsageError(f"novel: expected at least {config['letters']:,} letters, got {got}")
    return torch.from_numpy(split.tokens[start : start + config["letters"]].astype("int64"))


@torch.no_grad()
def read(model: GPT, text: Tensor, session: Session, config: dict[str, Any]) -> Reading | None:
    """The machine's state after a text [T], and its logits there, [256]; None if out of time.

    A run that is out of time leaves a checkpoint, and continues from it.
    """
    machine = model.machine()
    state, begin = _resume(machine.initial_state, session, config)
    logits, piece = torch.empty(0), config["piece"]
    for start in range(begin, len(text), piece):
        if session.out_of_time():
            S, z = zip(*sums(state), strict=True)
            contents = {"config": config, "read": start, "S": [*S], "z": [*z]}
            checkpoint.save(session.checkpoint, contents)
            return None
        state, logits = machine.read(state, text[None, start : start + piece])
        session.show(min(start + piece, len(text)), len(text), "letters read")
    return [*sums(state)], logits[0]


def _resume(state: Any, session: Session, config: dict[str, Any]) -> tuple[Any, int]:
    """The state of a checkpoint of this configuration, and the number of letters read."""
    kept = checkpoint.resumed(session, config)
    if kept is None:
        return state, 0
    found = map(LinearState, kept["S"], kept["z"])
    return resumed(state, kept["read"], found), kept["read"]


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. The arrays are stored beside its record."""
    model, sha256 = model_of(config, session.places, session.device)
    text = novel(config, session).to(session.device)
    found = read(model.double(), text, session, config)
    if found is None:
        return Outcome({}, complete=False)
    layers, logits = found
    arrays = {
        "S": torch.cat([one.S for one in layers]),
        "z": torch.cat([one.z for one in layers]),
        "logits": logits,
    }
    packed = {name: one.cpu().numpy().astype(np.float32) for name, one in arrays.items()}
    session.keep_weights(pack_arrays(packed))
    tables: Tables = {}
    append(tables, "weights", {"sha256": sha256})
    row = {
        "letters": len(text),
        "bytes": packed["S"].nbytes + packed["z"].nbytes,
        "text": bytes(text[-config["shown"] :].tolist()).decode(errors="replace"),
    }
    append(tables, "state", row)
    return Outcome(tables)


EXPERIMENT = Experiment(
    "novel_states", "what the linear writer keeps of a held-out novel", TABLES, runs, perform
)

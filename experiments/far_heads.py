"""Softmax models of the long race whose heads are confined when they read.

A model of `long_race` that has read all text gains on passages that come again, and ends below
linear attention. Here its heads see the last 128 bytes and the first, in all layers or in one.
Nothing is trained. One head of each layer fades within bytes, so the window takes nothing from it.
What is lost is what the far-sighted heads bring.

Control: the model that stopped after 20 MB. Stored weights are rounded to 8 bits, so the model is
measured without a window, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from lsa.gpt import GPT
from lsa.layers.window import WindowAttention

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .harness.learning.passages import AGAIN, BY_NOVEL, loss_by_novel, passage_gains
from .harness.learning.probes import WINDOW
from .recipes import NEAR, model_of

LAYERS = 6
BASE: dict[str, Any] = {
    "scale": "nano",
    "corpus": "novels",
    "race": "long_race",
    "shape": {"n_layer": LAYERS, "d_model": 192},
    "context": 1024,
    "validation_span": WINDOW,
    "passage": 64,
    "lead": 8,
    "places": 100,
    "distances": [64, 128, 256, 512, 896],
    "model": "softmax",
    "attention": "softmax",
    "attention_options": {"log_decay": [NEAR, 0.0]},
    "window": 128,
    "first": 1,
    "seed": 0,
}
SMOKE: dict[str, Any] = {
    "shape": {"n_layer": 2, "d_model": 16},
    "context": 64,
    "validation_span": 256,
    "passage": 16,
    "places": 5,
    "distances": [16, 32],
}
TABLES = {
    "weights": table(sha256=("name", "of the file of weights that was read")),
    "positions": table(**BY_NOVEL),
    "again": replace(
        AGAIN, columns={k: column for k, column in AGAIN.columns.items() if k != "update"}
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """All layers and none; then one layer after another, in models that read all text."""
    if smoke:
        return [_run("softmax-seed0", "all", range(2), SMOKE)]
    sets = {"none": range(0), "all": range(LAYERS)}
    single = {f"layer-{n}": range(n, n + 1) for n in range(LAYERS)}
    return [
        _run(trained, name, layers, {})
        for trained, cases in {
            "softmax-all-seed0": sets | single,
            "softmax-seed0": sets,
            "softmax-all-seed1": sets | single,
        }.items()
        for name, layers in cases.items()
    ]


def _run(trained: str, name: str, layers: range, rest: dict[str, Any]) -> Run:
    config = {**BASE, **rest, "trained": trained, "layers": [*layers]}
    return Run("far_heads", f"{trained}-{name}", config, 740)


def confine(
    model: GPT, layers: Iterable[int], *, window: int, first: int, log_decay: Sequence[float]
) -> None:
    """Replace softmax attention of some layers by one in a window, with the same weights."""
    for n in layers:
        whole: Any = model.blocks[n].attn
        near = WindowAttention(
            model.config.d_model, model.config.n_head, window=window, first=first,
            log_decay=log_decay,
        )  # fmt: skip
        near.load_state_dict(whole.state_dict())
        model.blocks[n].attn = near.to(next(whole.parameters()).device).eval()


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    model, sha256 = model_of(config, session.places, session.device)
    confine(
        model, config["layers"], window=config["window"], first=config["first"],
        **config["attention_options"],
    )  # fmt: skip
    corpus = session.corpus(config["corpus"])
    tables: Tables = {}
    append(tables, "weights", {"sha256": sha256})
    for name, measure in (("positions", loss_by_novel), ("again", passage_gains)):
        for row in measure(model, corpus, config, session.device):
            append(tables, name, row)
        session.show(len(tables) - 1, 2, name)
    return Outcome(tables)


EXPERIMENT = Experiment(
    "far_heads", "what far-sighted heads bring to softmax models of the long race", TABLES, runs,
    perform,
)  # fmt: skip

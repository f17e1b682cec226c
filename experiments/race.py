"""Learning with and without the exponential, each attention with a near-sighted head.

Without a head that decays these models stay at letter pairs for thousands of updates at a long
context (`loss_curves`). Here one head of two decays with distance, for both attentions alike, and
the other sees everything as before. Four controls show what attention adds: two decaying heads,
which see nothing far; softmax confined to the last 128 bytes and the first (`window`); a
convolution of two bytes in place of attention; and no attention.

The rule for stopping is fixed before the runs: all runs at a context make the same number of
updates, and so read the same text. Runs named `speed` measure the seconds of an update separately,
interleaved on a quiet computer; those in `train` may be of a busy one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import append, table
from .harness.learning.probes import WINDOW, attention_weights, continuations, loss_by_position
from .harness.learning.shapes import NANO
from .harness.learning.training import TABLES as CURVES
from .harness.learning.training import Training, train_through
from .harness.learning.weights import pack_weights, packed_shapes
from .recipes import NEAR, speed_table, stored_models, time_updates

MODELS: dict[str, dict[str, Any]] = {
    "softmax": {"attention": "softmax", "attention_options": {"log_decay": [NEAR, 0.0]}},
    "linear": {"attention": "linear", "attention_options": {"log_decay": [NEAR, 0.0]}},
    "softmax, near only": {"attention": "softmax", "attention_options": {"log_decay": [NEAR] * 2}},
    "linear, near only": {"attention": "linear", "attention_options": {"log_decay": [NEAR] * 2}},
    "window": {
        "attention": "window",
        "attention_options": {"log_decay": [NEAR, 0.0], "window": 128, "first": 1},
    },
    "two bytes": {"attention": "conv", "attention_options": {"width": 2}},
    "no attention": {"attention": "none", "attention_options": {}},
}
UPDATES = {256: 2048, 1024: 2048, 4096: 1024, 16384: 512}
# If softmax sees nothing far, almost all its work at the longest context is on weights of zero.
# They decay by 2^-127 over this window, so tokens beyond it are left out. Timed runs do all the
# work.
WINDOWS = {("softmax, near only", 16384): 512}
WRITER = ("window", 4096, 0)  # stored too, for the page on which three models write
ORDER = (4096, 1024, 16384, 256)  # most informative first
TOKENS = 2048  # the least bytes that an update reads; or one window
ROUNDS = {256: 25, 1024: 25, 4096: 15, 16384: 7}
SEEDS = (0, 1, 2)
BASE = {
    **NANO,
    "continued": 160,  # bytes written for the film
    "validation_span": WINDOW,  # of each held-out novel, as for the n-gram models
}
SMOKE = {
    "updates": 3,
    "spans": 1,
    "continued": 2,
    "validation_span": 256,
    "validate_every": 2,
    "film": [0, 2],
}
# After these updates, seed 0 writes text and its attention is stored.
FILM = [0, 25, 50, 75, 100, 150, 200, 300, 400, 512, 700, 1024, 1400, 2048]
TRAINED = "in every run except those named `speed`"
FILMED = "in the runs of seed 0, after the updates in `config.film`"
TABLES = {
    **{name: replace(curve, optional=TRAINED) for name, curve in CURVES.items()},
    "positions": table(
        optional=TRAINED,
        reading=("name", "`own`: in windows of the context; `whole`: each span as one text"),
        first=("tokens", "the first position, counted from 1"),
        last=("tokens", "the last position"),
        tokens=("tokens", "how many stood at these positions"),
        loss=("nats/token", "their mean loss"),
    ),
    "samples": table(
        optional=FILMED,
        update=("updates", "after how many updates"),
        kind=("name", "`greedy`: the most likely byte each time; `sampled`: drawn"),
        text=("text", "what the model writes after a fixed prompt"),
    ),
    "looks": table(
        optional=FILMED,
        update=("updates", "after how many updates"),
        layer=("number", "from 0"),
        head=("number", "from 0"),
        token=("number", "which token of the prompt looks, from 0"),
        weights=("thousandths", "the weights of the tokens up to this one"),
    ),
    "speed": speed_table("the runs"),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Every model at every context, three seeds; all first seeds before the second ones."""
    if smoke:
        return [_speed(64, 2, spans=1), *(_run(model, 64, 0, 0, SMOKE) for model in MODELS)]
    return [_speed(context, ROUNDS[context]) for context in ORDER] + [
        _run(model, context, seed, 100 + 10 * seed + place, {})
        for seed in SEEDS
        for place, context in enumerate(ORDER)
        for model in MODELS
    ]


def _run(model: str, context: int, seed: int, priority: int, rest: dict[str, Any]) -> Run:
    name = f"{model.replace(',', '').replace(' ', '-')}-{context}-seed{seed}"
    updates = UPDATES.get(context, 0)
    config = {
        **BASE,
        "model": model,
        **MODELS[model],
        "context": context,
        "span": context,
        "spans": max(1, TOKENS // context),
        "seed": seed,
        "updates": updates,
        "validate_every": max(1, updates // 32),
        "film": [update for update in FILM if update <= updates] if seed == 0 else [],
        **rest,
    }
    if (model, context) in WINDOWS:
        config["window"] = WINDOWS[model, context]
    return Run("race", name, config, priority)


def _speed(context: int, rounds: int, **rest: int) -> Run:
    config = {"model": "all", "context": context, "rounds": rounds, "seed": 0, **rest}
    return Run("race", f"speed-{context}", config, 99)


def speeds(config: dict[str, Any], session: Session) -> Outcome:
    """Time an update of every model at a context, in rounds of one update each."""
    rest = {"spans": config["spans"]} if "spans" in config else {}
    at = config["context"], config["seed"], 0, rest
    planned = {model: _run(model, *at).config for model in MODELS}
    return time_updates(planned, config["rounds"], session)


def windowed(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with softmax confined to the window, if the run has one."""
    if "window" not in config:
        return config
    options = {**config["attention_options"], "window": config["window"], "first": 0}
    return {**config, "attention": "window", "attention_options": options}


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. A pair's weights are stored beside its record."""
    if config["model"] == "all":
        return speeds(config, session)
    corpus = session.corpus(config["corpus"])
    training = Training(windowed(config), corpus, session.device)

    def film(training: Training) -> None:
        if training.updates not in config["film"]:
            return
        written = continuations(training.model, session.device, config["continued"])
        for kind, text in written.items():
            row = {"update": training.updates, "kind": kind, "text": text}
            append(training.tables, "samples", row)
        for row in attention_weights(training.model, session.device):
            append(training.tables, "looks", {"update": training.updates, **row})

    outcome = train_through(training, session, film)
    if not outcome.complete:
        return outcome
    found = loss_by_position(
        training.model, corpus,
        context=config["context"], device=session.device, window=config["validation_span"],
    )  # fmt: skip
    seed, context = config["seed"], config["context"]
    model = (config["model"], context, seed)
    if model in (*stored_models([context], [seed]), WRITER):
        session.keep_weights(pack_weights(training.model))
    return Outcome({**outcome.tables, **found})


EXPERIMENT = Experiment(
    "race", "both attentions with one near-sighted head, beside controls", TABLES, runs, perform,
    weights=packed_shapes,
)  # fmt: skip

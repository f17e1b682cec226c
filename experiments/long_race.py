"""Both attentions read 20 MB, or all text once, beside softmax in a window of 128 bytes.

The models of `race` with this context stop after 4 MB, before any of them looks far back. Here
models of 2.7 million parameters (`scaling`'s largest) read windows of 1,024 bytes from all 90
training novels, none twice. The seed draws their order, so runs of one seed read the same text in
the same order. As in `race`, one head of two decays by half in four bytes and the other does not.

Controls: `window` is softmax attention to the last 128 bytes and to the first; `linear, near only`
has two decaying heads.

The rule for stopping is fixed before the runs: 4,880 updates of four windows, and in runs named
`all` 17,080, which leave 0.2% of the windows unread. After a warm-up the learning rate is constant,
and over the last fifth it falls to zero. The rate is that of `scaling`: after 512 updates half and
twice the rate ended higher there, in the mean. Runs named after a rate read all the text with it.

Models are measured on held-out novels after every 5 MB, and more often at the beginning. Stored are
the loss by position, the gain on a passage of 64 bytes that comes again after 64 to 896 bytes (as
in `long_context`), and the continuation of one sentence.

Do not quote seconds from `train`: those computers may have been busy. Runs named `speed` time an
update of each model, in turns, on a quiet computer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import INCREASING, Columns, append, table
from .harness.learning.passages import AGAIN, BY_NOVEL, loss_by_novel, passage_gains
from .harness.learning.probes import WINDOW, continuations
from .harness.learning.shapes import NANO
from .harness.learning.sizes import MODEL, model_row
from .harness.learning.training import TABLES as CURVES
from .harness.learning.training import Training, train_through
from .harness.learning.weights import pack_weights, packed_shapes
from .recipes import NEAR, PAIR, speed_table, time_updates

FAR = {"log_decay": [NEAR, 0.0]}
MODELS: dict[str, dict[str, Any]] = {
    "softmax": {"attention": "softmax", "attention_options": FAR},
    "linear": {"attention": "linear", "attention_options": FAR},
    "window": {
        "attention": "window",
        "attention_options": {**FAR, "window": 128, "first": 1},
    },
    "linear, near only": {"attention": "linear", "attention_options": {"log_decay": [NEAR] * 2}},
}
SECOND = "linear", "linear, near only", "softmax"  # models of a second seed
UPDATES, COOLDOWN = 4_880, 976
ALL_UPDATES, ALL_COOLDOWN = 17_080, 3_416
RATES = 1e-3, 4e-3
MARK = 1_220  # updates in 5 MB
EARLY = [0, 122, 305, 610]
BASE: dict[str, Any] = {
    **NANO,
    "size": "2.7M",
    "shape": {"n_layer": 6, "d_model": 192},
    "reading": "once",
    "context": 1024,
    "spans": 4,
    "cooldown_updates": COOLDOWN,
    "updates": UPDATES,
    "validate_every": MARK,
    "validation_span": WINDOW,
    "curve": 20,  # updates per row of the stored curve
    "asked": [*EARLY, *range(MARK, UPDATES + 1, MARK)],
    "passage": 64,
    "lead": 8,
    "places": 100,
    "distances": [64, 128, 256, 512, 896],
    "continued": 240,
}
ALL: dict[str, Any] = {
    "updates": ALL_UPDATES,
    "cooldown_updates": ALL_COOLDOWN,
    "asked": [*EARLY, *range(MARK, ALL_UPDATES + 1, MARK)],
}
SMOKE: dict[str, Any] = {
    "shape": {"n_layer": 2, "d_model": 16},
    "context": 64,
    "spans": 2,
    "updates": 4,
    "cooldown_updates": 2,
    "validate_every": 2,
    "validation_span": 256,
    "curve": 2,
    "asked": [0, 2, 4],
    "passage": 16,
    "places": 5,
    "distances": [16, 32],
    "continued": 2,
}
ROUNDS = 15
TRAINED = "in every run except those named `speed`"
ASKED = {"update": ("updates", "after how many updates")}
TABLES = {
    "train": table(
        optional=TRAINED,
        update=("updates", "the last of `config.curve` updates", INCREASING),
        seconds=("s", "what these updates took together"),
        loss=("nats/token", "mean loss on their own text, each before its step"),
    ),
    "validation": replace(CURVES["validation"], optional=TRAINED),
    "positions": table(
        optional=TRAINED,
        **ASKED,
        **BY_NOVEL,
    ),
    "again": replace(AGAIN, optional=TRAINED),
    "samples": table(
        optional=TRAINED,
        **ASKED,
        kind=("name", "`greedy`: the most likely byte each time; `sampled`: drawn at 0.8"),
        text=("text", "what the model writes after a fixed prompt"),
    ),
    "model": replace(MODEL["model"], optional=TRAINED),
    "speed": speed_table("the run"),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Softmax, linear and the controls; a second seed of three models; all the text; its rates."""
    if smoke:
        return [_speed({**SMOKE, "rounds": 2}), *(_run(model, 0, 0, SMOKE) for model in MODELS)]
    return [
        _speed({}),
        *(_run(model, 0, 700 + place, {}) for place, model in enumerate(MODELS)),
        *(_run(model, 1, 710 + place, {}) for place, model in enumerate(SECOND)),
        *(_run(model, 0, 720 + place, ALL, "-all") for place, model in enumerate(MODELS)),
        *(_run(model, 1, 730 + place, ALL, "-all") for place, model in enumerate(PAIR)),
        *(
            _run(model, 0, 740, {**ALL, "learning_rate": rate}, f"-all-rate{rate}")
            for model in reversed(PAIR)
            for rate in RATES
        ),
    ]


def _run(model: str, seed: int, priority: int, rest: dict[str, Any], text: str = "") -> Run:
    name = f"{model.replace(',', '').replace(' ', '-')}{text}-seed{seed}"
    config = {**BASE, "model": model, **MODELS[model], "seed": seed, **rest}
    return Run("long_race", name, config, priority)


def _speed(rest: dict[str, Any]) -> Run:
    config = {"model": "all", "rounds": ROUNDS, "seed": 0, **rest}
    return Run("long_race", "speed", config, 99)


def speeds(config: dict[str, Any], session: Session) -> Outcome:
    """Time an update of every model, one after another in each round."""
    rest = {key: config[key] for key in SMOKE if key in config}
    planned = {model: _run(model, config["seed"], 0, rest).config for model in MODELS}
    return time_updates(planned, config["rounds"], session)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. The final weights are stored beside its record."""
    if config["model"] == "all":
        return speeds(config, session)
    corpus = session.corpus(config["corpus"])
    training = Training(config, corpus, session.device)

    def ask(training: Training) -> None:
        if training.updates not in config["asked"]:
            return
        asked = {
            "positions": loss_by_novel(training.model, corpus, config, session.device),
            "again": passage_gains(training.model, corpus, config, session.device),
            "samples": [
                {"kind": kind, "text": text}
                for kind, text in continuations(
                    training.model, session.device, config["continued"]
                ).items()
            ],
        }
        for name, rows in asked.items():
            for row in rows:
                append(training.tables, name, {"update": training.updates, **row})

    outcome = train_through(training, session, ask)
    tables = {**outcome.tables, "train": thinned(outcome.tables["train"], config["curve"])}
    if not outcome.complete:
        return Outcome(tables, complete=False)
    append(tables, "model", model_row(training.model, config["context"]))
    session.keep_weights(pack_weights(training.model))
    return Outcome(tables)


def thinned(train: Columns, every: int) -> Columns:
    """A curve with a row for every `every` updates: mean loss and total seconds."""
    thin: Columns = {"update": [], "seconds": [], "loss": []}
    for i in range(0, len(train["update"]), every):
        losses = train["loss"][i : i + every]
        thin["update"].append(train["update"][i : i + every][-1])
        thin["seconds"].append(round(sum(train["seconds"][i : i + every]), 4))
        thin["loss"].append(round(sum(losses) / len(losses), 5))
    return thin


EXPERIMENT = Experiment(
    "long_race", "both attentions read 20 MB", TABLES, runs, perform,
    weights=packed_shapes,
)  # fmt: skip

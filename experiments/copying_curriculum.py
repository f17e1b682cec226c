"""Learning to look back: which memory copies a passage, and from how far, if copying pays?

Models of the race's size learn to look back late or never, since in novels the far past helps
little. Here the novels reward it: in every window of 512 bytes the first 64 come again and again,
after 64 to 192 bytes each time, replacing the text there. Each kind of memory is trained on the
same text in the same order. Some store tokens: a cache of all (softmax), or a window of 128 and the
first. Some store a sum: linear attention, Mamba-2's decay from the input, the delta rule with such
a gate and without. `delta adds` is the rule without a gate and without its erasing. One has a
window and a sum of all tokens that have left it. Three stand between the sum and softmax:
exponential features, which keep the size of the state, and Taylor polynomials of softmax's weights
of degree 2 and 4, which make it larger. Runs named `normed` are linear attention with an output
norm in place of the denominator: with elu + 1 as before, and with elu and silu, which may be
negative. If attention takes fixed decays, one head of two decays by half in four bytes, as in
`race`. All have a token shift: half of the features of each token are those of the token before.

Controls: the cache and the sum on novels as they are, and both without the shift. Runs named
`planted` were the first design: windows of 4,224 bytes, in a quarter of which 64 bytes come again
once, after 64 to 4,096, and no shift. Runs named `longer` make three times as many updates. Those
named after a rate differ in the learning rate: of models that have learned to copy by the end of
the shorter runs these, of others the longer ones, and of some also the shorter ones. In those
named `slow` the gates begin with half-lives 64 times as long as published, so that they last beyond
the distances asked.

The rule for stopping is fixed before the runs: all of a design make the same updates. The recipe
was found with the cache and seed 0, so runs have other seeds. At intervals a model reads held-out
novels in which a passage comes again after a given number of bytes, at the end up to 4,096. Its
loss there is stored, and its gain over the same text with another passage in the first place.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import torch

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import append
from .harness.learning.passages import AGAIN, passage_gains
from .harness.learning.shapes import NANO
from .harness.learning.training import TABLES as CURVES
from .harness.learning.training import Training, train_through
from .recipes import NEAR, token_shift

FAR = {"log_decay": [NEAR, 0.0]}
SEEN = {"window": 128, "first": 1}
MODELS: dict[str, dict[str, Any]] = {
    "cache": {"attention": "softmax", "attention_options": FAR},
    "sum": {"attention": "linear", "attention_options": FAR},
    "window": {"attention": "window", "attention_options": {**FAR, **SEEN}},
    "gate": {"attention": "gated", "attention_options": {}},
    "delta": {"attention": "delta", "attention_options": {"gated": True}},
    "ungated delta": {"attention": "delta", "attention_options": {}},
    "delta adds": {"attention": "delta", "attention_options": {"erase": False}},
    "window and sum": {"attention": "window-state", "attention_options": {**FAR, **SEEN}},
    "exp": {"attention": "linear", "attention_options": {**FAR, "feature_map": "exp"}},
    "taylor 2": {"attention": "taylor", "attention_options": {**FAR, "degree": 2}},
    "taylor 4": {"attention": "taylor", "attention_options": {**FAR, "degree": 4}},
}
NORMED = {**FAR, "normalize": False, "output_norm": True}
PARTS: dict[str, dict[str, Any]] = {
    f"{name} normed": {
        "attention": "linear",
        "attention_options": {**NORMED, "feature_map": feature_map},
    }
    for name, feature_map in (("sum", "elu_plus_one"), ("elu", "elu"), ("silu", "silu"))
}
CONTROLLED = ("cache", "sum")
GATED = ("gate", "delta")
SLOWER = 64
FAR_BACK = [64, 128, 256, 512, 1024, 2048, 4096]
RARE_UPDATES, MARK = 1200, 200
RARE: dict[str, Any] = {
    **NANO,
    "context": 4224,
    "span": 4224,
    "spans": 2,
    "updates": RARE_UPDATES,
    "validate_every": MARK,
    "validation_span": 16896,
    "returns": {"share": 0.25, "passage": 64, "nearest": 64, "farthest": 4096},
    "asked": [0, MARK // 2, *range(MARK, RARE_UPDATES + 1, MARK)],
    "passage": 64,
    "lead": 8,
    "places": 40,
    "distances": FAR_BACK,
}
UPDATES, LONGER = 600, 1800
BASE: dict[str, Any] = {
    **RARE,
    "context": 512,
    "span": 512,
    "spans": 8,
    "updates": UPDATES,
    "validate_every": UPDATES // 2,
    "returns": {"share": 1.0, "passage": 64, "nearest": 64, "farthest": 192, "often": True},
    "asked": [*range(0, UPDATES + 1, 100)],
    "read": 4224,  # bytes of each text that measures
    "distances": [64, 128, 256],
    "last": FAR_BACK,
    "meets": "token shift",
}
SMOKE: dict[str, Any] = {
    "context": 64,
    "span": 64,
    "spans": 2,
    "updates": 4,
    "validate_every": 2,
    "validation_span": 256,
    "returns": {"share": 1.0, "passage": 8, "nearest": 8, "farthest": 16, "often": True},
    "asked": [0, 2, 4],
    "passage": 16,
    "places": 5,
    "read": 64,
    "distances": [16, 32],
    "last": [16, 32, 40],
}
SEEDS = (1, 2)
RATES = (0.001, 0.004)  # besides the race's; with the first seed
SOON = ("cache", "window")  # models that copy by the end of the shorter runs
TWICE = ("sum", "gate", "delta", "ungated delta", "window and sum")  # shorter runs, higher rate
TABLES = {**CURVES, "again": AGAIN}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Every memory, with more updates too; then the controls, other rates and the first design."""
    if smoke:
        smallest = {**BASE, **SMOKE}
        return [_run(model, "often", 0, 0, smallest) for model in ("delta", "window and sum")]
    unshifted = {key: value for key, value in BASE.items() if key != "meets"}
    longer = {
        **BASE,
        "updates": LONGER,
        "validate_every": LONGER // 2,
        "asked": [*range(0, LONGER + 1, 300)],
    }
    slow = {"slower": SLOWER}
    plan = []
    for seed in SEEDS:
        priority = 720 + 3 * seed
        plan += [_run(model, "often", seed, priority, BASE) for model in MODELS]
        plan += [_run(model, "longer", seed, priority + 6, longer) for model in MODELS | PARTS]
        plan += [_run(model, "slow", seed, priority + 2, {**BASE, **slow}) for model in GATED]
        plan += [_run("delta", "slow-longer", seed, priority + 6, {**longer, **slow})]
    controls = {"novels": {**BASE, "returns": {}}, "unshifted": unshifted}
    plan += [_run(*one, SEEDS[0], 724, controls[one[1]]) for one in product(CONTROLLED, controls)]
    for model, rate in product(MODELS, RATES):
        text, base = ("often", BASE) if model in SOON else ("longer", longer)
        rest = {**base, "learning_rate": rate}
        plan.append(_run(model, f"{text}-rate{rate}", SEEDS[0], 725, rest))
    twice = {**BASE, "learning_rate": RATES[-1]}
    plan += [_run(model, f"often-rate{RATES[-1]}", SEEDS[0], 725, twice) for model in TWICE]
    return [*plan, *(_run(model, "planted", 0, 730, RARE) for model in CONTROLLED)]


def _run(model: str, text: str, seed: int, priority: int, base: dict[str, Any]) -> Run:
    config = {**base, "model": model, **(MODELS | PARTS)[model], "seed": seed}
    return Run(
        "copying_curriculum", f"{model.replace(' ', '-')}-{text}-seed{seed}", config, priority
    )


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    corpus = session.corpus(config["corpus"])
    training = Training(config, corpus, session.device)
    if "meets" in config:
        token_shift(training.model)
    if "slower" in config:
        with torch.no_grad():
            for block in training.model.blocks:
                layer: Any = block.attn
                layer.gate.a -= math.log(config["slower"])
    reading = {**config, "context": config.get("read", config["context"])}

    def ask(training: Training) -> None:
        if training.updates not in config["asked"]:
            return
        if training.finished and "last" in config:
            reading["distances"] = config["last"]
        for row in passage_gains(training.model, corpus, reading, session.device):
            append(training.tables, "again", {"update": training.updates, **row})

    return train_through(training, session, ask)


EXPERIMENT = Experiment(
    "copying_curriculum", "which memory copies a passage, from how far", TABLES, runs, perform
)

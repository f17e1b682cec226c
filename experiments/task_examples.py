"""Answers of small trained models to a few made-up texts, and the keys that recall taught them.

The tasks and models are those of `made_up_tasks`, trained in the same way at its middle learning
rate with its first seed. Then all models of a task answer the same texts: the first of the test's,
shorter where the task allows it. Every answer is stored.

Beside a run of recall lie two arrays, float32 [pairs, width], in the order of the pairs. `k` has
the keys that its layer writes at the values of the text with most pairs, `q` the queries with which
the questions read them. Those of linear attention and softmax are direct outputs of the projection;
those of the delta rule have passed through its silu and have length 1. A model also writes the
noise and the keys themselves; these are not included.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lsa.gpt import GPT

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .harness.core.weights import pack_arrays
from .harness.learning.answers import TEST_SEED, draw_texts
from .harness.learning.task_training import ENDING, SMOKE, TASKS, TRAINING, TaskTraining
from .harness.learning.tasks import IGNORED

BASE = {**TRAINING, "n_head": 1, "learning_rate": 3e-3, "seed": 0, "texts": 6}
# The case of each task whose texts all models answer.
ASKED: dict[str, dict[str, int]] = {
    "recall": {"length": 32, "pairs": 8},
    "selective copying": {"length": 64, "tokens": 8},
    "copying": {"length": 64, "tokens": 16},
    "induction": {"length": 64, "questions": 1},
}
LAYERS: dict[str, dict[str, Any]] = {
    "linear": {},
    "softmax": {},
    "delta": {},
    "gated": {"decay": "head"},
}
TABLES = {
    "end": table(
        **ENDING,
        accuracy=("share", "of the questions in held-out texts, at the end"),
    ),
    "texts": table(
        text=("number", "which text, from 0"),
        place=("number", "of a token in it, from 0"),
        token=("number", "in the task's vocabulary"),
        wanted=("number", "the right answer after this token; −1 where nothing is asked"),
        said=("number", "the likeliest token by the model; −1 where nothing is asked"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """A run for each task and layer; about a minute each on a quiet thread."""
    if smoke:
        few = {**SMOKE, "cases": [ASKED["recall"]], "join": [0]}
        return [Run("task_examples", "recall-linear", _config("recall", "linear") | few, 0)]
    if kind != "cpu":  # models this small train on the processor
        return []
    return [
        Run("task_examples", f"{task}-{layer}".replace(" ", "-"), _config(task, layer), 210 + i)
        for i, task in enumerate(ASKED)
        for layer in LAYERS
    ]


def _config(task: str, layer: str) -> dict[str, Any]:
    model = {"model": layer, "attention": layer, "attention_options": LAYERS[layer]}
    return {"task": task, **model, **BASE, **TASKS[task], "case": ASKED[task]}


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. A stopped one continues from its checkpoint."""
    training = TaskTraining(config)
    with session.stop.deferred():
        if not training.train(session):
            training.save(session)
            return Outcome({}, complete=False)
    tables: Tables = {}
    end = {"updates": training.updates, "ending": training.ending}
    append(tables, "end", {**end, "accuracy": training.curve[-1]["accuracy"]})
    inputs, targets = draw_texts(config, config["case"], TEST_SEED, -1, config["texts"])
    with torch.no_grad():
        said = training.model(inputs).argmax(-1)
    asked = targets != IGNORED
    columns = inputs, targets.where(asked, -1), said.where(asked, -1)
    for text, rows in enumerate(zip(*(one.tolist() for one in columns), strict=True)):
        for place, (token, wanted, answer) in enumerate(zip(*rows, strict=True)):
            row = {"text": text, "place": place, "token": token}
            append(tables, "texts", {**row, "wanted": wanted, "said": answer})
    if config["task"] == "recall":
        case = config["cases"][-1]
        tokens, _ = draw_texts(config, case, TEST_SEED, -1, 1)
        q, k = keys(training.model, tokens[0], case["pairs"])
        session.keep_weights(pack_arrays({"q": q.numpy(), "k": k.numpy()}))
    return Outcome(tables)


@torch.no_grad()
def keys(model: GPT, text: Tensor, pairs: int) -> tuple[Tensor, Tensor]:
    """q and k, [pairs, width] each, of a model's second layer on a text of recall [T]."""
    front, block = model.blocks
    x = block.ln_1(front(model.embed(text[None])))
    attention: Any = block.attn
    made = attention.features if hasattr(attention, "features") else attention.qkv
    q, k = (heads[0, :, 0].float() for heads in made(x)[:2])
    planted, asked = text[0 : 2 * pairs : 2], text[2 * pairs :]
    where = 2 * pairs + (asked == planted[:, None]).int().argmax(-1)  # each key comes once more
    return q[where], k[1 : 2 * pairs : 2]


EXPERIMENT = Experiment(
    "task_examples", "what small models answer to a few made-up texts, and their keys",
    TABLES, runs, perform,
)  # fmt: skip

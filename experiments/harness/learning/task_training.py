"""Training a small GPT on made-up texts until it answers, and asking it at other lengths."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lsa.gpt import GPT, Block, GPTConfig

from ..core.plan import Session
from ..core.tables import Tables, append, table
from .tasks import IGNORED, Batch, draw

# Seeds of the held-out texts lie far from those of training, and from each other.
VALIDATION_SEED, TEST_SEED = 1_000_000, 2_000_000
PIECE = 4096  # tokens that a machine takes at a time when it is asked about a long text
TRAINED = {
    "curve": table(
        optional="empty where the first loss was not finite",
        rate=("number", "learning rate"),
        update=("updates", "after how many updates"),
        loss=("nats/answer", "mean over held-out texts"),
        accuracy=("share", "of the questions in held-out texts"),
    ),
    "rates": table(
        rate=("number", "learning rate"),
        updates=("updates", "made with it, the probe included"),
        chosen=("yes or no", "whether it had the least held-out loss after the probe"),
        ending=("name", "`solved`, `stopped` after its updates, or `not finite`"),
    ),
}


def task_model(config: dict[str, Any]) -> GPT:
    """A short convolution, so that a token knows those before it, and then the layer in question.

    Both stand in a block of GPT-2. Weights start at 1/sqrt(D): the 0.02 of wide models leaves a
    narrow one with queries and keys too small to tell apart.
    """
    torch.manual_seed(config["seed"])
    shape = GPTConfig(
        vocab_size=config["vocab"],
        n_positions=config["n_positions"],
        n_layer=config["n_layer"],
        n_head=config["n_head"],
        d_model=config["d_model"],
        attention=config["attention"],
        attention_options=config["attention_options"],
    )
    model = GPT(shape)
    front = replace(shape, attention="conv", attention_options={"width": config["front_width"]})
    model.h.insert(0, Block(front))
    model.initialise(std=config["d_model"] ** -0.5)
    return model


def state_bytes(model: GPT, length: int) -> int:
    """Bytes in float32 of the states of all blocks but the convolution, after `length` ticks."""
    return 4 * sum(block.attn.state_numbers(length) for block in model.blocks[1:])


@dataclass
class Answers:
    """questions asked, how many were answered right, and the sum of the losses."""

    questions: int = 0
    right: int = 0
    loss: float = 0.0

    def add(self, logits: Tensor, targets: Tensor) -> None:
        """logits [n, vocab], targets [n]."""
        self.questions += len(targets)
        self.right += int((logits.argmax(-1) == targets).sum())
        self.loss += F.cross_entropy(logits, targets, reduction="sum").item()

    @property
    def share(self) -> float:
        """Answered right."""
        return self.right / self.questions

    @property
    def row(self) -> dict[str, float]:
        """As results keep them."""
        return {
            "questions": self.questions,
            "accuracy": round(self.share, 5),
            "loss": round(self.loss / self.questions, 5),
        }


def answered(model: GPT, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logits and targets where something is asked: [n, vocab], [n]."""
    inputs, targets = batch
    asked = targets != IGNORED
    return model(inputs)[asked], targets[asked]


@torch.no_grad()
def ask(model: GPT, config: dict[str, Any], case: dict[str, int], seed: int) -> Answers:
    """Held-out texts of one case, read whole."""
    answers = Answers()
    answers.add(*answered(model, _draw(config, case, seed, -1, config["held_out"])))
    return answers


@torch.no_grad()
def ask_at_length(
    model: GPT, config: dict[str, Any], length: int, batch: int, session: Session
) -> Answers | None:
    """The question at the end of texts of `length`, read by the machine piece by piece.

    None when the session ended first.
    """
    inputs, targets = _draw(config, {"length": length}, TEST_SEED, -1, batch)
    machine = model.machine()
    state, logits = machine.initial_state, torch.empty(0)
    for piece in inputs.split(PIECE, dim=1):
        if session.out_of_time():
            return None
        state, logits = machine.read(state, piece)
    answers = Answers()
    answers.add(logits, targets[:, -1])
    return answers


def _draw(config: dict[str, Any], case: dict[str, int], seed: int, update: int, n: int) -> Batch:
    where = {"seed": seed + config["seed"], "update": update, "batch": n}
    return draw(config["task"], **where, vocab=config["vocab"], **case)


class TaskTraining:
    """A model at one learning rate, and what held-out texts said of it.

    curve: rows of the table of that name. failed: a loss was no finite number; the weights are
    those before it.
    """

    def __init__(self, config: dict[str, Any], rate: float) -> None:
        self.config, self.rate = config, rate
        self.curve: list[dict[str, float]] = []
        self.updates, self.failed = 0, False
        self.model = task_model(config)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), betas=(0.9, 0.95), weight_decay=config["weight_decay"]
        )

    @property
    def accuracy(self) -> float:
        """The last one measured."""
        return self.curve[-1]["accuracy"] if self.curve else 0.0

    @property
    def solved(self) -> bool:
        """Whether held-out texts were answered well enough for training to end."""
        return bool(self.curve) and self.accuracy >= self.config["solved"]

    @property
    def held_out_loss(self) -> float:
        """The last one; infinite where a loss was no finite number."""
        return math.inf if self.failed or not self.curve else self.curve[-1]["loss"]

    @property
    def ended(self) -> bool:
        """Whether there is no more to train."""
        return self.solved or self.failed or self.updates >= self.config["updates"]

    def told(self, *, chosen: bool) -> dict[str, Any]:
        """The row of the table `rates`."""
        ending = "not finite" if self.failed else "solved" if self.solved else "stopped"
        return {
            "rate": self.rate,
            "updates": self.updates,
            "chosen": "yes" if chosen else "no",
            "ending": ending,
        }

    def train_to(self, updates: int, session: Session) -> bool:
        """Train until so many updates, or an end. False: out of time."""
        while self.updates < updates and not self.ended:
            if session.out_of_time():
                return False
            self._update()
            if not self.failed and self.updates % self.config["validate_every"] == 0:
                self._validate()
        return True

    def _update(self) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * min(1.0, (self.updates + 1) / self.config["warmup_updates"])
        joined = [
            case
            for case, join in zip(self.config["cases"], self.config["join"], strict=True)
            if self.updates >= join
        ]
        case = joined[self.updates % len(joined)]
        n = max(1, self.config["tokens"] // case["length"])
        logits, targets = answered(self.model, _draw(self.config, case, 0, self.updates, n))
        loss = F.cross_entropy(logits, targets)
        if not loss.isfinite():
            self.failed = True
            return
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.updates += 1

    def _validate(self) -> None:
        """All cases together, each weighing as much."""
        cases = self.config["cases"]
        rows = [ask(self.model, self.config, case, VALIDATION_SEED).row for case in cases]
        mean = {key: sum(row[key] for row in rows) / len(rows) for key in ("loss", "accuracy")}
        self.failed = not math.isfinite(mean["loss"])
        if not self.failed:
            told = {key: round(value, 5) for key, value in mean.items()}
            self.curve.append({"rate": self.rate, "update": self.updates, **told})


def train_with_the_best_rate(
    config: dict[str, Any], session: Session, tables: Tables
) -> TaskTraining | None:
    """Probe every learning rate, go on with the best; fills the tables of `TRAINED`.

    None: out of time.
    """
    trainings = [TaskTraining(config, rate) for rate in config["learning_rates"]]
    total = config["updates"] + (len(trainings) - 1) * config["probe_updates"]
    for training in trainings:
        if not training.train_to(config["probe_updates"], session):
            return None
        session.show(sum(t.updates for t in trainings), total, f"rate {training.rate:g}")
        if training.solved:
            break
    best = min(trainings, key=lambda training: training.held_out_loss)
    while not best.ended:
        if not best.train_to(best.updates + config["validate_every"], session):
            return None
        session.show(sum(t.updates for t in trainings), total, f"{best.accuracy:.2f} right")
    for training in trainings:
        for row in training.curve:
            append(tables, "curve", row)
        append(tables, "rates", training.told(chosen=training is best))
    return best

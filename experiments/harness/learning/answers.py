"""Answers of a small GPT to made-up texts, read whole or token by token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lsa.gpt import GPT

from ..core.plan import Session
from .tasks import IGNORED, Batch, draw

# Seeds of the held-out texts are far from those of training, and from each other.
VALIDATION_SEED, TEST_SEED = 1_000_000, 2_000_000
PIECE = 4096  # tokens that a machine takes at a time in a long text
AT_ONCE = 32  # texts in a batch that are read whole
BETWEEN = ("noise", "pairs")  # contents between a pair and its question


@dataclass
class Answers:
    """Counts of questions and of right answers, and the sum of the losses."""

    questions: int = 0
    right: int = 0
    loss: float = 0.0

    def add(self, logits: Tensor, targets: Tensor) -> None:
        """Add the answers of a batch: logits [n, vocab], targets [n]."""
        self.questions += len(targets)
        self.right += int((logits.argmax(-1) == targets).sum())
        self.loss += F.cross_entropy(logits, targets, reduction="sum").item()

    @property
    def share(self) -> float:
        """The share of right answers."""
        return self.right / self.questions

    @property
    def row(self) -> dict[str, float]:
        """The columns that results store."""
        return {
            "questions": self.questions,
            "accuracy": round(self.share, 5),
            "loss": round(self.loss / self.questions, 5),
        }


def state_bytes(model: GPT, length: int) -> int:
    """Bytes of all blocks' states in float32, without the first, a short convolution."""
    return 4 * sum(block.attn.state_numbers(length) for block in model.blocks[1:])


def draw_texts(
    config: dict[str, Any], case: dict[str, int], seed: int, update: int, n: int
) -> Batch:
    """Draw n texts of one case; update -1 draws the held-out ones."""
    where = {"seed": seed + config["seed"], "update": update, "batch": n}
    return draw(config["task"], **where, vocab=config["vocab"], **case)


def answered(model: GPT, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logits [n, vocab] and targets [n] at the questions."""
    inputs, targets = batch
    asked = targets != IGNORED
    return model(inputs)[asked], targets[asked]


@torch.no_grad()
def ask(model: GPT, config: dict[str, Any], case: dict[str, int], seed: int, n: int) -> Answers:
    """Answers to n held-out texts of one case, read whole."""
    answers = Answers()
    inputs, targets = draw_texts(config, case, seed, -1, n)
    for part in zip(inputs.split(AT_ONCE), targets.split(AT_ONCE), strict=True):
        answers.add(*answered(model, part))
    return answers


@torch.no_grad()
def ask_at_length(
    model: GPT, config: dict[str, Any], length: int, n: int, session: Session
) -> Answers | None:
    """Answers at the end of n texts of `length`, read by the machine piece by piece.

    None if the session ended first.
    """
    inputs, targets = draw_texts(config, {"length": length}, TEST_SEED, -1, n)
    machine = model.machine()
    state, logits = machine.initial_state, torch.empty(0)
    for piece in inputs.split(PIECE, dim=1):
        if session.out_of_time():
            return None
        state, logits = machine.read(state, piece)
    answers = Answers()
    answers.add(logits, targets[:, -1])
    return answers


@torch.no_grad()
def ask_at_distances(
    model: GPT, config: dict[str, Any], between: str, session: Session
) -> list[dict[str, Any]] | None:
    """Answers at every distance: texts are read on and on, and all keys are asked for each time.

    All questions at a distance start from the same state. A row for each distance; None if the
    session ended first.
    """
    pairs, distances = config["cases"][0]["pairs"], config["distances"]
    case = {"length": 4 * pairs + distances[-1], "pairs": pairs, "others": BETWEEN.index(between)}
    inputs, _ = draw_texts(config, case, TEST_SEED, -1, config["held_out"])
    keys, values = inputs[:, 0 : 2 * pairs : 2], inputs[:, 1 : 2 * pairs : 2]
    machine = model.machine()
    state, read, rows = machine.initial_state, 0, []
    for distance in distances:
        for piece in inputs[:, read : 2 * pairs + distance].split(PIECE, dim=1):
            if session.out_of_time():
                return None
            state, _ = machine.read(state, piece)
        read = 2 * pairs + distance
        answers = Answers()
        for key, value in zip(keys.unbind(1), values.unbind(1), strict=True):
            _, logits = machine.read(state, key[:, None])
            answers.add(logits, value)
        told = {"between": between, "distance": distance}
        rows.append({**told, **answers.row, "state": state_bytes(model, read)})
    return rows

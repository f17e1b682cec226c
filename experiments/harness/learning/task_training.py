"""Training a small GPT on made-up texts at one learning rate, until it answers them."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F

from lsa.gpt import GPT, Block, GPTConfig

from ..core import checkpoint
from ..core.plan import Session
from .answers import VALIDATION_SEED, answered, ask, draw_texts

SAVE_EVERY = 60.0  # seconds between two checkpoints
TRAINING: dict[str, Any] = {
    "d_model": 32,
    "front_width": 4,
    "updates": 2400,
    "solved": 0.995,
    "validate_every": 40,
    "tokens": 1024,  # an update reads so many, in texts of one length
    "warmup_updates": 20,
    "weight_decay": 0.01,
    "held_out": 32,  # texts of a case for validation
}
SMOKE = {"updates": 4, "validate_every": 2, "tokens": 64, "held_out": 2, "d_model": 16}
# Tasks that several experiments train on.
ENDING: dict[str, Any] = {
    "updates": ("updates", "made in all"),
    "ending": ("name", "`solved`, `stopped` after all updates, or `not finite`"),
}
TASKS: dict[str, dict[str, Any]] = {
    "recall": {
        "vocab": 136,
        "n_positions": None,
        "n_layer": 1,
        "cases": [{"length": 4 * pairs, "pairs": pairs} for pairs in (8, 16, 32, 64)],
        "join": [0, 240, 320, 400],
    },
    "selective copying": {
        "vocab": 16,
        "n_positions": 64,
        "n_layer": 2,
        "cases": [{"length": 64, "tokens": 8}],
        "join": [0],
    },
    "copying": {
        "vocab": 16,
        "n_positions": 64,
        "n_layer": 2,
        "cases": [{"length": 64, "tokens": 16}],
        "join": [0],
    },
    "induction": {
        "vocab": 16,
        "n_positions": None,
        "n_layer": 1,
        "cases": [{"length": 256, "questions": n} for n in (16, 4, 1)],
        "join": [0, 160, 240],
    },
}


def task_model(config: dict[str, Any]) -> GPT:
    """A short convolution, which shows a token those before it, followed by the layer in question.

    Each is in a block of GPT-2. Weights start at 1/sqrt(D): with the 0.02 of wide models, queries
    and keys of a narrow model are too small to tell apart.
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


class TaskTraining:
    """A model in training, and its scores on held-out texts.

    curve: rows of loss and accuracy. ending: `solved`; `stopped` after all updates; `not finite` if
        a loss was not a finite number (the weights are then those before it); "" before the end.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.curve: list[dict[str, float]] = []
        self.updates, self.ending = 0, ""
        self.model = task_model(config)
        # Fused: in so small a model, the other versions take a tenth of an update.
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            betas=(0.9, 0.95),
            weight_decay=config["weight_decay"],
            fused=True,
        )

    def train(self, session: Session) -> bool:
        """Train to an end, from a checkpoint if there is one. False: out of time.

        A checkpoint is written every minute, since a process can end without a signal.
        """
        self._resume(session)
        due = time.monotonic() + SAVE_EVERY
        while not self.ending:
            if session.out_of_time():
                return False
            self._update()
            last = self.updates == self.config["updates"]
            if not self.ending and (last or self.updates % self.config["validate_every"] == 0):
                self._validate()
                note = f"{self.curve[-1]['accuracy']:.2f} right" if self.curve else ""
                session.show(self.updates, self.config["updates"], note)
            if not self.ending and last:
                self.ending = "stopped"
            if not self.ending and time.monotonic() >= due:
                self.save(session)
                due = time.monotonic() + SAVE_EVERY
        return True

    def _update(self) -> None:
        config = self.config
        rate = config["learning_rate"] * min(1.0, (self.updates + 1) / config["warmup_updates"])
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        joined = [
            case
            for case, join in zip(config["cases"], config["join"], strict=True)
            if self.updates >= join
        ]
        case = joined[self.updates % len(joined)]
        n = max(1, config["tokens"] // case["length"])
        logits, targets = answered(self.model, draw_texts(config, case, 0, self.updates, n))
        loss = F.cross_entropy(logits, targets)
        if not loss.isfinite():
            self.ending = "not finite"
            return
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.updates += 1

    def _validate(self) -> None:
        """Validate on all cases, with equal weights."""
        config = self.config
        rows = [
            ask(self.model, config, case, VALIDATION_SEED, config["held_out"]).row
            for case in config["cases"]
        ]
        mean = {key: sum(row[key] for row in rows) / len(rows) for key in ("loss", "accuracy")}
        if not math.isfinite(mean["loss"]):
            self.ending = "not finite"
            return
        told = {key: round(value, 5) for key, value in mean.items()}
        self.curve.append({"update": self.updates, **told})
        if told["accuracy"] >= config["solved"]:
            self.ending = "solved"

    def save(self, session: Session) -> None:
        """Write a checkpoint for the same run. No space for it: a warning."""
        contents = {
            "config": self.config,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "curve": self.curve,
            "updates": self.updates,
            "ending": self.ending,
            "legs": [*session.earlier, session.leg()],
        }
        with checkpoint.storing(session, session.checkpoint):
            checkpoint.save(session.checkpoint, contents)

    def _resume(self, session: Session) -> None:
        """Continue from a checkpoint, if there is one."""
        kept = checkpoint.resumed(session, self.config)
        if kept is None:
            return
        self.model.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])
        self.curve, self.updates, self.ending = kept["curve"], kept["updates"], kept["ending"]
        session.earlier[:] = kept["legs"]

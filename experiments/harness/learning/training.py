"""Training a GPT and recording its curve, for all experiments that train.

Seed and update number alone choose the text. The optimiser is AdamW. After a short warm-up the
learning rate is constant; over the last `cooldown_updates`, if a run has these, it falls to zero.
Every update is timed: drawing its text, forward, backward and the step. Compilation, warm-up and
validation are not included.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch

from lsa.gpt import GPT, next_token_loss

from ..core import checkpoint
from ..core.plan import Outcome, Session
from ..core.tables import INCREASING, Columns, Tables, table
from ..core.team import here
from . import resuming
from .batches import VALIDATION_SPANS, held_out_tokens, text_of_updates
from .corpora import Corpus
from .precision import autocast
from .shapes import shape_of
from .spread import OneProcess, Ranked

SAVE_EVERY = 60.0  # seconds between two checkpoints
SAVE_SHARE = 5  # ... or this many times the last checkpoint's time, if that is longer
TABLES = {
    "train": table(
        optional="empty where the first loss was not finite",
        update=("updates", "1, 2, 3, …", INCREASING),
        seconds=(
            "s",
            "what this update took: drawing the text, forward, backward, step; not compilation, "
            "warm-up or validation",
        ),
        loss=("nats/token", "mean loss on the update's own text, before the step"),
    ),
    "validation": table(
        update=("updates", "after how many updates", INCREASING),
        loss=(
            "nats/token",
            "mean over one span (`validation_span`) from each of the five held-out novels",
        ),
    ),
}


# Of `train_or_diverge`.
END = {
    "end": table(
        ending=(
            "name",
            "`finished`, or `not finite`: a loss was no finite number, and the run ended before it",
        ),
        updates=("updates", "made with a finite loss"),
    ),
}


class DivergedError(ArithmeticError):
    """A loss is not a finite number. Nothing of the update is recorded."""


def compile_blocks(model: GPT, **options: Any) -> None:
    """Compile the blocks at their first call. options: of torch.compile.

    All blocks are alike, so one compilation serves all; the whole model would take as many times as
    long. Parameters keep their names.
    """
    for block in model.blocks:
        block.compile(**options)


class Training:
    """A model, its optimizer and its curves so far."""

    def __init__(self, config: dict[str, Any], corpus: Corpus, device: torch.device) -> None:
        self.config, self.corpus, self.device = config, corpus, device
        self._text = text_of_updates(corpus.splits["train"], config)
        torch.manual_seed(config["seed"])
        model = GPT(shape_of(config)).to(device)
        if device.type == "cuda":
            compile_blocks(model)
        self.team, self.spread = here(), OneProcess()
        self.saving: Any = None  # a checkpoint in progress, see resuming.finish
        self.earlier = 0  # updates of earlier legs, which may have had another number of ranks
        if self.team.size > 1:
            self.spread = Ranked(self.team, model, config, device)
        self.model = self.spread.shard(model)
        self.optimizer = torch.optim.AdamW(
            self._groups(), betas=(0.9, 0.95), fused=device.type == "cuda"
        )
        self.tables: Tables = {
            "train": {"update": [], "seconds": [], "loss": []},
            "validation": {"update": [], "loss": []},
        }

    def _rate(self, update: int) -> float:
        """The learning rate of an update, counted from 0."""
        rate = self.config["learning_rate"] * min(1.0, (update + 1) / self.config["warmup_updates"])
        if cooldown := self.config.get("cooldown_updates", 0):
            rate *= min(1.0, (self.config["updates"] - update) / cooldown)
        return rate

    def _groups(self) -> list[dict[str, Any]]:
        """Parameter groups: weight decay on matrices only, as GPT-2's successors do."""
        parameters = list(self.model.parameters())
        return [
            {
                "params": [p for p in parameters if p.dim() >= 2],
                "weight_decay": self.config["weight_decay"],
            },
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ]

    @property
    def updates(self) -> int:
        return len(self.train["update"])

    @property
    def seconds(self) -> float:
        return sum(self.train["seconds"])

    @property
    def train(self) -> Columns:
        return self.tables["train"]

    @property
    def validation(self) -> Columns:
        return self.tables["validation"]

    @property
    def progress(self) -> tuple[float, float]:
        """(done, planned), in updates if these are planned, else in seconds."""
        if self.config["updates"]:
            return self.updates, self.config["updates"]
        return self.seconds, self.config["train_seconds"]

    @property
    def finished(self) -> bool:
        by_updates, by_seconds = self.config["updates"], self.config["train_seconds"]
        return bool(by_updates and self.updates >= by_updates) or bool(
            by_seconds and self.seconds >= by_seconds
        )

    @property
    def shares(self) -> dict[str, Any]:
        """How this leg is spread over several ranks, and tokens a second of each; {} for one."""
        if self.team.size == 1:
            return {}
        updates, seconds = self.updates - self.earlier, sum(self.train["seconds"][self.earlier :])
        tokens = updates * self.config["spans"] * self.config["span"] / self.team.size
        speed = round(tokens / seconds, 1) if seconds else 0.0
        mesh = dict(self.spread.mesh)
        return {"world_size": self.team.size, "mesh": mesh, "tokens_per_second": speed}

    def warm_up(self) -> None:
        """Compile and touch every buffer; the weights do not change."""
        for _ in range(2):
            self._gradients(0)
            self.optimizer.zero_grad(set_to_none=True)
        self._synchronize()

    def update(self) -> None:
        """Make one update, timed. Raises DivergedError, with the curves as they were before it."""
        began = time.perf_counter()
        u = self.updates
        rate = self._rate(u)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = self._gradients(u)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        loss = _finite(loss.item(), "update", u + 1)  # waits for the device
        self._synchronize()
        seconds = round(time.perf_counter() - began, 6)
        self.train["update"].append(u + 1)
        self.train["seconds"].append(self.team.leading(seconds))
        self.train["loss"].append(round(loss, 5))

    def _gradients(self, update: int) -> torch.Tensor:
        return self._mean_loss(*self._text(update), self.config["micro_batches"], backward=True)

    def _mean_loss(
        self, inputs: torch.Tensor, targets: torch.Tensor, parts: int, *, backward: bool = False
    ) -> torch.Tensor:
        """Mean loss over all tokens of a batch, in `parts` parts, on all ranks together."""
        total = torch.zeros((), device=self.device)
        for part, target in self.spread.pieces(inputs, targets, parts):
            loss = self._loss(part.to(self.device, non_blocking=True), target.to(self.device))
            loss = loss * (part.numel() / inputs.numel())
            if backward:  # sharded gradients are means over the ranks
                (loss * self.team.size).backward()
            total += loss.detach()
        return self.team.total(total)

    def _loss(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        with autocast(self.device, self.config.get("autocast", True)):
            logits = self.model(inputs, **self.spread.options)
        # A rank without tokens takes part too.
        return next_token_loss(logits, targets) if targets.numel() else logits.float().sum()

    @torch.no_grad()
    def validate(self) -> float:
        """Loss on held-out books, cut into the same context; added to the curve.

        `validation_span` tokens of each book. Raises DivergedError.
        """
        inputs, targets = held_out_tokens(
            self.corpus.splits["validation"],
            span=self.config["validation_span"],
            context=self.config["context"],
            spans=VALIDATION_SPANS,
        )
        losses = [
            self._mean_loss(i, t, 1).item()
            for i, t in zip(
                inputs.chunk(VALIDATION_SPANS), targets.chunk(VALIDATION_SPANS), strict=True
            )
        ]
        loss = _finite(sum(losses) / len(losses), "validation after update", self.updates)
        self.validation["update"].append(self.updates)
        self.validation["loss"].append(round(loss, 5))
        return loss

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def _finite(loss: float, what: str, update: int) -> float:
    if not math.isfinite(loss):
        raise DivergedError(f"{what} {update}: the loss is {loss}")
    return loss


def train_through(
    training: Training,
    session: Session,
    watch: Callable[[Training], None] = lambda training: None,
) -> Outcome:
    """Train to the end of the plan or of the budget, from a checkpoint if there is one.

    A checkpoint is written every minute, and when the budget ends or a signal comes. watch is
    called before the first update and after each. It may add to the training's tables. Raises
    DivergedError.
    """
    config = training.config
    resumed = _resume(training, session)
    training.warm_up()
    if resumed:
        session.show(*training.progress, "goes on", training.progress[0])
    else:
        training.validate()
        watch(training)
    due = time.monotonic() + SAVE_EVERY
    # A signal takes effect at the end of an update: a run cannot continue from half of one.
    with session.stop.deferred():
        while not training.finished:
            over, save = training.team.any(session.out_of_time(), time.monotonic() >= due)
            if over:
                _save(training, session, wait=True)
                return Outcome(training.tables, complete=False)
            if save:
                due = _save(training, session)
            with checkpoint.storing(session, session.checkpoint):
                resuming.finish(training, wait=False)
            training.update()
            session.ranks = training.shares
            watch(training)
            if training.updates % config["validate_every"] == 0 or training.finished:
                training.validate()
            session.save(training.tables)
            session.show(*training.progress, f"loss {training.train['loss'][-1]:.3f}")
        with checkpoint.storing(session, session.checkpoint):
            resuming.finish(training)
    return Outcome(training.tables)


def train_or_diverge(
    training: Training,
    session: Session,
    watch: Callable[[Training], None] = lambda training: None,
) -> Outcome:
    """`train_through`, with a table that says how it ended: if a loss is not finite, there."""
    try:
        outcome, ending = train_through(training, session, watch), "finished"
    except DivergedError as stop:
        session.show(1, 1, str(stop))
        outcome, ending = Outcome(training.tables), "not finite"
    if not outcome.complete:
        return outcome
    end = {"ending": [ending], "updates": [training.updates]}
    return Outcome({**outcome.tables, "end": end})


def _resume(training: Training, session: Session) -> bool:
    """Whether the run continues from a checkpoint; an unusable one is set aside."""
    with checkpoint.reading(session, session.checkpoint):
        legs = resuming.resume(training, session.checkpoint)
        session.earlier[:] = legs or []
        return legs is not None
    return False


def _save(training: Training, session: Session, *, wait: bool = False) -> float:
    """Write a checkpoint, or start to; returns the time of the next one."""
    began = time.monotonic()
    with checkpoint.storing(session, session.checkpoint):
        legs = [*session.earlier, session.leg()]
        resuming.save(training, session.checkpoint, legs, wait=wait)
    ended = time.monotonic()
    return ended + max(SAVE_EVERY, SAVE_SHARE * (ended - began))

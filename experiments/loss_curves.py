"""Train GPT-2 twice, with softmax and with linear attention, and keep the loss of every update.

Everything but the attention is the same: initial weights by seed, text in the same order, the
seconds they may take, AdamW, a short warm-up and then a constant learning rate, so that every
point of a curve is a place one could have stopped at. The seconds of an update are those of
drawing its text, forward, backward and the step; compilation, warm-up and validation are apart.
"""

from __future__ import annotations

import time
from typing import Any

import torch

from lsa.gpt import GPT, gpt_config, next_token_loss

from .batches import VALIDATION_SPANS, held_out_tokens, update_tokens
from .corpora import Corpus
from .plan import Experiment, Outcome, Run, Session, Tables

UNITS = {"update": "updates", "seconds": "s", "loss": "nats/token"}
BASE = {
    "corpus": "novels",
    "seed": 0,
    "warmup_updates": 10,
    "weight_decay": 0.1,
    "micro_batches": 1,
    "validation_span": 16384,  # tokens of each held-out novel, at every context the same ones
    "updates": 0,  # stop after this many; 0: by train_seconds
    "train_seconds": 0,  # stop after this many seconds of updates; 0: by updates
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Both attentions at every scale and context, most telling first."""
    if smoke:
        tiny = {"updates": 3, "learning_rate": 1e-3, "validate_every": 2, "validation_span": 256}
        return _pair("nano", 64, 0, tokens=256, **tiny)
    return _cpu_runs() if kind == "cpu" else _cuda_runs()


def _pair(scale: str, context: int, priority: int, tokens: int, **rest: Any) -> list[Run]:
    """Both attentions. tokens: an update reads at least so many, in windows of the context."""
    draw = {"span": context, "spans": max(1, tokens // context)}
    return [
        Run(
            "loss_curves",
            f"{scale}-{attention}-{context}",
            {
                "scale": scale,
                "attention": attention,
                "context": context,
                **BASE,
                **draw,
                **rest,
            },
            priority,
        )
        for attention in ("softmax", "linear")
    ]


def _cpu_runs() -> list[Run]:
    """Small updates, since a processor has time for a few thousand: 2048 bytes, or one window."""
    nano = {"tokens": 2048, "learning_rate": 1e-3}
    return [
        *_pair("nano", 256, 10, train_seconds=180, validate_every=100, **nano),
        *_pair("nano", 1024, 11, train_seconds=240, validate_every=100, **nano),
        *_pair("nano", 4096, 12, train_seconds=300, validate_every=50, **nano),
        *_pair("nano", 16384, 13, train_seconds=480, validate_every=16, **nano),
    ]


def _cuda_runs() -> list[Run]:
    """131072 bytes an update, most telling contexts first."""
    shared = {"tokens": 131072, "validation_span": 131072}
    nano = {**shared, "learning_rate": 2e-3, "validate_every": 50}
    small = {**shared, "learning_rate": 6e-4, "validate_every": 25}
    medium = {**shared, "learning_rate": 3e-4, "validate_every": 20, "micro_batches": 2}
    large = {**shared, "learning_rate": 2e-4, "validate_every": 20, "micro_batches": 4}
    plan = [
        *_pair("124M", 4096, 20, train_seconds=75, **small),
        *_pair("124M", 65536, 21, train_seconds=75, **small),
        *_pair("124M", 16384, 22, train_seconds=75, **small),
        *_pair("124M", 1024, 23, train_seconds=75, **small),
        *_pair("124M", 131072, 24, train_seconds=75, **small),
    ]
    for i, context in enumerate((4096, 65536, 1024, 16384, 131072)):
        plan += _pair("nano", context, 30 + i, train_seconds=30, **nano)
        plan += _pair("355M", context, 40 + i, train_seconds=120, **medium)
        plan += _pair("774M", context, 50 + i, train_seconds=180, **large)
        plan += _pair("1.5B", context, 60 + i, train_seconds=240, **large)
    return plan


class Training:
    """A model, its optimizer and the curves so far."""

    def __init__(self, config: dict[str, Any], corpus: Corpus, device: torch.device) -> None:
        self.config, self.corpus, self.device = config, corpus, device
        torch.manual_seed(config["seed"])
        shape = gpt_config(
            config["scale"],
            vocab_size=corpus.vocab_size,
            n_positions=config["context"],
            attention=config["attention"],
        )
        self.model = GPT(shape).to(device)
        self.forward = torch.compile(self.model) if device.type == "cuda" else self.model
        self.optimizer = torch.optim.AdamW(
            self._groups(), betas=(0.9, 0.95), fused=device.type == "cuda"
        )
        self.train: dict[str, list] = {"update": [], "seconds": [], "loss": []}
        self.validation: dict[str, list] = {"update": [], "loss": []}

    def _groups(self) -> list[dict[str, Any]]:
        """Weight decay on matrices only, as GPT-2's successors do."""
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
    def tables(self) -> Tables:
        return {"train": self.train, "validation": self.validation}

    @property
    def finished(self) -> bool:
        by_updates, by_seconds = self.config["updates"], self.config["train_seconds"]
        return bool(by_updates and self.updates >= by_updates) or bool(
            by_seconds and self.seconds >= by_seconds
        )

    def warm_up(self) -> None:
        """Compile and touch every buffer; the weights stay as they were."""
        for _ in range(2):
            self._gradients(0)
            self.optimizer.zero_grad(set_to_none=True)
        self._synchronize()

    def update(self) -> None:
        """One update, timed."""
        began = time.perf_counter()
        u = self.updates
        rate = self.config["learning_rate"] * min(1.0, (u + 1) / self.config["warmup_updates"])
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = self._gradients(u)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        loss = loss.item()  # waits for the device
        self._synchronize()
        self.train["update"].append(u + 1)
        self.train["seconds"].append(round(time.perf_counter() - began, 6))
        self.train["loss"].append(round(loss, 5))

    def _gradients(self, update: int) -> torch.Tensor:
        keys = ("seed", "spans", "span", "context")
        tokens = update_tokens(
            self.corpus.splits["train"], update=update, **{key: self.config[key] for key in keys}
        )
        inputs, targets = (t.to(self.device, non_blocking=True) for t in tokens)
        n = min(self.config["micro_batches"], len(inputs))
        total = torch.zeros((), device=self.device)
        for part, target in zip(inputs.chunk(n), targets.chunk(n), strict=True):
            loss = self._loss(part, target) * (len(part) / len(inputs))
            loss.backward()
            total += loss.detach()
        return total

    def _loss(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            logits = self.forward(inputs)
        return next_token_loss(logits, targets)

    @torch.no_grad()
    def validate(self) -> float:
        """Loss on held-out books, cut into the same context; kept in the curve."""
        inputs, targets = held_out_tokens(
            self.corpus.splits["validation"],
            span=self.config["validation_span"],
            context=self.config["context"],
            spans=VALIDATION_SPANS,
        )
        losses = [
            self._loss(i.to(self.device), t.to(self.device)).item()
            for i, t in zip(
                inputs.chunk(VALIDATION_SPANS), targets.chunk(VALIDATION_SPANS), strict=True
            )
        ]
        loss = sum(losses) / len(losses)
        self.validation["update"].append(self.updates)
        self.validation["loss"].append(round(loss, 5))
        return loss

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def save(self, path: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        torch.save(
            {
                "config": self.config,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "tables": self.tables,
            },
            temporary,
        )
        temporary.replace(path)

    def resume(self, path: Any) -> bool:
        """Go on from a checkpoint of the same configuration, if there is one."""
        if not path.exists():
            return False
        kept = torch.load(path, map_location=self.device, weights_only=True)
        if kept["config"] != self.config:
            return False
        self.model.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])
        self.train, self.validation = kept["tables"]["train"], kept["tables"]["validation"]
        return True


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """One run, as `plan.Experiment` asks."""
    training = Training(config, session.corpus(config["corpus"]), session.device)
    resumed = training.resume(session.checkpoint)
    training.warm_up()
    if not resumed:
        training.validate()
    while not training.finished:
        if session.out_of_time():
            training.save(session.checkpoint)
            return Outcome(training.tables, complete=False)
        training.update()
        if training.updates % config["validate_every"] == 0 or training.finished:
            training.validate()
        session.save(training.tables)
        done = (
            (training.updates, config["updates"])
            if config["updates"]
            else (training.seconds, config["train_seconds"])
        )
        session.show(*done, f"loss {training.train['loss'][-1]:.3f}")
    return Outcome(training.tables)


EXPERIMENT = Experiment(
    "loss_curves", "loss by update and by time, softmax and linear", UNITS, runs, perform
)

"""Axes that several figures have."""

from __future__ import annotations

from ...explorable.figure import Axis, Choice

LENGTH = Axis("length", "Sequence length", "tokens", log=2)
TIME = Axis("ms", "Time", "ms", log=10, digits=3)
TIME_A_TOKEN = Axis("us_token", "Time per token", "µs", log=10, digits=3)
LOSS = Axis("loss", "Loss", "nats per byte", digits=4)
LOSS_OVER_SEEDS = Axis("loss", "Loss", "nats per byte", digits=4, low="low", high="high")
UPDATES = Axis("update", "Updates")
MINUTES = Axis("minutes", "Time", "minutes of training", digits=3)
PASSES = {"forward": "forward", "forward+backward": "forward and backward"}  # of a Filter
PROGRESS = Choice("Against", [UPDATES, MINUTES], default="minutes")

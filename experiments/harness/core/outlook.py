"""What fits into the time that is left on a lent computer, and what that computer lacks."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from ..learning.corpora import CorpusError, load_corpus
from . import record
from .plan import Run
from .provenance import versions
from .runner import state_of

FLA, FLA_FROM = "flash-linear-attention", (0, 5, 1)
PEERS = {FLA: FLA, "FlashAttention 3": "flash_attn_3"}
OPEN = ("missing", "partial")

# Beyond the updates that are timed: compiling a model, reading its text, validation. On a GPU.
AROUND_TRAINING = 50.0


def expected(run: Run) -> float | None:
    """About how many seconds a run takes on the device planned for; None where nobody knows."""
    if run.expected is None and run.config.get("train_seconds"):
        return run.config["train_seconds"] + AROUND_TRAINING
    return run.expected


def choose(runs: list[Run], seconds: float) -> Run:
    """The first of the runs that is expected to fit into the seconds left.

    Where none is, the first of them all: some go on later from what they leave, and time that
    nothing is expected to fit into is worth nothing else.
    """
    fitting = (run for run in runs if (expected(run) or float("inf")) <= seconds)
    return next(fitting, runs[0])


def foreseen(runs: list[Run], seconds: float) -> tuple[list[Run], list[Run]]:
    """The runs that so many seconds are expected to be spent on, in that order, and the others."""
    waiting, taken = [*runs], []
    while waiting and seconds > 0:
        run = choose(waiting, seconds)
        waiting.remove(run)
        taken.append(run)
        seconds -= expected(run) or seconds
    return taken, waiting


def schedule(runs: list[Run], seconds: float) -> list[str]:
    """The plan in its order, a line a run, each with its minutes and when it is to begin."""
    taken, later = foreseen(runs, seconds)
    lines, begin = [], 0.0
    for run in taken:
        lines.append(f"{begin / 60:5.1f}  {in_words(run)}")
        begin += expected(run) or 0.0
    return lines + [f"later  {in_words(run)}" for run in later]


def lacks(device: torch.device) -> list[str]:
    """What this computer has for the plan, and what it lacks."""
    found = versions()
    lines = [f"torch {found['torch']}, Triton {found['triton'] or 'none: no kernel can run'}"]
    if device.type == "cuda" and not torch.cuda.is_available():
        lines.append("no GPU that torch sees: what is stored of the plan is not known")
    for name, package in PEERS.items():
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            lines.append(f"{name} is not installed: the race is without it")
            continue
        numbers = tuple(map(int, re.findall(r"\d+", version)[:3]))
        wrong = package == FLA and numbers < FLA_FROM
        lines.append(f"{name} {version}{': its normaliser has a wrong gradient' if wrong else ''}")
    return lines


def in_words(run: Run) -> str:
    """A run and its minutes, as the plan names it."""
    seconds = expected(run)
    about = "of unknown length" if seconds is None else f"about {seconds / 60:.1f} min"
    return f"{run.experiment} {run.name} ({about})"


def open_runs(runs: list[Run], device: dict[str, Any], out: Path, *homes: Path) -> list[Run]:
    """The runs that neither `out` has nor another place where results of this device lie.

    There one of another configuration is an older plan's, and does not stand for the run.
    """
    return [
        run
        for run in runs
        if state_of(run, out, device) in OPEN
        and not any(state_of(run, home, device) == "stored" for home in homes)
    ]


def without_text(runs: list[Run], source: Path | None) -> tuple[list[Run], dict[str, CorpusError]]:
    """The runs that cannot be performed for want of a corpus, and why each corpus is missing.

    Each is prepared now, where it can be: before the first run, not minutes after it.
    """
    texts = {run.experiment: run.config["corpus"] for run in runs if "corpus" in run.config}
    missing = {}
    for name in sorted({*texts.values()}):
        try:
            load_corpus(name, source)
        except CorpusError as error:
            missing[name] = error
    return [run for run in runs if texts.get(run.experiment) in missing], missing


def bring(runs: list[Run], device: dict[str, Any], out: Path, home: Path) -> None:
    """Copy an earlier lease's partial records from `home`, so that runs resume."""
    for run in runs:
        whole = record.path_of(home, run.experiment, device, run.name)
        here = record.path_of(out, run.experiment, device, run.name)
        kept = record.partial_path(whole)
        if state_of(run, out, device) != "missing" or whole.is_file() or not kept.is_file():
            continue
        found = record.read(kept)
        if found["config"] == run.config:
            record.write(record.partial_path(here), found)

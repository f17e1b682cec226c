"""A stopped run's checkpoint: one file with its digest, written whole or not at all."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from .files import replace_with, set_aside
from .plan import Session

DIGEST = hashlib.sha256().digest_size


class CheckpointError(Exception):
    """A checkpoint that cannot be continued from; the message says why."""


def shards(path: Path) -> Path:
    """The folder beside a checkpoint in which several ranks store their shards."""
    return path.with_suffix(".shards")


def save(path: Path, contents: dict[str, Any]) -> None:
    """Write tensors, numbers, texts, lists and dictionaries to `path`, followed by their SHA-256.

    The older checkpoint is replaced only when the new one is complete on disk. Raises OSError.
    """
    buffer = io.BytesIO()
    torch.save(contents, buffer)
    replace_with(path, buffer.getbuffer(), hashlib.sha256(buffer.getbuffer()).digest())


def load(path: Path, device: torch.device) -> dict[str, Any]:
    """Read a checkpoint onto `device`. Raises CheckpointError if its digest does not match."""
    try:
        raw = memoryview(Path(path).read_bytes())
    except OSError as error:
        raise CheckpointError(f"cannot be read ({error.strerror})") from error
    if len(raw) <= DIGEST or hashlib.sha256(raw[:-DIGEST]).digest() != raw[-DIGEST:]:
        raise CheckpointError("not as it was written")
    try:
        return torch.load(io.BytesIO(raw[:-DIGEST]), map_location=device, weights_only=True)
    except Exception as error:  # any error that another version of torch may raise
        raise CheckpointError(f"cannot be read ({type(error).__name__})") from error


def resumed(session: Session, config: dict[str, Any]) -> dict[str, Any] | None:
    """The checkpoint of a run, if there is one of this configuration; another is set aside."""
    if not session.checkpoint.exists():
        return None
    with reading(session, session.checkpoint):
        kept = load(session.checkpoint, session.device)
        if kept["config"] != config:
            raise CheckpointError("of another configuration")
        return kept
    return None


@contextmanager
def reading(session: Session, path: Path) -> Iterator[None]:
    """Context that reads a checkpoint, and sets one aside from which the run cannot continue."""
    try:
        yield
    except CheckpointError as error:
        aside = set_aside(path)
        session.warn(f"{path.name}: {error}; set aside as {aside.name}, and the run begins anew")


@contextmanager
def storing(session: Session, path: Path) -> Iterator[None]:
    """Context that writes a checkpoint, and turns lack of space for it into a warning."""
    try:
        yield
    except OSError as error:
        session.warn(f"{path}: cannot be written ({error.strerror}); the run goes on")

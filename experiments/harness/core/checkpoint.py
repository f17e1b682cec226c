"""A stopped run's checkpoint: one file with its digest, written whole or not at all."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import torch

from .files import replace_with

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

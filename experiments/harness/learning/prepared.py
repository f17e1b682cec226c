"""A prepared corpus: one file of arrays, which checks itself as every zip does when it is read."""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.files import one_line, replace_with
from ..core.plan import UsageError

SPLITS = ("train", "validation", "test")


class CorpusError(UsageError):
    """A corpus that cannot be found or is damaged; the message says what to do."""


@dataclass(frozen=True)
class Split:
    """A split. tokens: all documents in a row. starts: where each begins, and the last ends."""

    tokens: np.ndarray
    starts: np.ndarray


@dataclass(frozen=True)
class Corpus:
    """A corpus. sha256 identifies its tokens; splits maps a name to a Split."""

    sha256: str
    splits: dict[str, Split]


def open_prepared(path: Path) -> Corpus | None:
    """The corpus of a file; None if there is none, or it is not whole."""
    if not path.is_file():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes())) as arrays:
            splits = {name: Split(arrays[name], arrays[f"{name}-starts"]) for name in SPLITS}
    except Exception:  # any error that zip and NumPy may raise for damaged files
        print(f"{path}: not as it was written; prepared again", file=sys.stderr)
        return None
    digest = hashlib.sha256(b"".join(split.tokens.data for split in splits.values()))
    return Corpus(digest.hexdigest(), splits)


def store(path: Path, documents: Iterable[tuple[str, np.ndarray]]) -> None:
    """Write (split, bytes) documents as the arrays of one file. Raises CorpusError."""
    parts: dict[str, list[np.ndarray]] = {split: [] for split in SPLITS}
    for split, tokens in documents:
        parts[split].append(tokens)
    arrays = {}
    for split, each in parts.items():
        arrays[split] = np.concatenate([np.empty(0, np.uint8), *each])
        arrays[f"{split}-starts"] = np.cumsum([0, *map(len, each)])
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    try:
        replace_with(path, buffer.getbuffer())
    except OSError as error:
        raise CorpusError(
            f"{path}: cannot be written ({one_line(error)}); set LSA_CACHE to another folder"
        ) from error

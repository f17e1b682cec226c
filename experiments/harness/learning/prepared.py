"""A prepared corpus: plain arrays in a folder, checked against checksums when opened."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core.files import one_line
from ..core.plan import UsageError

SPLITS = ("train", "validation", "test")
TOKENS_SUM, STARTS_SUM = "sha256", "starts.sha256"


class CorpusError(UsageError):
    """A corpus that cannot be found or is damaged; the message says what to do."""


@dataclass(frozen=True)
class Split:
    """A split. tokens: all documents in a row. starts: where each begins, and the last ends."""

    tokens: np.ndarray
    starts: np.ndarray


def open_prepared(folder: Path) -> dict[str, Split] | None:
    """The splits of a prepared corpus; None if there is none, or it fails its checksums."""
    if not (folder / TOKENS_SUM).is_file():
        return None
    with suppress(Exception):  # any error that NumPy may raise for damaged files
        splits = {
            split: Split(
                _array(folder / f"{split}.npy", np.uint8, mmap_mode="r"),
                _array(folder / f"{split}-starts.npy", np.int64),
            )
            for split in SPLITS
        }
        found = {
            TOKENS_SUM: _digest(split.tokens for split in splits.values()),
            STARTS_SUM: _digest(split.starts for split in splits.values()),
        }
        kept = {name: (folder / name).read_bytes().decode() for name in found}
        ends = all(split.starts[-1] == len(split.tokens) for split in splits.values())
        if kept == found and ends:
            return splits
    print(f"{folder}: not as it was written; prepared again", file=sys.stderr)
    return None


def _array(path: Path, dtype: type, **options: Any) -> np.ndarray:
    """Map an array. Checksums cover only its data; shape and dtype are checked here."""
    if not path.is_file():  # reading a pipe would wait
        raise ValueError(f"{path}: expected a regular file")
    array = np.load(path, **options)
    if array.ndim != 1 or array.dtype != dtype:
        raise ValueError(f"{path}: expected {dtype.__name__} in a row")
    return array


def _digest(arrays: Iterable[np.ndarray]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def store(folder: Path, documents: Iterable[tuple[str, np.ndarray]]) -> None:
    """Write (split, bytes) documents as arrays; the checksum is written last, when they are whole.

    It covers only the tokens and identifies the corpus in results; the starts have their own.
    Raises CorpusError.
    """
    parts: dict[str, list[np.ndarray]] = {split: [] for split in SPLITS}
    for split, tokens in documents:
        parts[split].append(tokens.astype(np.uint8))
    tokens = {
        split: np.concatenate(arrays) if arrays else np.empty(0, np.uint8)
        for split, arrays in parts.items()
    }
    starts = {split: np.cumsum([0, *map(len, arrays)]) for split, arrays in parts.items()}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            for split in SPLITS:
                np.save(f"{temporary}/{split}.npy", tokens[split])
                np.save(f"{temporary}/{split}-starts.npy", starts[split])
            Path(temporary, STARTS_SUM).write_text(_digest(starts.values()))
            Path(temporary, TOKENS_SUM).write_text(_digest(tokens.values()))
            folder.mkdir(exist_ok=True)
            for file in sorted(Path(temporary).iterdir(), key=lambda file: file.name == TOKENS_SUM):
                os.replace(file, folder / file.name)
    except OSError as error:
        raise CorpusError(
            f"{folder}: cannot be written ({one_line(error)}); set LSA_CACHE to another folder"
        ) from error

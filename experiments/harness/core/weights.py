"""The weights that a run stores beside its record: a NumPy .npz, described in the record."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import record

WEIGHTS = ".weights.npz"  # beside a record, in place of its .json
MOST = 64 * 2**20  # bytes of all arrays, unpacked


def read_arrays(packed: bytes) -> dict[str, np.ndarray]:
    """The arrays of an .npz, finite and within the size limit. Raises ValueError."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as members:
            size = sum(one.file_size for one in members.infolist())
        if size > MOST:
            raise ValueError(f"{size:,} bytes of arrays, more than {MOST:,}")
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
        for name, values in found.items():
            if not np.isfinite(values).all():
                raise ValueError(f"{name} holds numbers that are not finite")
        return found
    except Exception as error:  # any error that zip and NumPy may raise for invalid bytes
        raise ValueError(f"packed: expected what pack_weights writes ({error})") from error


def pack_arrays(arrays: Mapping[str, Any]) -> bytes:
    """An .npz of NumPy arrays by name, for `Session.keep_weights`."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def describe_weights(packed: bytes) -> dict[str, Any]:
    """A record's description of its weights: SHA-256 of the file, and each array's shape.

    Raises ValueError for a file without weights.
    """
    shapes = {name: list(values.shape) for name, values in read_arrays(packed).items()}
    return {"sha256": hashlib.sha256(packed).hexdigest(), "shapes": shapes}


def read_weights(path: Path, found: dict[str, Any]) -> bytes | None:
    """The weights beside a record at `path`, None if there are none. Raises RecordError.

    They must match the record's description, if it has one.
    """
    weights = path.with_suffix(WEIGHTS)
    try:
        packed = weights.read_bytes() if weights.is_file() else None
        if packed is None and "weights" in found:
            raise ValueError("expected the weights that the record describes")
        if packed is not None and found.get("weights", told := describe_weights(packed)) != told:
            raise ValueError("not the weights that the record describes")
    except (OSError, ValueError) as error:
        raise record.RecordError(f"{weights}: {error}") from error
    return packed


def run_of(weights: Path) -> Path:
    """The record that weights lie beside."""
    return weights.with_name(weights.name.removesuffix(WEIGHTS) + ".json")

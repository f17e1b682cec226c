"""Storing a model's weights in one file, of at most a megabyte for a nano model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from lsa.gpt import GPT
from lsa.meta import on_meta

from ..core.weights import WEIGHTS as WEIGHTS
from ..core.weights import pack_arrays, read_arrays
from .shapes import shape_of


def pack_weights(model: GPT) -> bytes:
    """A model's weights as a NumPy .npz: int8 rows and a float32 scale for each row.

    For every parameter NAME with two axes, `NAME` is int8 [out, in] and `NAME.scale` float32 [out];
    the weight is their product. A parameter with one axis is float32 itself. Rounding changes a
    weight by at most half of a 127th of the largest in its row.
    """
    arrays = {}
    for name, weight in model.state_dict().items():
        values = weight.detach().float().cpu().numpy()
        if values.ndim != 2:
            arrays[name] = values
            continue
        scale = np.abs(values).max(axis=1) / 127
        scale[scale == 0] = 1.0
        arrays[name] = np.round(values / scale[:, None]).astype(np.int8)
        arrays[f"{name}.scale"] = scale.astype(np.float32)
    return pack_arrays(arrays)


def packed_shapes(config: dict[str, Any]) -> dict[str, list[int]]:
    """The shape of every array that `pack_weights` writes for a configuration's model."""
    with on_meta():
        model = GPT(shape_of(config))
    shapes = {}
    for name, weight in model.state_dict().items():
        shapes[name] = [*weight.shape]
        if weight.ndim == 2:
            shapes[f"{name}.scale"] = [len(weight)]
    return shapes


def unpack_weights(packed: bytes) -> dict[str, torch.Tensor]:
    """The state dictionary that was packed, rounded. Raises ValueError."""
    arrays, weights = read_arrays(packed), {}
    for name, values in arrays.items():
        if name.endswith(".scale"):
            continue
        if values.dtype == np.int8:
            if f"{name}.scale" not in arrays:
                raise ValueError(f"packed: expected what pack_weights writes (no {name}.scale)")
            values = values * arrays[f"{name}.scale"][:, None]
        weights[name] = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
    return weights

"""Data of the stage `browser-speed`: stored times, and reference results for a check.

The reader's browser measures its own times; the check compares its kernels with the package.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lsa import linear_attention, softmax_attention

from ...explorable.markup import json_script
from ..index.mode_speed import narrowest
from ..lib.records import NotMeasuredError, device_name, rows

TOKENS, WIDTH, SEED = 150, 64, 40  # two whole tiles of the kernels, and part of a third


def inputs(tokens: int, width: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """q, k, v [T, d] and a weight for each feature [d], in float32, as in `browser-kernels.js`."""
    state, drawn = seed, []
    for _ in range((3 * tokens + 1) * width):
        state = (1664525 * state + 1013904223) % 2**32
        drawn.append(state / 2**30 - 2)
    numbers = torch.from_numpy(np.asarray(drawn, np.float32)).split(width)
    q, k, v = (torch.cat(numbers[n * tokens : (n + 1) * tokens]) for n in range(3))
    return *(x.view(tokens, width) for x in (q, k, v)), numbers[-1]


def reference(tokens: int = TOKENS, width: int = WIDTH, seed: int = SEED) -> dict:
    """Results of softmax and of linear attention with elu + 1 on `inputs`, computed in float64.

    One number a token, the weighted sum of its features: an error in any of them shows.
    """
    q, k, v, weights = (x.double() for x in inputs(tokens, width, seed))
    q, k, v = (x[None, :, None] for x in (q, k, v))
    outputs = {
        "softmax": softmax_attention(q, k, v),
        "linear": linear_attention(q, k, v, feature_map="elu_plus_one", mode="attention"),
    }
    sums = {name: (o[0, :, 0] @ weights).tolist() for name, o in outputs.items()}
    return {
        "tokens": tokens, "width": width, "seed": seed,
        **{name: [round(value, 6) for value in values] for name, values in sums.items()},
    }  # fmt: skip


def data() -> str:
    """JSON in a script element for the stage: `reference`, and the stored times.

    `stored` has the device, and the mode, length and seconds of each forward pass.
    """
    try:
        run = narrowest()
    except NotMeasuredError:
        return ""
    points = [
        [point["mode"], point["length"], point["seconds"]]
        for point in rows(run, **{"pass": "forward"})
    ]
    stored = {"device": device_name(run), "rows": points}
    return json_script({"reference": reference(), "stored": stored}, id="browser-speed-data")

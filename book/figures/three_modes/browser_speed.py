"""What the stage `browser_speed` has beside what the reader's browser takes: stored times, and
what the package says of the inputs on which the stage checks its kernels.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lsa import linear_attention, softmax_attention

from ...explorable.markup import json_script
from ..index.mode_speed import narrowest
from ..lib.records import NotMeasuredError, device_name, rows

TOKENS, WIDTH, SEED = 150, 64, 40  # two whole tiles of the kernels, and a part of one


def inputs(tokens: int, width: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """q, k, v [T, d] and one weight a feature [d], as float32: those of `browser-kernels.js`."""
    state, drawn = seed, []
    for _ in range((3 * tokens + 1) * width):
        state = (1664525 * state + 1013904223) % 2**32
        drawn.append(state / 2**30 - 2)
    numbers = torch.from_numpy(np.asarray(drawn, np.float32)).split(width)
    q, k, v = (torch.cat(numbers[n * tokens : (n + 1) * tokens]) for n in range(3))
    return *(x.view(tokens, width) for x in (q, k, v)), numbers[-1]


def reference(tokens: int = TOKENS, width: int = WIDTH, seed: int = SEED) -> dict:
    """What softmax and linear attention with elu + 1 make of `inputs`, computed in float64.

    A number a token, the sum of its features by the weights: an error in any of them shows.
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
    """JSON in a script element, for the stage to read: `reference`, and the stored times.

    `stored` holds the device, and of each forward pass the mode, the length and the seconds.
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

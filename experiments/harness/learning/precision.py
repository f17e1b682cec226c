"""The precision in which models are trained and evaluated."""

from __future__ import annotations

import torch

from lsa.compat import has_bfloat16


def autocast(device: torch.device, wanted: bool = True) -> torch.autocast:
    """bfloat16 if the device has instructions for it, else float32.

    A CPU without them would take 20 times as long. The device's name in a record tells which was
    used.
    """
    able = device.type != "cpu" or has_bfloat16()
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=wanted and able)

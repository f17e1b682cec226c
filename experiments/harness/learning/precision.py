"""The precision that models are trained and asked in."""

from __future__ import annotations

import torch

from lsa.compat import has_bfloat16


def autocast(device: torch.device, wanted: bool = True) -> torch.autocast:
    """bfloat16 where the device has instructions for it, else float32.

    A CPU without them takes 20 times as long. A record's device says by its name which it was.
    """
    able = device.type != "cpu" or has_bfloat16()
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=wanted and able)

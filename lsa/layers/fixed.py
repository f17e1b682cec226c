"""Numbers that a module is given and does not learn: buffers that no checkpoint holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..attention.call import accumulator_dtype
from ..checks import finite

Numbers = Sequence[float] | Sequence[Sequence[int]]


class Fixed(nn.Module):
    """A module whose fixed buffers are rewritten whenever its memory is allocated.

    `to_empty` leaves garbage in memory that no checkpoint overwrites. Decays stay in float32, or
    float64, when the module is converted to 16 bits, which would round them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fixed: dict[str, Numbers | None] = {}

    def fix(self, name: str, values: Numbers | None) -> None:
        """Register numbers, or None, as a buffer called `name`."""
        self.fixed[name] = values
        kind = torch.float32 if values and isinstance(values[0], float) else None
        kept = None if values is None else torch.tensor(values, dtype=kind)
        self.register_buffer(name, kept, False)

    def _rewrite(self, like: Tensor | None) -> None:
        """Write the buffers on the device of `like`, or each where it is."""
        for name, values in self.fixed.items():
            if values is not None:
                old: Tensor = getattr(self, name)
                kind = accumulator_dtype(old.dtype) if old.is_floating_point() else old.dtype
                device = old.device if like is None else like.device
                setattr(self, name, torch.tensor(values, dtype=kind, device=device))

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        super()._apply(fn, recurse)
        self._rewrite(None)
        return self

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *rest)
        weights = [x for name, x in state_dict.items() if name.startswith(prefix)]
        if weights and any(x.is_meta for x in self.buffers(recurse=False)):
            self._rewrite(weights[0])  # with assign=True, weights replace those on meta


def checked_decays(log_decay: Sequence[float] | None, n_heads: int) -> list[float] | None:
    """log_decay as one number a head. Raises ValueError unless each is finite and at most 0."""
    if log_decay is None:
        return None
    if not isinstance(log_decay, Sequence) or len(log_decay) != n_heads:
        got = len(log_decay) if isinstance(log_decay, Sequence) else f"{log_decay!r:.60}"
        raise ValueError(f"log_decay: expected one number for each of {n_heads} heads, got {got}")
    least = torch.finfo(torch.float32).min
    for value in log_decay:
        finite("log_decay", value, "finite numbers, at most 0", low=least, high=0)
    # Below -1e20, a decay times a distance would overflow float32 and make a score NaN.
    return [max(float(value), -1e20) for value in log_decay]

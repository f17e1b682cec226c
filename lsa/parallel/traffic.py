"""Bytes that this rank sends and receives, counted at torch's exchanges."""

from __future__ import annotations

from typing import Any

from ..compat import EXCHANGES, DispatchMode, group_named


class Traffic(DispatchMode):
    """Context that counts `sent` and `received`, B of payload to and from other ranks, and `calls`.

    An all-gather sends its input to each other rank, and a reduce-scatter a part of its input; an
    all-reduce is counted as both. The part of an all-to-all that stays on a rank does not count. If
    a network forwards, as in rings, the bytes received are the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sent = self.received = self.calls = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if getattr(func, "namespace", "") == EXCHANGES:
            self._count(func.overloadpacket.__name__, args, out)
        return out

    def _count(self, name: str, args: tuple, out: Any) -> None:
        if name == "all_gather_into_tensor":
            sent = received = out.nbytes - args[0].nbytes
        elif name == "reduce_scatter_tensor":
            sent = received = args[0].nbytes - out.nbytes
        elif name == "all_to_all_single":
            (x, into, out_of, group) = args
            own = group_named(group).rank()
            sent = x.nbytes - out_of[own] * x.itemsize
            received = out.nbytes - into[own] * x.itemsize
        elif name == "all_reduce":
            size = group_named(args[2]).size()
            sent = received = 2 * (size - 1) * out.nbytes // size
        else:
            return
        self.sent, self.received, self.calls = (
            self.sent + sent, self.received + received, self.calls + 1,
        )  # fmt: skip

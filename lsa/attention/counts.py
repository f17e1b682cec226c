"""FLOPs of each mode: the products that any implementation has to form."""

from __future__ import annotations


def mode_flops(mode: str, T: int, K: int, V: int, chunk_size: int = 64) -> int:
    """FLOPs of one head over T tokens; a multiply-add is 2, masked products count half.

    mode: "attention", "recurrent", "chunked", or "softmax", which has attention mode's products.
    Raises ValueError for an unknown mode.
    """
    if mode in ("softmax", "attention"):
        return T * (T + 1) * (K + V)
    if mode == "recurrent":
        return 4 * T * K * V
    if mode == "chunked":
        whole, last = divmod(T, chunk_size)
        inside = whole * chunk_size * (chunk_size + 1) + last * (last + 1)
        return 4 * T * K * V + inside * (K + V)
    raise ValueError(f"mode: expected softmax, attention, recurrent or chunked, got {mode!r}")

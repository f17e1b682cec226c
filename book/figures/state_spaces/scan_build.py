"""Instructions of the selective scan's kernels, compiled for Hopper."""

from __future__ import annotations

from ..lib.format import in_words, times
from ..lib.records import have, of_config, row

CASE = {"input_rule": "euler", "dtype": "float32", "state": 16}


def numbers() -> dict[str, str]:
    """Numbers for the chapter on state spaces."""

    def instructions(kernel: str) -> float:
        """Instructions of a warp for one number of the state."""
        return row(of_config(have("scan_build"), arch=90), kernel=kernel, **CASE)["instructions"]

    def cut() -> str:
        """Work of a sequence that is cut into segments, over that of an uncut one."""
        forward = instructions("outputs_kernel")
        return times((instructions("ends_kernel") + forward) / forward)

    return in_words(
        scan_forward=lambda: f"{instructions('outputs_kernel'):.1f}",
        scan_backward=lambda: f"{instructions('gradients_kernel'):.0f}",
        scan_segments=cut,
    )

"""Compiled kernels of the selective scan."""

from __future__ import annotations

from ..kernels.kernel_build import ARCHITECTURES
from ..lib.format import in_words
from ..lib.records import NotMeasuredError, Record, Row, have, of_config, row, rows
from ..lib.tables import Missing, Table

KERNELS = {
    "outputs_kernel": "forward: y, and every eighth state",
    "gradients_kernel": "backward: all gradients",
    "ends_kernel": "final state of a segment",
    "ends_kernel:R": "gradient of that state",
    "carry_kernel": "carry from segment to segment",
}
CASE = {"input_rule": "euler", "dtype": "float32", "state": 16}


def table(arch: int = 90) -> Table | Missing:
    """The kernels of one call and its gradient at Mamba's N."""
    try:
        run = of_config(have("scan_build"), arch=arch)
    except NotMeasuredError:
        return Missing("scan_build")
    lines = [
        [
            KERNELS[found["kernel"]],
            str(found["registers"]),
            f"{found['spilled']} B",
            str(found["resident"] * found["warps"]),
            f"{found['instructions']:.1f}" if found["instructions"] else "–",
        ]
        for name in KERNELS
        for found in rows(run, kernel=name, **CASE)
    ]
    titles = ["", "registers", "spilled", "warps at once", "instructions"]
    return Table(titles, lines, align="lrrrr")


def spilled() -> int:
    """Bytes a thread, at most, on all architectures. Raises NotMeasuredError."""
    records = have("scan_build")
    if {run["config"]["arch"] for run in records} != {*ARCHITECTURES}:
        raise NotMeasuredError("scan_build: expected a run for each architecture")
    return max(found["spilled"] for run in records for found in rows(run))


def numbers() -> dict[str, str]:
    """Numbers for the chapter on state spaces."""

    def hopper() -> Record:
        return of_config(have("scan_build"), arch=90)

    def of(kernel: str) -> Row:
        return row(hopper(), kernel=kernel, **CASE)

    return in_words(
        scan_forward=lambda: f"{of('outputs_kernel')['instructions']:.1f}",
        scan_backward=lambda: f"{of('gradients_kernel')['instructions']:.0f}",
    )

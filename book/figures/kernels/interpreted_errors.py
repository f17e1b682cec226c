"""Errors of the kernels' results against float64, interpreted step by step on a processor."""

from __future__ import annotations

from math import ceil

from ...explorable.figure import Axis, Explorable, Filter, Series, Toggle
from ..lib.format import in_words
from ..lib.records import NotMeasuredError, Record, Row, have, need, provenance, rows
from ..lib.tables import Missing

THOUSANDTH = 1e-3
BOUND = 3.3e-3  # of the tests, in bfloat16
WIDTH = 64
DRAWN = ("o", "dq", "dk", "dv")
BESIDE = (63, 65)  # tokens: on a logarithmic scale they would coincide with 64
KINDS = {
    ("no", "identity", "no", "no"): "the sum alone",
    ("yes", "identity", "yes", "no"): "normalised, with states",
    ("yes", "elu_plus_one", "no", "no"): "normalised, elu + 1",
    ("yes", "softplus", "no", "no"): "normalised, softplus",
    ("no", "identity", "no", "yes"): "the sum alone, fading",
    ("yes", "elu_plus_one", "yes", "yes"): "normalised, elu + 1, fading, with states",
}
SHOWN = KINDS["yes", "elu_plus_one", "no", "no"]


def measured() -> Record:
    """The stored run. Raises NotMeasuredError."""
    return need(have("interpreted_errors"), "interpreted_errors: nothing stored")[0]


def _kind(row: Row) -> str:
    return KINDS[row["normalize"], row["map"], row["states"], row["decay"]]


def _by_length(run: Record) -> list[Row]:
    """Rows of one head of WIDTH features in chunked mode."""
    one = {"mode": "chunked", "batch": 1, "heads": 1, "width": WIDTH, "values": WIDTH}
    return sorted(rows(run, **one), key=lambda row: row["length"])


def _shown(errors: list[Row]) -> list[Row]:
    """The rows that the figure shows by default."""
    return [row for row in errors if row["tensor"] in DRAWN and _kind(row) == SHOWN]


def figure(id: str = "kernel-errors") -> Explorable | Missing:
    """Error of o and of the gradients against the length of the text."""
    try:
        run = measured()
    except NotMeasuredError:
        return Missing("interpreted_errors")
    by_length = [row for row in _by_length(run) if row["length"] not in BESIDE]

    def columns(tensor: str, kind: str) -> dict[str, list]:
        points = [row for row in by_length if row["tensor"] == tensor and _kind(row) == kind]
        # A length may occur twice in the grid.
        points = [*{row["length"]: row for row in points}.values()]
        return {
            "length": [row["length"] for row in points],
            "error": [row["error"] / THOUSANDTH for row in points],
        }

    kinds = [kind for kind in KINDS.values() if kind in {_kind(row) for row in by_length}]
    first = SHOWN if SHOWN in kinds else kinds[0]
    most = ceil(10 * most_error() / THOUSANDTH) / 10
    return Explorable(
        id=id,
        caption=(
            f"**Errors stay below {most:.1f} thousandths.** RMS error against float64, relative to "
            f"the exact values, in bfloat16, one head of {WIDTH}. Dashed: the error of the exact o "
            "rounded to 16 bits. With a normaliser the gradient of q rises longest."
        ),
        alt=(
            "Relative error in thousandths against the number of tokens on a logarithmic scale: "
            "four lines, of o and of three gradients. Three are level from a thousand tokens on, "
            "that of dq rises until sixteen thousand, and none comes to twice the dashed line of "
            "what 16 bits cost by themselves."
        ),
        series=[
            Series({"tensor": tensor, "kind": kind}, columns(tensor, kind), source=run["path"])
            for kind in kinds
            for tensor in DRAWN
            if columns(tensor, kind)["length"]
        ],
        ceilings=[
            Series({"kind": kind}, columns("rounded", kind), label="o, rounded once")
            for kind in kinds
            if columns("rounded", kind)["length"]
        ],
        x=Axis("length", "Tokens", log=2),
        y=Axis("error", "Relative error", "thousandths", digits=3),
        color="tensor",
        mark="line+dot",
        controls=[
            Filter("kind", "What is computed", kind="select", options=kinds, default=first),
            Toggle("tensor", "Of"),
        ],
        provenance=provenance([run]),
    )


def most_error() -> float:
    """The largest error that the figure can show. Raises NotMeasuredError."""
    found = _by_length(measured())
    return max(row["error"] for row in found if row["tensor"] in DRAWN)


def errors() -> list[Row]:
    """Rows of all results and gradients. Raises NotMeasuredError."""
    return [row for row in rows(measured()) if row["tensor"] != "rounded"]


def error_at(length: int, *tensors: str) -> float:
    """The largest error that the figure shows by default, at a length. Raises NotMeasuredError."""
    errors = [
        row["error"]
        for row in _shown(_by_length(measured()))
        if row["length"] == length and row["tensor"] in tensors
    ]
    return max(need(errors, f"interpreted_errors: {length:,} tokens"))


def numbers() -> dict[str, str]:
    """Numbers for the chapter on kernels: all errors."""

    def rounded() -> str:
        values = [row["error"] for row in rows(measured(), tensor="rounded")]
        most = max(need(values, "interpreted_errors: no rounded outputs"))
        return f"{most / THOUSANDTH:.1f}"

    return in_words(
        errors_count=lambda: f"{len(errors()):,}",
        errors_worst=lambda: f"{max(row['error'] for row in errors()) / THOUSANDTH:.1f}",
        errors_rounded=rounded,
        errors_longest=lambda: f"{max(row['length'] for row in errors()):,}",
    )

"""How far the kernels' results are from float64: interpreted on a processor, or run on a GPU."""

from __future__ import annotations

from ..explorable.figure import Axis, Explorable, Filter, Series, Toggle
from .results import NotMeasuredError, Record, Row, have, provenance, rows
from .words import Missing, in_words

THOUSANDTH = 1e-3
WIDTH = 64
DRAWN = ("o", "dq", "dk", "dv")
KINDS = {
    ("no", "identity", "no", "no"): "the sum alone",
    ("yes", "identity", "yes", "no"): "normalised, with states",
    ("yes", "elu_plus_one", "no", "no"): "normalised, elu + 1",
    ("yes", "softplus", "no", "no"): "normalised, softplus",
    ("no", "identity", "no", "yes"): "the sum alone, fading",
    ("yes", "elu_plus_one", "yes", "yes"): "normalised, elu + 1, fading, with states",
}
SHOWN = KINDS["yes", "elu_plus_one", "no", "no"]


def measured() -> list[Record]:
    """The stored run in bfloat16: a GPU's if there is one. Raises NotMeasuredError for none."""
    found = [run for name in ("kernel_errors", "interpreted_errors") for run in have(name)]
    found = [run for run in found if run["config"]["dtype"] == "bfloat16"]
    if not found:
        raise NotMeasuredError("interpreted_errors: no run in bfloat16")
    return found[:1]


def _kind(row: Row) -> str:
    return KINDS[row["normalize"], row["map"], row["states"], row["decay"]]


def _by_length(run: Record) -> list[Row]:
    """Rows of one head of WIDTH features in chunked mode."""
    one = {"mode": "chunked", "batch": 1, "heads": 1, "width": WIDTH, "values": WIDTH}
    return sorted(rows(run, **one), key=lambda row: row["length"])


def figure(id: str = "kernel-errors") -> Explorable | Missing:
    """Error of o and of the gradients against the length of the text."""
    try:
        (run,) = measured()
    except NotMeasuredError:
        return Missing("interpreted_errors")
    found = _by_length(run)

    def columns(tensor: str, kind: str) -> dict[str, list]:
        points = [row for row in found if row["tensor"] == tensor and _kind(row) == kind]
        # A length may stand in the grid twice.
        points = [*{row["length"]: row for row in points}.values()]
        return {
            "length": [row["length"] for row in points],
            "error": [row["error"] / THOUSANDTH for row in points],
        }

    kinds = [kind for kind in KINDS.values() if kind in {_kind(row) for row in found}]
    return Explorable(
        id=id,
        caption=_caption(found),
        alt=(
            "Relative error in thousandths against the number of tokens on a logarithmic scale: "
            "four lines, of o and of three gradients, that stay level from a few tokens on, a "
            "little above the dashed line of what 16 bits cost by themselves."
        ),
        series=[
            Series({"tensor": tensor, "kind": kind}, columns(tensor, kind), source=run["path"])
            for kind in kinds
            for tensor in DRAWN
        ],
        ceilings=[
            Series({"kind": kind}, columns("rounded", kind), label="o, rounded once")
            for kind in kinds
        ],
        x=Axis("length", "Tokens", log=2),
        y=Axis("error", "Relative error", "thousandths", digits=3),
        color="tensor",
        mark="line+dot",
        controls=[
            Filter("kind", "What is computed", options=kinds, default=SHOWN),
            Toggle("tensor", "Of"),
        ],
        provenance=provenance([run]),
    )


def _caption(found: list[Row]) -> str:
    """The finding, with the lengths between which it holds."""
    drawn = [row for row in found if row["tensor"] in DRAWN and _kind(row) == SHOWN]
    finding = "**Rounding does not build up with the text.**"
    what = (
        "RMS of the difference from float64 over that of the exact values, in bfloat16, one head "
        f"of {WIDTH}. Dashed: what is lost by storing the exact o in 16 bits."
    )
    if not drawn:
        return f"{finding} {what}"

    def most(length: int) -> str:
        return f"{max(r['error'] for r in drawn if r['length'] == length) / THOUSANDTH:.1f}"

    longest = max(row["length"] for row in drawn)
    return (
        f"{finding} {what} Of o and its gradients the worst is {most(drawn[0]['length'])} "
        f"thousandths off at {drawn[0]['length']:,} tokens and {most(longest)} at {longest:,}."
    )


def numbers() -> dict[str, str]:
    """What the chapter on kernels says of all errors."""

    def errors() -> list[Row]:
        (run,) = measured()
        return [row for row in rows(run) if row["tensor"] != "rounded"]

    def worst() -> str:
        return f"{max(row['error'] for row in errors()) / THOUSANDTH:.1f}"

    def rounded() -> str:
        (run,) = measured()
        found = [row["error"] for row in rows(run, tensor="rounded", length=1000)]
        if not found:
            raise NotMeasuredError("interpreted_errors: 1,000 tokens")
        return f"{max(found) / THOUSANDTH:.1f}"

    return in_words(
        errors_count=lambda: f"{len(errors()):,}",
        errors_worst=worst,
        errors_rounded=rounded,
        errors_longest=lambda: f"{max(row['length'] for row in errors()):,}",
    )

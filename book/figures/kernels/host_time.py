"""Host time of a kernel call, compared with an operator that does nothing."""

from __future__ import annotations

from lsa.cost import PEAKS, least_bytes

from ..lib.format import duration, duration_between, in_words, times
from ..lib.records import NotMeasuredError, Record, Row, device_name, have, load, need, rows
from ..lib.tables import Missing, Table

SUMS = {"no": "sum", "yes": "normalised"}
PASSES = {"forward": "forwards", "forward+backward": "with gradients"}


def measured(runs: list[Record] | None = None, **wanted: object) -> list[Row]:
    """Rows of runs that match, by default of the stored one. Raises NotMeasuredError."""
    runs = have("host_time") if runs is None else runs
    matching = [row for run in runs for row in rows(run, **wanted)]
    return need(matching, f"host_time: nothing with {wanted}")


def _pairs(runs: list[Record] | None = None, **wanted: object) -> list[tuple[Row, Row]]:
    """Each call of the layer, with the empty operator that was timed in turns with it."""
    ours = measured(runs, call="linear_attention", **wanted)
    return list(zip(ours, measured(runs, call="empty", **wanted), strict=True))


def others() -> list[Record]:
    """The runs on other hosts; the prediction is made with all."""
    shown = [device_name(run) for run in have("host_time")]
    return [run for run in load("host_time") if device_name(run) not in shown]


def table(width: int = 64, feature_map: str = "identity") -> Table | Missing:
    """Launches and time of a call, for heads of one width."""
    try:
        pairs = _pairs(width=width, feature_map=feature_map)
    except NotMeasuredError:
        return Missing("host_time")
    lines = [
        [
            f"{SUMS[ours['normalized']]} {PASSES[ours['pass']]}",
            duration_between(ours),
            duration_between(empty),
            times(ours["seconds"] / empty["seconds"]),
            str(ours["launches"]),
        ]
        for ours, empty in pairs
    ]
    return Table(["", "a call", "empty", "ratio", "launches"], lines, align="lrrrr", wrap=True)


def numbers() -> dict[str, str]:
    """Numbers for the appendix on kernels: the host."""

    def span(values: list[float], digits: int) -> str:
        return " to ".join(dict.fromkeys(f"{end(values):,.{digits}f}" for end in (min, max)))

    def ratios(pass_name: str, runs: list[Record] | None = None) -> str:
        pairs = _pairs(runs, **{"pass": pass_name})
        return span([a["seconds"] / b["seconds"] for a, b in pairs], 1)

    def microseconds(pass_name: str, runs: list[Record] | None = None) -> str:
        pairs = _pairs(runs, **{"pass": pass_name})
        return span([1e6 * ours["seconds"] for ours, _ in pairs], 0)

    def least() -> str:
        measured()  # or there is no configuration to count
        config = have("host_time")[0]["config"]
        tokens = config["batch"] * config["length"] * config["heads"]
        return duration(tokens * least_bytes(1, 64, 64) / PEAKS["H100 SXM"].bytes)

    return in_words(
        host_bytes=least,
        host_forward=lambda: ratios("forward"),
        host_other=lambda: ratios("forward", others()),
        host_other_us=lambda: microseconds("forward", others()),
        host_forward_us=lambda: microseconds("forward"),
        host_both=lambda: ratios("forward+backward"),
        host_both_us=lambda: microseconds("forward+backward"),
    )

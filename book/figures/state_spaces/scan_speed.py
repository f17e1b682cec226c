"""The selective scan measured: in order, as a tree, by the kernels, by Mamba's own."""

from __future__ import annotations

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.axes import PASSES
from ..lib.format import in_words, times
from ..lib.records import NotMeasuredError, Record, Row, have, need, provenance, row, rows
from ..lib.tables import Missing

NAMES = {
    "steps": "in order",
    "tree": "as a tree",
    "kernel": "our kernel",
    "mamba_ssm": "Mamba's own",
}
CHUNK = 8  # tokens between the states that the kernel stores for the gradients


def measured() -> list[Record]:
    """The stored runs of one device, short sequences first. Raises NotMeasuredError."""
    records = need(have("scan_speed"), "scan_speed: nothing stored")
    return sorted(records, key=lambda run: run["config"]["length"])


def figure(id: str = "scan-speed") -> Explorable | Missing:
    """Time and share of the limit against the length of the sequence."""
    try:
        records = measured()
    except NotMeasuredError:
        return Missing("scan_speed")
    columns: dict[tuple[str, str], dict[str, list]] = {}
    for run in records:
        for point in rows(run):
            line = columns.setdefault((point["implementation"], point["pass"]), {})
            for name, cell in _drawn(point).items():
                line.setdefault(name, []).append(cell)
    drawn, passes = ({key[i] for key in columns} for i in (0, 1))
    return Explorable(
        id=id,
        caption=_caption(records),
        alt=(
            "Time of one selective scan against the length of the sequence, on logarithmic "
            "scales, a line a way of computing it."
        ),
        series=[
            Series({"implementation": name, "pass": direction}, line)
            for (name, direction), line in columns.items()
        ],
        x=Axis("length", "Length of the sequence", "tokens", log=2),
        y=Choice(
            "Show",
            [
                Axis("ms", "Time", "ms", log=10, digits=3, low="low", high="high"),
                Axis("token", "Time a token", "µs", log=10, digits=3),
                Axis("share", "Share of the limit", "%", log=10, digits=3),
            ],
        ),
        color="implementation",
        mark="line+dot",
        controls=[
            Filter("pass", "Pass", options=PASSES, default=[p for p in PASSES if p in passes][-1]),
            Toggle(
                "implementation", "Scan", options={k: v for k, v in NAMES.items() if k in drawn}
            ),
        ],
        provenance=provenance(records),
    )


def _drawn(point: Row) -> dict[str, float]:
    return {
        "length": point["length"],
        "ms": 1e3 * point["seconds"],
        "low": 1e3 * point["low"],
        "high": 1e3 * point["high"],
        "token": 1e6 * point["seconds"] / point["length"],
        "share": 100 * point["share"],
    }


def ratio(run: Record, slow: str, fast: str, direction: str = "forward+backward") -> float:
    """Time of `slow` over that of `fast`, in one run. Raises NotMeasuredError."""
    both = [
        row(run, implementation=name, **{"pass": direction})["seconds"] for name in (slow, fast)
    ]
    return both[0] / both[1]


def _range(slow: str, fast: str) -> str:
    """The smallest and largest ratio over the lengths."""
    ratios = []
    for run in measured():
        try:
            ratios.append(ratio(run, slow, fast))
        except NotMeasuredError:
            continue
    need(ratios, f"scan_speed: {slow} and {fast} in no run")
    low, high = times(min(ratios)), times(max(ratios))
    return low if low == high else f"{low} to {high}"


def _caption(records: list[Record]) -> str:
    config = records[0]["config"]
    told = in_words(tree=lambda: _range("tree", "steps"))["tree"]
    return (
        "**On two CPU threads a scan as a tree is no faster than one in order, in plain PyTorch.** "
        "Forward and "
        f"backward, its medians are {told} as long. "
        f"{config['batch']} sequence, {config['channels']} "
        f"channels of {config['state']} numbers, {config['dtype']}. The limit is the time of "
        "reading inputs and writing results once, at the speed of a copy in the same run."
    )


def numbers(N: int = 16, item: int = 4) -> dict[str, str]:
    """Bytes a token and channel by the cost model."""
    return {
        "scan_states": f"{item * N}",
        "scan_least": f"{3 * item}",
        "scan_kept": f"{item * N // CHUNK}",
    }

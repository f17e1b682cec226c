"""Time and memory of a token of a trained model, by how many of its heads look back."""

from __future__ import annotations

from ..lib.format import in_words, size, times, times_between
from ..lib.records import NotMeasuredError, Row, have, need, of_config, row, rows
from ..lib.tables import Missing, Table

EXPERIMENT = "converted_speed"
WAYS = {
    "softmax": "all 270",
    "softmax in 24": "24",
    "softmax in 8": "eight",
    "window": "none",
    "window and state": "none, with states",
}
POSITIONS = (32, 8192, 65536)
FULL = 68  # tokens that a confined head sees


def tick(way: str, position: int = POSITIONS[-1]) -> Row:
    """One measured token. Raises NotMeasuredError."""
    return row(of_config(have(EXPERIMENT)), way=way, position=position)


def table() -> Table | Missing:
    """Milliseconds a token after short and long texts, and what is then kept."""
    cells = []
    for way, label in WAYS.items():
        try:
            points = [tick(way, position) for position in POSITIONS]
        except NotMeasuredError:
            continue
        times = [_milliseconds(point) for point in points]
        cells.append([label, *times, size(points[-1]["state"])])
    if not cells:
        return Missing(EXPERIMENT)
    after = [f"ms after {position:,}" for position in POSITIONS]
    return Table(["heads that look back", *after, "kept"], cells)


def apart(way: str) -> float:
    """The longest tick of a way over its shortest, once the window is full. NotMeasuredError."""
    ticks = rows(of_config(have(EXPERIMENT)), way=way)
    seconds = need([one["seconds"] for one in ticks if one["position"] > FULL], EXPERIMENT)
    return max(seconds) / min(seconds)


def _milliseconds(timing: Row) -> str:
    """The median, and the quartiles."""
    middle, low, high = (f"{1e3 * timing[name]:.3g}" for name in ("seconds", "low", "high"))
    return f"{middle} ({low}–{high})"


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""
    return in_words(
        converted_last=lambda: f"{POSITIONS[-1]:,}",
        converted_limit=lambda: times_between(tick("softmax", 8192), tick("softmax in 24", 8192)),
        converted_apart=lambda: times(apart("window")),
        converted_apart_states=lambda: times(apart("window and state")),
        converted_some=lambda: times_between(tick("softmax"), tick("softmax in 24")),
    )

"""Of the chapter on state machines."""

from ..figures.state_machines import taylor_error
from . import every


def falls(parity: int, scale: float) -> bool:
    """Whether the error falls with every two terms more."""
    found = [row for row in taylor_error.measured(64) if row["scale"] == scale]
    errors = {row["degree"]: row["rms"] for row in found if row["degree"] % 2 == parity}
    order = [errors[n] for n in sorted(errors)]
    return bool(order) and order == sorted(order, reverse=True)


VERDICTS = {
    "each pair of terms brings them down": lambda: falls(0, 1) and falls(0, 2),
    "the odd lines fall with them": lambda: falls(1, 1),
    "many of their weights are negative": lambda: every(
        row["negative"] > 0.05
        for row in taylor_error.measured(64)
        if row["scale"] == 4 and row["degree"] % 2
    ),
    "it is far from softmax at every $n$ drawn here": lambda: every(
        row["rms"] > 0.1
        for row in taylor_error.measured(64)
        if row["scale"] == 4 and row["degree"] % 2 == 0
    ),
}

"""Scripts of the stages without a page."""

from collections.abc import Callable
from pathlib import Path

from py_mini_racer import MiniRacer

STAGES = Path(__file__).resolve().parents[3] / "book" / "stages"


def engine(*names: str) -> Callable:
    """Run these scripts; the result calls a function in JavaScript with what JSON can say."""
    racer = MiniRacer()
    racer.eval("var window = globalThis, performance = Date;")
    for name in names:
        racer.eval((STAGES / f"{name}.js").read_text(encoding="utf-8"))
    return lambda code, *given: racer.call(f"({code})", *given)

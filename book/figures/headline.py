"""Draws the README's picture, the first figure as it stands by default.

python -m book.figures.headline     writes book/theme/static/headline.svg
"""

from pathlib import Path

from ..explorable.still import still
from . import race

if __name__ == "__main__":
    target = Path(__file__).resolve().parents[1] / "theme" / "static" / "headline.svg"
    target.write_text(still(race.figure(), theme="light"), encoding="utf-8")
    print(target)

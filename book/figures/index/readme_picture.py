"""Draws the README's picture and a shared link's, the first figure as it stands by default.

python -m book.figures.readme_picture     writes headline.svg and card.png in book/theme/static/
"""

from pathlib import Path

from ...explorable.still import picture, still
from . import race

STATIC = Path(__file__).resolve().parents[1] / "theme" / "static"

if __name__ == "__main__":
    figure = race.figure()
    (STATIC / "headline.svg").write_text(still(figure, theme="light"), encoding="utf-8")
    (STATIC / "card.png").write_bytes(picture(figure, width=1200, height=630))
    print(STATIC)

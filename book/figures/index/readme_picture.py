"""The README's picture and that of a shared link: the race of the first page, against time.

`python -m book.figures.index.readme_picture` writes headline.svg and card.png to the theme.
"""

from pathlib import Path

from ...explorable.still import picture, still
from . import race

STATIC = Path(__file__).resolve().parents[2] / "theme" / "static"

if __name__ == "__main__":
    figure = race.figure(context=race.OPENS_AT)
    (STATIC / "headline.svg").write_text(still(figure, theme="light"), encoding="utf-8")
    (STATIC / "card.png").write_bytes(picture(figure, width=1200, height=630))
    print(STATIC)

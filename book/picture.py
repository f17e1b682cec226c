"""Draws the README's picture, the first figure as it stands by default.

python book/picture.py     writes book/_static/headline.svg
"""

from pathlib import Path

import figures
from explorable_still import still

if __name__ == "__main__":
    target = Path(__file__).parent / "_static" / "headline.svg"
    target.write_text(still(figures.loss(), theme="light"), encoding="utf-8")
    print(target)

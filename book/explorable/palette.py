"""The palette as Python sees it, read from the file that the page uses."""

import re
from functools import cache
from pathlib import Path

PALETTE_CSS = Path(__file__).resolve().parents[1] / "theme" / "static" / "palette.css"
OTHERS = tuple(f"other-{i}" for i in range(1, 6))


@cache
def _declarations(theme):
    """`{variable: value}` of one theme ("light" or "dark"), in file order."""
    selector = {"light": r":root", "dark": r'html\[data-theme="dark"\]'}[theme]
    block = re.search(selector + r"\s*\{(.*?)\n\}", PALETTE_CSS.read_text("utf-8"), re.S)
    return dict(re.findall(r"--([\w-]+):\s*([^;]+);", block.group(1)))


def names():
    """Every name that has a colour, in the order in which legends list them."""
    return [name for name in _declarations("light") if not name.endswith(("-text", "-label"))]


def colour(name, theme="light"):
    """The colour of a name as "#RRGGBB"; `name + "-text"` gives the one for words."""
    return _declarations(theme)[name]


def label(name):
    """What a name is called in prose, or None if the palette does not say."""
    quoted = _declarations("light").get(f"{name}-label")
    return quoted.strip('"') if quoted else None


def assign(values):
    """Give each value a palette name: its own where it has one, else the spare ones in turn.

    Returns `{value: palette name}` in legend order. Raises ValueError when more
    values lack a colour than there are spare ones: two lines must never share one.
    """
    known = names()
    strangers = [value for value in values if value not in known]
    if len(strangers) > len(OTHERS):
        raise ValueError(
            f"color: expected at most {len(OTHERS)} values that palette.css does not name, "
            f"got {strangers}"
        )
    ordered = [name for name in known if name in values]
    return {name: name for name in ordered} | dict(zip(strangers, OTHERS, strict=False))

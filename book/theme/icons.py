"""The theme's icons, drawn into the pages, so that its library need not load.

As images of a style sheet, a browser would parse each as a document before it shows anything. That
took a third of the time of a page's first styles.
"""

from __future__ import annotations

import re

from sphinx.errors import ExtensionError

# On a square of 16 units: lines in the text's colour, and the filled areas.
LINES = {
    "angle-left": "m10 3-5 5 5 5",
    "angle-right": "m6 3 5 5-5 5",
    "bars": "M2 4h12M2 8h12M2 12h12",
    "circle-half-stroke": "M14 8a6 6 0 1 1-12 0 6 6 0 1 1 12 0z",
    "list": "M6 4h8M6 8h8M6 12h8M2 4h.5M2 8h.5M2 12h.5",
    "magnifying-glass": "M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 1 1 9 0M10.5 10.5l4 4",
    "moon": "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z",
    "sun": "M11 8a3 3 0 1 1-6 0 3 3 0 1 1 6 0M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15"
    "M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
}
FILLED = {"circle-half-stroke": "M8 2a6 6 0 0 1 0 12z"}
EMPTY = re.compile(r'(<(i|span) class="[^"]*\bfa-solid\s[^"]*"[^>]*>)(?=</\2>)')
NAME = re.compile(r"\bfa-(?!solid\b|lg\b)([\w-]+)")


def draw_icons(html: str) -> str:
    """The page with a picture in each element that the theme marks as an icon."""

    def filled(element: re.Match) -> str:
        name = NAME.search(element[1])
        if not name or name[1] not in LINES:
            known = ", ".join(LINES)
            raise ExtensionError(f"icon: expected one of {known}, got {element[1]}")
        shapes = f'<path d="{LINES[name[1]]}"/>'
        if name[1] in FILLED:
            shapes += f'<path fill="currentcolor" stroke="none" d="{FILLED[name[1]]}"/>'
        return f'{element[1]}<svg viewBox="0 0 16 16" aria-hidden="true">{shapes}</svg>'

    return EMPTY.sub(filled, html)

"""The theme's icons as pictures in the page."""

import pytest
from sphinx.errors import ExtensionError

from book.theme.icons import LINES, draw_icons


@pytest.mark.parametrize("name", LINES)
def test_an_icon_is_drawn_once(name):
    page = f'<p>a <i class="theme-switch fa-solid fa-{name}  fa-lg" title="x"></i> b</p>'
    html = draw_icons(page)
    assert html.count("<svg") == 1 and LINES[name] in html
    assert html.startswith(page[: page.index("</i>")]) and html.endswith("</svg></i> b</p>")
    assert draw_icons(html) == html


def test_other_elements_stay():
    page = '<i class="fa-solid fa-bars">text</i><span class="fa-thing"></span><i class="x"></i>'
    assert draw_icons(page) == page


@pytest.mark.parametrize("classes", ["fa-solid fa-rocket", "fa-solid fa-lg"])
def test_an_unknown_icon_is_refused(classes):
    with pytest.raises(ExtensionError, match="icon: expected one of"):
        draw_icons(f'<i class="{classes}"></i>')

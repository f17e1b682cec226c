"""What axe finds on a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# axe would read the style sheets again, which a page from a file may not. All that is in order, it
# would list by element: on a long page that is most of the work.
OPTIONS = {
    "preload": False,
    "resultTypes": ["violations"],
    "rules": {"target-size": {"enabled": True}},
}


def grave_violations(tab: Page, context: dict | None = None) -> list[str]:
    """What is wrong and its elements, of the serious and critical rules; context: where to look."""
    found = Axe().run(tab, context=context, options=OPTIONS).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}\n  "
        + "\n  ".join(node["html"][:400] for node in rule["nodes"][:5])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


@contextmanager
def emptied_formulas(tab: Page) -> Iterator[None]:
    """The page with its formulas empty.

    Their parts are two thirds of a long page, and all made alike. axe would go through them, though
    it were told to leave them out.
    """
    tab.evaluate("""() => {
        window.formulas = [...document.querySelectorAll("main .katex")]
            .map((formula) => [formula, [...formula.childNodes]]);
        for (const [formula] of window.formulas) formula.replaceChildren();
    }""")
    yield
    tab.evaluate("""() => {
        for (const [formula, parts] of window.formulas) formula.replaceChildren(...parts);
    }""")

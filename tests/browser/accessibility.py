"""What axe finds on a page."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# axe would read the style sheets again, which a page from a file may not. All that is in order, it
# would list by element: on a long page that is most of the work. What "region" finds is moderate.
OPTIONS = {
    "preload": False,
    "resultTypes": ["violations"],
    "rules": {"target-size": {"enabled": True}, "region": {"enabled": False}},
}

# axe spends most of its time on finding backgrounds. So it checks one of the texts that have the
# same styles and backgrounds, in each figure and outside all. Backgrounds are those of ancestors.
ONE_OF_A_KIND = """() => {
    const seen = new Set(), fields = new Set(["INPUT", "SELECT", "TEXTAREA"]);
    const seeable = { visibilityProperty: true, opacityProperty: true };
    for (const one of document.querySelectorAll("body *")) {
        const hasText = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!(hasText || fields.has(one.tagName)) || !one.checkVisibility(seeable)) continue;
        const { color, fill, fontSize, fontWeight } = getComputedStyle(one), behind = [];
        for (let around = one; around; around = around.parentElement) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(around);
            behind.push(backgroundColor, backgroundImage, opacity);
        }
        const frame = one.closest("figure, [data-stage]")?.id;
        const classes = [one, one.parentElement].map((it) => it.getAttribute("class"));
        const place = [frame, one.tagName, ...classes, Boolean(one.closest(".visually-hidden"))];
        const kind = [place, color, fill, fontSize, fontWeight, ...behind].join();
        one.toggleAttribute("data-contrast", !seen.has(kind));
        seen.add(kind);
    }
}"""
CONTRAST = {"rules": [{"id": "color-contrast", "selector": "[data-contrast]"}]}
AXE = Axe(f"{Axe().axe_script}\naxe.configure({json.dumps(CONTRAST)})")


def grave_violations(tab: Page, context: dict | None = None) -> list[str]:
    """What is wrong and its elements, of the serious and critical rules; context: where to look."""
    tab.evaluate(ONE_OF_A_KIND)
    found = AXE.run(tab, context=context, options=OPTIONS).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}\n  "
        + "\n  ".join(node["html"][:400] for node in rule["nodes"][:5])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


@contextmanager
def without_repetition(tab: Page, *, formulas: bool = False) -> Iterator[None]:
    """The page without what is made alike again and again. formulas: with all of these.

    Parts of formulas, words of code and rows of tables are nine tenths of a long page, and axe
    would go through them, though it were told to leave them out. Of a table the first rows stay;
    of the colours in code axe says nothing on these pages.
    """
    tab.evaluate(REDUCE, formulas)
    yield
    tab.evaluate("for (const [node, parts] of window.whole) node.replaceChildren(...parts)")


REDUCE = """(formulas) => {
    window.whole = [];
    const put = (node, parts) => {
        window.whole.push([node, [...node.childNodes]]);
        node.replaceChildren(...parts);
    };
    for (const one of document.querySelectorAll("main .katex")) if (!formulas) put(one, ["x"]);
    for (const body of document.querySelectorAll("main tbody")) {
        put(body, [...body.rows].slice(0, 12));
    }
    for (const code of document.querySelectorAll("main div.highlight pre")) {
        put(code, [code.textContent]);
    }
}"""

"""HTML helpers: elements, the markup of a caption, and data in a page."""

import json
from html import escape

from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).disable("image")


def tag(name, /, *children, **attributes):
    """An HTML element. `cls` is class; True gives a bare attribute, False and None no attribute.

    Children are HTML, which the caller has escaped; attributes are escaped here.
    """
    written = ""
    for key, value in attributes.items():
        key = "class" if key == "cls" else key.replace("_", "-")
        if value is True:
            written += f" {key}"
        elif value is not False and value is not None:
            written += f' {key}="{escape(str(value))}"'
    opening = f"<{name}{written}>"
    return opening if name == "input" else f"{opening}{''.join(children)}</{name}>"


def inline(text):
    """Escaped HTML of text with *emphasis*, **strength**, `code` and [links](target)."""
    return _MARKDOWN.renderInline(text)


def json_script(document, **attributes):
    """Data in a script element, safe for any strings.

    No `<` is left: `<!--<script>` alone would hide the rest of a page.
    """
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c")
    return tag("script", text, type="application/json", **attributes)

"""Long lines of code as elements of their own, which book.css breaks on a phone.

The rest of a broken line is indented further than its start. That needs an element for each line.
"""

from __future__ import annotations

import re
from html import unescape

from sphinx.application import Sphinx

# Not printed output, whose columns are aligned.
CODE = re.compile(
    r'(?<!myst-ansi notranslate">)(<div class="highlight"><pre><span></span>)(.*?)(?=</pre>)',
    re.DOTALL,
)
TAG = re.compile(r"<[^>]*>")
FITS = 32  # letters on the narrowest phone


def _marked(line: str) -> str:
    words = unescape(TAG.sub("", line))
    if len(words) <= FITS:
        return f"{line}\n"
    start = len(words) - len(words.lstrip(" "))
    return f'<span class="code-line" style="--start:{start}">{line}\n</span>'


def with_lines(body: str) -> str:
    """`body`, a page's HTML. pygments closes all its elements at the end of each line."""

    def marked(match: re.Match[str]) -> str:
        *lines, rest = match[2].split("\n")
        return match[1] + "".join(map(_marked, lines)) + rest

    return CODE.sub(marked, body)


def prepare(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    if body := context.get("body"):
        context["body"] = with_lines(body)


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", prepare)

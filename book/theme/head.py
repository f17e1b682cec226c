"""A page's head: its description, scripts, and the policy on what it may load.

The policy lets a page load the book's own files and nothing else. It forbids scripts inside the
page, so nothing that a result or a link brought in can run. A page loads only the scripts that it
needs, after its text is painted.
"""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from .formulas import KATEX

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    # Formulas and pictures place their parts with style attributes.
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    # The stage that measures the reader's browser gives its worker a script in the page's memory.
    "worker-src": "blob:",
    "form-action": "'self'",
    "base-uri": "'none'",
}
# Relative to _static; after-paint.js loads them.
SCRIPTS = (
    "documentation_options.js",
    "doctools.js",
    "sphinx_highlight.js",
    "scripts/pydata-sphinx-theme.js",
)
# For pages whose text contains the mark.
SCRIPTS_WITH = {
    'class="highlight': ("clipboard.min.js", "copybutton.js"),
    "tag_sortable": ("sort-tables.js",),
    '<figure class="explorable figure-frame"': (
        "explorable-elements.js",
        "explorable-model.js",
        "explorable-geometry.js",
        "explorable-draw.js",
        "explorable-cursor.js",
        "figure-pin.js",
        "figure-view.js",
        "explorable.js",
    ),
}
# It says when the page is ready, so it comes last.
SHELL = "shell.js"
SEARCH_SCRIPTS = ("searchtools.js", "language_data.js", "../searchindex.js")
# Stages fill frames that are in the first screen of most pages, so they load when the page is
# parsed.
STAGE_SCRIPTS = re.compile(r'data-scripts="([^"]*)"')
BEFORE_STAGES = ("explorable-elements.js", "figure-pin.js", "figure-view.js")
# Fonts of the first screen, relative to _static.
FONTS = (
    "fonts/source-serif-4-latin-400-normal.woff2",
    "fonts/source-serif-4-latin-600-normal.woff2",
    "fonts/source-serif-4-latin-400-italic.woff2",  # else the first page shows another italic
)
FORMULA_FONTS = tuple(
    f"{KATEX.name}/fonts/KaTeX_{face}.woff2" for face in ("Main-Regular", "Math-Italic")
)
# Picture of a shared link: the first figure, by `python -m book.figures.index.readme_picture`.
CARD = "_static/card.png"
DESCRIPTION_LENGTH = 155

INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*type=\"application/json\")[^>]*>", re.I)
# Parsing a long page for one paragraph takes half a second.
QUESTION = re.compile(r'<div class="question">.*?</div>', re.S)
PARAGRAPH = re.compile(r"<p\b.*?</p>", re.S)
HANDLER = re.compile(r"<[a-z][^>]*\s(on[a-z]+)=[\"']", re.I)


def stage_scripts(body: str) -> list[str]:
    """The scripts of a page's stages, in the order in which they run."""
    named = " ".join(STAGE_SCRIPTS.findall(body)).split()
    places = (name if name.startswith("explorable-") else f"stages/{name}" for name in named)
    names = [*BEFORE_STAGES, *(f"{place}.js" for place in places)] if named else []
    return list(dict.fromkeys(names))


def scripts(page: str, body: str) -> list[str]:
    """All other scripts of a page, in the order in which they run."""
    extra = [name for mark, names in SCRIPTS_WITH.items() if mark in body for name in names]
    search = SEARCH_SCRIPTS if page == "search" else ()
    every = dict.fromkeys([*SCRIPTS, *extra, SHELL, *search])
    return [name for name in every if name not in stage_scripts(body)]


def description(body: str) -> str:
    """The chapter's question, or its first paragraph, cut at a word."""
    said = QUESTION.search(body) or PARAGRAPH.search(body)
    article = BeautifulSoup(said[0] if said else "", "html.parser")
    for hidden in article.select(".katex-mathml, .visually-hidden, .headerlink"):
        hidden.decompose()
    block = article.select_one(".question > p:not(.block-label)") or article.select_one("p")
    text = " ".join(block.get_text().split()) if block else ""
    if len(text) <= DESCRIPTION_LENGTH:
        return text
    return text[: DESCRIPTION_LENGTH + 1].rsplit(" ", 1)[0].rstrip(",.;:") + " …"


def tags(app: Sphinx, page: str, context: dict) -> str:
    """The page's meta elements: policy, description, and what a shared link shows."""
    policy = "; ".join(f"{kind} {sources}" for kind, sources in POLICY.items())
    title = BeautifulSoup(context.get("title") or "", "html.parser").get_text()
    text = description(context.get("body") or "") or app.config.project
    properties = {
        "og:type": "article",
        "og:site_name": app.config.project,
        "og:title": title or app.config.project,
        "og:description": text,
    }
    if base := app.config.html_baseurl:
        properties["og:url"] = f"{base.rstrip('/')}/{page}.html"
        properties["og:image"] = f"{base.rstrip('/')}/{CARD}"
        properties["og:image:alt"] = "The book's first figure: loss against training time"
    lines = [
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=True)}" />',
        f'<meta name="description" content="{escape(text)}" />',
        f'<meta name="twitter:card" content="{"summary_large_image" if base else "summary"}" />',
        *(f'<meta property="{name}" content="{escape(v)}" />' for name, v in properties.items()),
    ]
    return "\n    ".join(lines)


def prepare(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    body = context.get("body") or ""
    fonts = [*FONTS, *(FORMULA_FONTS if 'class="katex' in body else [])]
    context["first_fonts"] = " ".join(fonts)
    context["stage_scripts"] = stage_scripts(body)
    context["page_scripts"] = " ".join(scripts(page, body))
    context["metatags"] = f"{context.get('metatags', '')}\n    {tags(app, page, context)}"
    context["script_files"] = []


def check_policy(name: str, html: str) -> None:
    """Raise ExtensionError for a page with a script inside it, which its policy would stop."""
    if match := INLINE_SCRIPT.search(html) or HANDLER.search(html):
        raise ExtensionError(f"{name}: expected scripts in files only, got {match[0][:80]!r}")


def write_sitemap(app: Sphinx) -> None:
    """Write a list of the pages for search engines. They need full addresses, from BOOK_URL."""
    base = app.config.html_baseurl.rstrip("/")
    if not base:
        return
    places = "".join(
        f"<url><loc>{escape(f'{base}/{page}.html')}</loc></url>\n"
        for page in sorted(app.env.found_docs)
    )
    (Path(app.outdir) / "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{places}</urlset>\n',
        encoding="utf-8",
    )
    (Path(app.outdir) / "robots.txt").write_text(
        f"User-agent: *\nAllow: /\nSitemap: {base}/sitemap.xml\n", encoding="utf-8"
    )


def finish(app: Sphinx) -> None:
    for page in Path(app.outdir).rglob("*.html"):
        check_policy(page.name, page.read_text(encoding="utf-8"))
    write_sitemap(app)


def setup(app: Sphinx) -> None:
    if base := os.environ.get("BOOK_URL"):
        app.config.html_baseurl = base
    app.connect("html-page-context", prepare, priority=950)

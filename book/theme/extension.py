"""The Sphinx extension: everything that the book needs beyond Jupyter Book, without a network.

The book must open by double-click, offline. So this extension puts the plotting library, each
chapter's executed notebook and the cited results beside the pages. It removes parts of the theme
that need a network, or fail without one.
"""

from __future__ import annotations

import os
import re
import shutil
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from . import excerpts, head, icons, notebooks, previews
from .fonts import fit_fonts
from .styles import join_sheets

THEME = Path(__file__).resolve().parent
BOOK = THEME.parent
ROOT = BOOK.parent

EXTENSIONS = (
    "citations",
    "statements",
    "formulas",
    "unbroken",
    "cells",
    "directives",
    "stages",
    "apart",
    "head",
    "code_lines",
    "letters",
    "minutes",
    "rooms",
    "kernels",
    "reading",
)

# docutils marks the bibliography as a list whose members are not list items.
BIBLIOGRAPHY_ROLE = 'role="doc-biblioentry"'
# Without JavaScript the theme "auto" would be undefined.
THEME_UNKNOWN = ('data-theme="auto"', 'data-theme="light"')
RESULT_LINK = re.compile(r'href="((?:\.\./)*results/[^"#?]+\.json)')

# The icon library is half a megabyte compressed, for eight icons that icons.py draws instead.
UNUSED_ASSETS = (
    "design-tabs.js",
    "scripts/*.map",
    "scripts/bootstrap.*",
    "scripts/fontawesome.js*",
    "sphinx-design.min.css",
    "sphinx-thebe.*",
    "styles/*.map",
    "togglebutton.*",
    "vendor/fontawesome",
)


# The theme measures every code cell and table when the page opens, and after each change. Each time
# this lays out the whole page. shell.js does it when there is time.
THEME_SCRIPT = "scripts/pydata-sphinx-theme.js"
MEASURES_ALL = re.compile(
    r'(function \w+\(\)\{)const \w+=\(\)=>\{document\.querySelectorAll\(\["pre",'
    r"(?:(?!function ).)*?scrollWidth(?:(?!function ).)*?,\w+\(\)\}"
)


def kernel_environment() -> None:
    """Let every chapter import `lsa`, `experiments` and the book's own modules."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    # Tells figures to render for a page instead of a live notebook.
    os.environ["BOOK_STATIC"] = "1"


def header_links(app: Sphinx, page: str, pathto) -> list[dict]:
    """Links at the top of a page: its notebook; if published, the PDF and its source.

    A phone has no room for those that are `wide`.
    """
    links = []
    name = f"{Path(page).name}.ipynb"
    repository = os.environ.get("BOOK_REPOSITORY_URL", "").rstrip("/")
    if notebooks.is_notebook(app, page):
        links.append(
            {
                "href": pathto(f"{notebooks.FOLDER}/{name}", 1),
                "text": "Notebook",
                "title": "Download this chapter as an executed notebook (.ipynb)",
                "download": True,
            }
        )
        host, _, slug = repository.partition("github.com/")
        if slug:
            branch = os.environ.get("BOOK_PAGES_BRANCH", "gh-pages")
            links.append(
                {
                    "href": "https://colab.research.google.com/github/"
                    f"{slug}/blob/{branch}/{notebooks.FOLDER}/{name}",
                    "text": "Colab",
                    "title": "Open this chapter on Colab",
                    "wide": True,
                }
            )
    if repository:
        whole = {"href": pathto("book.pdf", 1), "text": "PDF", "title": "The whole book as a PDF"}
        links.append(whole)
        source = {"href": repository, "text": "Source", "title": "The repository", "wide": True}
        links.append(source)
    return links


def prepare_page(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    context["shell_links"] = header_links(app, page, context["pathto"])
    # The book's title is right above this entry of the contents.
    context["root_title"] = "The result"


def drop_thebe_config(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for node in list(doctree.findall(nodes.raw)):
        text = node.astext()
        if "x-thebe-config" in text or "kernelName =" in text:
            node.parent.remove(node)


def publish_stages(app: Sphinx) -> None:
    """Copy the stages' scripts to a folder beside the page's own scripts."""
    if app.builder.format == "html":
        shutil.copytree(
            BOOK / "stages", Path(app.outdir) / "_static" / "stages", dirs_exist_ok=True
        )


def publish_results(app: Sphinx, page: Path, html: str) -> None:
    """Copy the result files that a page links to, so that its sources open offline."""
    site = Path(app.outdir).resolve()
    for link in set(RESULT_LINK.findall(html)):
        target = (page.parent / unquote(link)).resolve()
        if not target.is_relative_to(site / "results"):
            raise ExtensionError(f"{page.name}: {link} does not lead to the site's results/")
        source = ROOT / target.relative_to(site)
        if not source.is_file():
            raise ExtensionError(f"{page.name} links to {link}, which is not in results/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def drop_left_pages(app: Sphinx) -> None:
    """Remove pages of older builds: those of another chapter, or of one that no longer exists.

    Their links may be broken, and nothing in this build checks them.
    """
    site = Path(app.outdir)
    for page in (site / "book").rglob("*.html"):
        if page.relative_to(site).with_suffix("").as_posix() not in app.env.found_docs:
            page.unlink()


def drop_unused_assets(app: Sphinx) -> None:
    static = Path(app.outdir) / "_static"
    for pattern in UNUSED_ASSETS:
        for path in static.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def calm_theme(app: Sphinx) -> None:
    """Remove from the theme's script the code that MEASURES_ALL finds."""
    script = Path(app.outdir) / "_static" / THEME_SCRIPT
    text = MEASURES_ALL.sub(r"\1}", script.read_text(encoding="utf-8"))
    if "scrollWidth" in text:
        raise ExtensionError(f"{THEME_SCRIPT}: expected the theme's addTabStops, found other code")
    script.write_text(text, encoding="utf-8")


def finish(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    notebooks.publish_notebooks(app)
    drop_left_pages(app)
    for page in Path(app.outdir).rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        publish_results(app, page, html)
        html = icons.draw_icons(html)
        html = html.replace(BIBLIOGRAPHY_ROLE, 'role="listitem"').replace(*THEME_UNKNOWN)
        page.write_text(html, encoding="utf-8")
    drop_unused_assets(app)
    calm_theme(app)
    join_sheets(Path(app.outdir))
    fit_fonts(Path(app.outdir))
    previews.add_previews(app)
    excerpts.publish(app)
    head.finish(app)


def setup(app: Sphinx) -> dict:
    kernel_environment()
    for name in EXTENSIONS:
        import_module(f".{name}", __package__).setup(app)
    # Before the theme's own templates, which the last extension put first.
    app.config.templates_path.insert(0, str(THEME / "templates"))
    room = BOOK / "explorable"
    engine = sorted([*room.glob("explorable*.[jc]s*"), *room.glob("figure-*.js")])
    plotly = THEME / "vendor" / "plotly-basic-4.1.1" / "plotly-basic.min.js"
    app.config.html_static_path += [str(path) for path in (plotly, *engine)]
    app.connect("builder-inited", publish_stages)
    app.connect("doctree-resolved", drop_thebe_config, priority=900)
    app.connect("html-page-context", prepare_page, priority=900)
    app.connect("build-finished", finish, priority=900)
    # The version of what minutes.py keeps with each page.
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}

"""Each chapter as a notebook: the executed code, and the prose as on the page.

A chapter's source is MyST. Plain Jupyter, Colab or an editor would show its roles and directives,
and names in place of numbers. So the prose is taken from the finished page, where these are
resolved, and written as plain Markdown.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

FOLDER = "_notebooks"
FOLDED = {"hide-cell", "hide-input", "remove-input", "remove-cell"}
QUOTED = {"question", "proof"}
LABELS = {"block-label", "admonition-title", "stage-title"}
SILENT = {"visually-hidden", "stage-note", "stage-still", "headerlink"}


class Prose(MarkdownConverter):
    """A page's HTML as Markdown. `page` is its path in the site; `chapters` are notebooks.

    site: address of the other pages from a notebook, ending in a slash.
    """

    def __init__(
        self, page: str, chapters: set[str], macros: Mapping[str, str], site: str = "../"
    ) -> None:
        super().__init__(heading_style="ATX", bullets="-", code_language_callback=_language)
        self.page, self.chapters, self.macros, self.site = page, chapters, macros, site

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Links to chapters lead to notebooks; other links without a target become their words."""
        if _classes(el) & SILENT:
            return ""
        parts = urlsplit(el["href"])
        if not (parts.scheme or parts.path):
            return text
        if not parts.scheme:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(self.page), parts.path))
            chapter = target.removesuffix(".html")
            el["href"] = (
                f"{posixpath.basename(chapter)}.ipynb"
                if chapter in self.chapters
                else self.site + parts._replace(path=target).geturl()
            )
        el["title"] = ""
        return super().convert_a(el, text, parent_tags)

    def convert_span(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if _classes(el) & SILENT:
            return ""
        if "math" not in _classes(el):
            return text
        latex = self._latex(_source(el))
        if parent_tags & {"td", "th"}:  # where a bar would begin the next cell
            latex = latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
        before, after = _beside(el)
        return f"{before}${latex}${after}"

    def convert_div(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        classes = _classes(el)
        if "math" in classes:
            return self._displayed(el)
        if "data-stage" in el.attrs:
            steps = f"Its steps are on [the page]({self.site}{self.page}#{el['id']})."
            return self._quoted(f"{text.strip()}\n\n*{steps}*")
        if not text.strip():
            return ""
        return self._quoted(text) if classes & QUOTED else f"\n\n{text.strip()}\n\n"

    def convert_aside(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return self._quoted(text)

    def convert_p(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if _classes(el) & SILENT:
            return ""
        if _classes(el) & LABELS:
            text = f"**{' '.join(text.split())}**"
        return super().convert_p(el, text, parent_tags)

    def convert_dl(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return f"\n\n{text.strip()}\n\n"

    def convert_dt(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return f"\n- **{text.strip()}**: "

    def convert_dd(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return text.strip().replace("\n", "\n  ")

    def convert_details(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return f"\n\n<details>\n{text.strip()}\n\n</details>\n\n"

    def convert_summary(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return f"<summary>{text.strip()}</summary>\n\n"

    def _displayed(self, el: Tag) -> str:
        """A formula on one line: in a quotation, the marks of further lines would enter it."""
        number = el.select_one(".eqno")
        tag = f" \\tag{{{number.contents[0].strip('()')}}}" if number else ""
        latex = " ".join(self._latex(_source(el)).split())
        return f"\n\n$$ {latex}{tag} $$\n\n"

    def _latex(self, text: str) -> str:
        """LaTeX without the book's macros, and without characters that are markup in HTML."""
        for name, meaning in self.macros.items():
            text = re.sub(rf"\\{name}(?![A-Za-z])", lambda _, said=meaning: said, text)
        return text.strip().replace("<", r"\lt ").replace(">", r"\gt ")

    @staticmethod
    def _quoted(text: str) -> str:
        lines = (f"> {line}".rstrip() for line in text.strip().splitlines())
        return "\n\n" + "\n".join(lines) + "\n\n"


def _language(pre: Tag) -> str:
    """Language of a code block that is not a cell, from a class of the element around it."""
    around = pre.find_parent(class_=re.compile("^highlight-"))
    said = next((c for c in _classes(around) if c.startswith("highlight-")), "") if around else ""
    name = said.removeprefix("highlight-").replace("ipython3", "python")
    return "" if name in ("default", "none") else name


def _source(formula: Tag) -> str:
    """The LaTeX source of a formula on the page."""
    return formula.select_one('annotation[encoding="application/x-tex"]').get_text()


def _beside(formula: Tag) -> tuple[str, str]:
    """The punctuation before and after a formula that stays with it, from unbroken.py."""
    drawn = formula.select_one(".katex")
    before, after = reversed([*drawn.previous_siblings]), drawn.next_siblings
    return "".join(one.get_text() for one in before), "".join(one.get_text() for one in after)


def _classes(el: Tag) -> set[str]:
    return set(el.get("class") or ())


def passages(article: Tag) -> list[str]:
    """The HTML before, between and after the code cells that a page shows."""
    found = [""]
    for node in _flattened(article):
        if isinstance(node, Tag) and "cell" in _classes(node):
            found.append("")
        else:
            found[-1] += str(node)
    return found


def _flattened(node: Tag) -> Iterator:
    for child in node.children:
        if isinstance(child, Tag) and child.name == "section":
            yield from _flattened(child)
        else:
            yield child


def with_prose(notebook, html: str, prose: Prose):
    """The notebook with its Markdown cells replaced by the page's prose."""
    article = BeautifulSoup(html, "html.parser").select_one("article.bd-article")
    said = [prose.convert(passage).strip() for passage in passages(article)]
    shown = [c for c in notebook.cells if c.cell_type == "code" and not _removed(c)]
    if len(said) != len(shown) + 1:
        raise ExtensionError(
            f"{prose.page}: {len(said) - 1} code cells on the page, {len(shown)} in its notebook"
        )
    words = iter(said)
    cells = _markdown(next(words), 0)
    for cell in (c for c in notebook.cells if c.cell_type == "code"):
        if FOLDED & set(cell.metadata.get("tags", ())):
            whole = "hide-cell" in cell.metadata["tags"]  # the answer to an exercise
            cell.metadata["jupyter"] = {"source_hidden": True, "outputs_hidden": whole}
        cell.outputs = [part for output in cell.outputs for part in pictured(output, prose)]
        cells.append(cell)
        if not _removed(cell):
            cells += _markdown(next(words), len(cells))
    notebook.cells = cells
    return notebook


def pictured(output, prose: Prose) -> list:
    """A figure as its picture with the caption below, since the page's HTML would be stripped."""
    data = output.get("data", {})
    if "image/png" not in data or "text/html" not in data:
        return [output]
    figure = BeautifulSoup(data["text/html"], "html.parser")
    caption = figure.select(".explorable-message, figcaption > p:not(.figure-provenance)")
    alternative = {"image/png": {"alt": figure.select_one('[role="img"]')["aria-label"]}}
    said = {
        "text/markdown": " ".join(prose.convert(str(part)).strip() for part in caption),
        "text/plain": " ".join(part.get_text() for part in caption),
    }
    shown = {kind: data[kind] for kind in ("image/png", "text/plain")}
    return [
        nbformat.v4.new_output("display_data", data=shown, metadata=alternative),
        nbformat.v4.new_output("display_data", data=said),
    ]


def _removed(cell) -> bool:
    return "remove-cell" in cell.metadata.get("tags", ())


def _markdown(text: str, place: int) -> list:
    return [nbformat.v4.new_markdown_cell(text, id=f"prose-{place}")] if text else []


def is_notebook(app: Sphinx, page: str) -> bool:
    return "kernelspec" in app.env.metadata.get(page, {})


def publish_notebooks(app: Sphinx) -> None:
    """Put each chapter's executed notebook next to the pages."""
    site = Path(app.outdir)
    target = site / FOLDER
    target.mkdir(exist_ok=True)
    repository = os.environ.get("BOOK_REPOSITORY_URL", "").rstrip("/")
    chapters = {page for page in app.env.found_docs if is_notebook(app, page)}
    for page in chapters:
        executed = site.parent / "jupyter_execute" / f"{page}.ipynb"
        prose = Prose(
            f"{page}.html", chapters, app.config.formula_macros, app.config.html_baseurl or "../"
        )
        html = (site / f"{page}.html").read_text(encoding="utf-8")
        notebook = with_prose(nbformat.read(executed, as_version=4), html, prose)
        notebook.cells.insert(0, checkout_cell(repository) if repository else looking_cell())
        nbformat.write(notebook, target / f"{Path(page).name}.ipynb")


def checkout_cell(repository: str):
    """A first cell that downloads the book's code if the notebook is alone."""
    folder = repository.rsplit("/", 1)[-1].removesuffix(".git")
    source = (
        "# Only where this notebook stands alone, on Colab for instance: fetch its code.\n"
        "import importlib.util, os, subprocess, sys\n"
        'if importlib.util.find_spec("lsa") is None:\n'
        f'    subprocess.run(["git", "clone", "--depth=1", "{repository}"], check=True)\n'
        f'    sys.path[:0] = [os.path.abspath("{folder}"), os.path.abspath("{folder}/book")]\n'
        f'    os.chdir("{folder}/book")'
    )
    return nbformat.v4.new_code_cell(source)


def looking_cell():
    """A first cell that says what to do if the notebook is alone."""
    source = (
        "# Stops with one line where this notebook stands alone, without the book's code.\n"
        "import importlib.util\n"
        'if not all(importlib.util.find_spec(name) for name in ("lsa", "book")):\n'
        "    raise ModuleNotFoundError(\n"
        '        "lsa, book: expected beside this notebook; in the project, run `make lab`"\n'
        "    )"
    )
    cell = nbformat.v4.new_code_cell(source, id="looking")
    cell.metadata["jupyter"] = {"source_hidden": True}
    return cell

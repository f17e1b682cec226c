"""A chapter as a notebook: its page's words as plain Markdown, its cells as they were executed."""

from types import SimpleNamespace

import nbformat
import pytest
from sphinx.errors import ExtensionError

from book.theme import formulas, notebooks

CHAPTERS = {"book/index", "book/sampling"}
MACROS = {"Dist": "\\mathrm{Dist}\\,", "R": "\\mathbb{R}"}


def said(html: str, *site: str) -> str:
    return notebooks.Prose("book/sampling.html", CHAPTERS, MACROS, *site).convert(html).strip()


def formula(tex: str, display: bool = False) -> str:
    return formulas.render(tex, MACROS, display)


def test_other_pages_are_found_where_the_site_is():
    link = "<p><a href='notation.html'>shapes</a></p>"
    there = "https://example.org/book/"
    assert said(link, there) == "[shapes](https://example.org/book/book/notation.html)"


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<h2>Modes<a class='headerlink' href='#modes'>#</a></h2>", "## Modes"),
        ("<p>In <span class='math'>" + formula(r"\R^d") + "</span>.</p>", r"In $\mathbb{R}^d$."),
        (f"<p><span class='math'>{formula('i < j_k')}</span></p>", r"$i \lt  j_k$"),
        ("<p><a class='reference internal' href='index.html#a'>one</a></p>", "[one](index.ipynb)"),
        (
            "<p><a href='notation.html#shapes'>shapes</a></p>",
            "[shapes](../book/notation.html#shapes)",
        ),
        ("<p><a href='https://example.org/x'>out</a></p>", "[out](https://example.org/x)"),
        ("<p><a href='#equation-roof'>(6.1)</a></p>", "(6.1)"),
        (
            "<p>Count in <a class='figure-view' href='#headline:x=update'>updates"
            "<span class='visually-hidden'> (sets the figure)</span></a>.</p>",
            "Count in updates.",
        ),
        (
            "<dl class='simple myst'><dt>tape</dt><dd><p>All of it.</p></dd>"
            "<dt>state</dt><dd><p>Some.</p></dd></dl>",
            "- **tape**: All of it.\n- **state**: Some.",
        ),
        (
            "<div class='highlight-bash notranslate'><div class='highlight'><pre>make book\n</pre>"
            "</div></div>",
            "```bash\nmake book\n```",
        ),
        ("<aside class='margin-note'><p>Beside.</p><p>Two.</p></aside>", "> Beside.\n>\n> Two."),
        (
            "<p>Shape <code class='docutils literal'><span class='pre'>[K,</span> "
            "<span class='pre'>V]</span></code></p>",
            "Shape `[K, V]`",
        ),
        (
            "<div class='proof definition admonition'><p class='admonition-title'>"
            "<span class='caption-number'>Definition 4.1 </span> (Tape)</p>"
            "<div class='statement-body'><p>A machine.</p></div></div>",
            "> **Definition 4.1 (Tape)**\n>\n> A machine.",
        ),
    ],
)
def test_what_the_page_says_in_plain_markdown(html, markdown):
    assert said(html) == markdown


@pytest.mark.parametrize(
    "inside", [formulas.bound(formula("a = b"), "(", "),"), f"({formula('a = b')}),"]
)
def test_a_formula_keeps_its_punctuation(inside):
    assert said(f"<p>So <span class='math'>{inside}</span> or c.</p>") == "So ($a = b$), or c."


def test_a_formula_stays_on_one_line_with_its_number():
    html = (
        '<div class="math notranslate" id="equation-a"><span class="eqno">(6.1)'
        '<a class="headerlink" href="#equation-a">#</a></span>'
        + formula("\\begin{aligned}\na &= b \\\\\nc &= \\Dist X\n\\end{aligned}", display=True)
        + "</div>"
    )
    line = r"$$ \begin{aligned} a &= b \\ c &= \mathrm{Dist}\, X \end{aligned} \tag{6.1} $$"
    assert said(html) == line
    # Quoted too: the mark of a quoted line inside a formula would be part of it.
    assert said(f"<div class='proof'>{html}</div>") == f"> {line}"


def test_a_stroke_in_a_table_does_not_end_its_cell():
    cell = formula(r"|Z|^t \| x")
    row = f"<td><p><span class='math'>{cell}</span></p></td><td>b</td>"
    head = "<thead><tr><th>a</th><th>b</th></tr></thead>"
    table = f"<table>{head}<tbody><tr>{row}</tr></tbody></table>"
    assert said(table).splitlines()[-1] == r"| $\vert Z\vert ^t \Vert  x$ | b |"


def test_an_answer_stays_folded_and_a_stage_says_where_it_is():
    folded = (
        "<details class='folded'><summary>\nReveal</summary><div class='folded-body'>"
        "<p>Up, by <strong>half</strong>.</p></div></details>"
    )
    text = said(folded)
    assert text.startswith("<details>\n<summary>Reveal</summary>")
    assert "\n\nUp, by **half**.\n" in text
    assert text.endswith("\n\n</details>")
    stage = (
        "<div class='stage-frame' data-stage='tree' id='tree'><p class='stage-title'>The tree"
        "</p><noscript><p class='stage-note'>no</p></noscript><div class='stage'></div>"
        "<div class='stage-caption'><p>Every text.</p></div></div>"
        "<script defer src='x.js'></script>"
    )
    assert said(stage) == (
        "> **The tree**\n>\n> Every text.\n>\n"
        "> *Its steps are on [the page](../book/sampling.html#tree).*"
    )


def code(source: str, *tags: str):
    return nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)} if tags else {})


def page(*parts: str) -> str:
    return f"<html><article class='bd-article'><section>{''.join(parts)}</section></article></html>"


CELL = "<div class='cell docutils container'>in and out</div>"


def test_code_keeps_its_order_and_prose_its_place():
    cells = [code("a", "remove-cell"), code("b"), code("c", "remove-cell"), code("d", "hide-input")]
    cells.append(code("e", "hide-cell"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("{glue}`x`"), *cells])
    html = page(
        "<h1>Title</h1>", CELL, "<p>Between.</p><section><p>And.</p>", CELL, CELL, "</section>"
    )
    prose = notebooks.Prose("book/sampling.html", CHAPTERS, {})
    done = notebooks.with_prose(notebook, html, prose)
    sources = [cell.source for cell in done.cells]
    assert sources == ["# Title", "a", "b", "Between.\n\nAnd.", "c", "d", "e"]
    folded = [bool(cell.metadata.get("jupyter")) for cell in done.cells]
    assert folded == [False, True, False, False, True, True, True]
    d, e = (cell.metadata["jupyter"]["outputs_hidden"] for cell in done.cells[-2:])
    assert (d, e) == (False, True), "only an exercise's answer hides its output"
    nbformat.validate(done)


def test_a_figure_is_shown_as_its_picture_with_its_caption():
    figure = (
        "<figure class='explorable'><p class='explorable-message'><b>It falls.</b></p>"
        "<div role='img' aria-label='A falling line.'></div><figcaption><p>To zero.</p>"
        "<p class='figure-provenance'>One thread</p></figcaption></figure>"
    )
    data = {"text/html": figure, "image/png": "aGk=", "text/plain": "Explorable('x')"}
    cell = code("figure()")
    cell.outputs = [
        nbformat.v4.new_output("execute_result", data=data, execution_count=1),
        nbformat.v4.new_output("stream", text="said"),
    ]
    notebook = nbformat.v4.new_notebook(cells=[cell])
    prose = notebooks.Prose("book/sampling.html", CHAPTERS, {})
    picture, caption, stream = notebooks.with_prose(notebook, page(CELL), prose).cells[0].outputs
    assert picture.data == {"image/png": "aGk=", "text/plain": "Explorable('x')"}
    assert picture.metadata == {"image/png": {"alt": "A falling line."}}
    assert caption.data["text/markdown"] == "**It falls.** To zero."
    assert stream.text == "said"
    nbformat.validate(notebook)


def test_a_notebook_alone_says_what_to_do(monkeypatch):
    source = notebooks.looking_cell().source
    exec(compile(source, "first cell", "exec"), {})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="in the project, run `make lab`"):
        exec(compile(source, "first cell", "exec"), {})


def test_a_page_with_other_cells_than_its_notebook_is_an_error():
    notebook = nbformat.v4.new_notebook(cells=[code("a"), code("b")])
    prose = notebooks.Prose("book/sampling.html", CHAPTERS, {})
    with pytest.raises(ExtensionError, match=r"sampling\.html: 1 code cells on the page, 2"):
        notebooks.with_prose(notebook, page(CELL), prose)


def test_published_notebooks_fetch_their_code_where_they_stand_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_REPOSITORY_URL", "https://github.com/someone/book/")
    site, executed = tmp_path / "html", tmp_path / "jupyter_execute" / "book"
    (site / "book").mkdir(parents=True)
    executed.mkdir(parents=True)
    (site / "book" / "sampling.html").write_text(page("<h1>Sampling</h1>"), encoding="utf-8")
    nbformat.write(nbformat.v4.new_notebook(), executed / "sampling.ipynb")
    notebooks.publish_notebooks(
        SimpleNamespace(
            outdir=site,
            config=SimpleNamespace(formula_macros={}, html_baseurl=""),
            env=SimpleNamespace(
                metadata={"book/sampling": {"kernelspec": "{}"}}, found_docs={"book/sampling"}
            ),
        )
    )
    published = nbformat.read(site / "_notebooks" / "sampling.ipynb", as_version=4)
    nbformat.validate(published)
    first, words = published.cells
    assert '"git", "clone"' in first.source
    compile(first.source, "first cell", "exec")
    assert words.source == "# Sampling"

"""Long lines of code are elements, and nothing else of a page changes."""

import re

from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from book.theme.code_lines import FITS, with_lines

MARK = re.compile(r'<span class="code-line" style="--start:\d+">(.*?\n)</span>')
LONG = "x" * (FITS + 1)

code = st.text("ab 1\"'#&<>=\n\\({", max_size=120)


def block(source: str, around: str = "highlight-ipython3 notranslate") -> str:
    return f'<div class="{around}">{highlight(source, PythonLexer(), HtmlFormatter())}</div>'


@given(code, code)
def test_every_long_line_is_an_element_and_nothing_else_changes(first, second):
    body = f"<p>a</p>{block(first)}<p>b</p>{block(second)}"
    marked = with_lines(body)
    assert MARK.sub(r"\1", marked) == body
    soup = BeautifulSoup(marked, "html.parser")
    lines = [line for pre in soup.select("pre") for line in pre.get_text().split("\n")]
    long = [line for line in lines if len(line) > FITS]
    assert [one.get_text() for one in soup.select(".code-line")] == [f"{line}\n" for line in long]


def test_an_element_says_where_its_line_starts():
    marked = with_lines(block(f"if x:\n    {LONG}\n{LONG}\n        y\n"))
    assert re.findall(r"--start:(\d+)", marked) == ["4", "0"]


def test_what_a_cell_printed_keeps_its_lines():
    printed = block(LONG, "output stream highlight-myst-ansi notranslate")
    assert with_lines(printed) == printed
    both = with_lines(f"{block(LONG)}{printed}<div class='output text_html'></div>{block(LONG)}")
    assert len(MARK.findall(both)) == 2
    assert printed in both

r"""Formulas, set by KaTeX while the book is built.

A page then has its formulas as text and MathML. No script typesets them, nothing moves meanwhile,
and they are readable without JavaScript. KaTeX runs in an embedded V8, so that building the book
needs no Node. An unknown command fails the build with a line that names the formula.
"""

from __future__ import annotations

import json
import re
import shutil
from functools import cache
from html import escape
from pathlib import Path

from docutils import nodes
from py_mini_racer import JSEvalException
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number

from ..javascript import call

KATEX = Path(__file__).resolve().parent / "vendor" / "katex-0.19.1"
PUBLISHED = f"_static/{KATEX.name}"
ROWS = r"\\"
PART = '<span class="katex-base">'  # parts of a formula, between which a line may be broken


@cache
def _rendered(tex: str, display: bool, macros: str) -> str:
    options = {
        "displayMode": display,
        "macros": json.loads(macros),
        "strict": "error",  # nothing that LaTeX would refuse, or set differently
        "output": "htmlAndMathml",
    }
    try:
        return call(KATEX / "katex.min.js", "katex.renderToString", tex, options)
    except JSEvalException as error:
        reason = re.search(r"KaTeX parse error: .*", str(error))
        why = reason[0] if reason else str(error)
        raise ExtensionError(f"formula: expected what KaTeX can set, got {tex!r}: {why}") from None


def render(tex: str, macros: dict[str, str], display: bool = False) -> str:
    r"""HTML of the formula `tex`; `macros` maps a name without its backslash to LaTeX.

    Raises ExtensionError naming the formula if KaTeX does not understand it.
    """
    named = {f"\\{name}": meaning for name, meaning in macros.items()}
    return _rendered(tex.strip(), display, json.dumps(named, sort_keys=True))


def rows_aligned(tex: str) -> str:
    r"""Put rows, and the `&` that align them, into an environment, which they need."""
    parts = [part.strip() for part in tex.split("\n\n") if part.strip()]
    rows = [rf"\begin{{split}}{part}\end{{split}}" if ROWS in part else part for part in parts]
    return rows[0] if len(rows) == 1 else rf"\begin{{gathered}}{ROWS.join(rows)}\end{{gathered}}"


def bound(formula: str, before: str, after: str) -> str:
    """The HTML of a formula that may be broken, with the punctuation that stays at its ends.

    The parts display the punctuation; for screen readers, search and copying it is also beside the
    formula.
    """
    if after:
        at = formula.rindex(PART) + len(PART) - 1
        formula = f'{formula[:at]} data-after="{escape(after)}"{formula[at:]}'
    if before:
        at = formula.index(PART) + len(PART) - 1
        formula = f'{formula[:at]} data-before="{escape(before)}"{formula[at:]}'
    return f"{_unseen(before)}{formula}{_unseen(after)}"


def _unseen(mark: str) -> str:
    return f'<span class="visually-hidden">{escape(mark)}</span>' if mark else ""


def visit_inline(translator, node: nodes.math) -> None:
    formula = render(node.astext(), translator.config.formula_macros)
    before, after = node.get("before", ""), node.get("after", "")
    classes = "math notranslate nohighlight"
    if (before or after) and formula.count(PART) == 1:
        formula, classes = f"{escape(before)}{formula}{escape(after)}", f"{classes} unbroken"
    elif before or after:
        formula = bound(formula, before, after)
    opening = translator.starttag(node, "span", "", CLASS=classes)
    translator.body.append(f"{opening}{formula}</span>")
    raise nodes.SkipNode


def visit_displayed(translator, node: nodes.math_block) -> None:
    tex = node.astext() if node["nowrap"] else rows_aligned(node.astext())
    # The book numbers formulas itself, beside them.
    tex = re.sub(r"\\(begin|end)\{(align|gather|equation|alignat)\}", r"\\\1{\2*}", tex)
    body = translator.body
    body.append(translator.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        number = escape(str(get_node_equation_number(translator, node)))
        body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "Link to this equation")
        body.append("</span>")
    formula = render(tex, translator.config.formula_macros, display=True)
    body.append(f"{formula}</div>\n")
    raise nodes.SkipNode


def publish(app: Sphinx) -> None:
    """Copy KaTeX's styles and fonts beside the page's own; its script is not published."""
    if app.builder.format == "html":
        shutil.copytree(
            KATEX,
            Path(app.outdir) / PUBLISHED,
            ignore=shutil.ignore_patterns("*.js"),
            dirs_exist_ok=True,
        )


def setup(app: Sphinx) -> None:
    app.add_config_value("formula_macros", {}, "html", types=[dict])
    app.add_html_math_renderer("katex", (visit_inline, None), (visit_displayed, None))
    app.config.html_math_renderer = "katex"
    app.connect("builder-inited", publish)

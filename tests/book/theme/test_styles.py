"""One sheet for all pages, without what none of them uses."""

import re
from pathlib import Path

import pytest

from book.theme.styles import join_sheets, less_unread, needed

BOOK = Path(__file__).resolve().parents[3] / "book"
SHEETS = [path for path in BOOK.rglob("*.css") if "vendor" not in path.parts]


@pytest.mark.parametrize(
    ("css", "left"),
    [
        (".a{x:1}.b{x:2}", ".a{x:1}"),
        ("#b p{x:1}#a.a{x:1}", "#a.a{x:1}"),
        (".b, p .a > i, p{x:1}", "p .a > i,p{x:1}"),
        ("p:not(.b){x:1}", "p:not(.b){x:1}"),
        ("p:is(.b, .a){x:1}", "p:is(.b, .a){x:1}"),
        ("@media print{.b{x:1}}", ""),
        ("@media print{.b{x:1}.a{x:2}}", "@media print{.a{x:2}}"),
        ("@font-face{src:url(a;b{c)}", "@font-face{src:url(a;b{c)}"),
        ("/* } .a{ */.a::after{content:'}'}", ".a::after{content:'}'}"),
        ('@charset "utf-8";.a{x:1}', '@charset "utf-8";\n.a{x:1}'),
    ],
)
def test_a_rule_is_kept_if_a_page_can_use_it(css, left):
    assert needed(css, {"a"}) == left


@pytest.mark.parametrize(
    ("css", "left"),
    [
        ("p{--a:1;--b:2;x:var(--a)}", "p{--a:1;x:var(--a)}"),
        ("p{--a:var(--b);--b:var(--c);--c:1;x:1}", "p{x:1}"),
        ("""p{--b:"};";--c:'{';--d:url(a;b);--named:1}""", "p{--named:1}"),
        ("p{--b:1}@media print{.a{--b:1;x:1}}", "@media print{.a{x:1}}"),
        ("p{--b:1;--b-c:1;--d:1;x:var( --b-c , var(--d))}",
         "p{--b-c:1;--d:1;x:var( --b-c , var(--d))}"),
        ("@keyframes m{to{x:1}}@keyframes n{to{x:1}}p{animation:1s m}",
         "@keyframes m{to{x:1}}\np{animation:1s m}"),
        ("p{x:1}.a--b:hover{x:1}", "p{x:1}\n.a--b:hover{x:1}"),
    ],
)  # fmt: skip
def test_variables_and_movements_that_nothing_reads_are_left_out(css, left):
    assert less_unread(css, {"--named"}) == left


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.name)
def test_every_bracket_of_a_sheet_is_closed(path):
    """What is left open swallows the rules that follow, and no browser says so."""
    css = re.sub(r'/\*.*?\*/|"[^"]*"', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    depth = 0
    for line in css.splitlines():
        assert depth == 0 or line[:1] in ("", " ", "}"), f"before {line!r}"
        depth += line.count("{") - line.count("}")
    assert depth == 0


def test_joined_sheets_keep_their_order_and_find_their_files(tmp_path):
    static = tmp_path / "_static"
    for name, css in {
        "styles/pydata-sphinx-theme.css": "p{background:url('../images/a.png')}",
        "katex-1.0.0/katex.min.css": "@font-face{font-display:optional;src:url(fonts/k.woff2)}",
        "book.css": "p{background:url(data:image/svg+xml;base64,AAAA)} .unused{x:1} .named{x:1}",
    }.items():
        (static / name).parent.mkdir(parents=True, exist_ok=True)
        (static / name).write_text(css)
    (static / "shell.js").write_text("node.className = 'named'")
    (static / "left.js").write_text("node.className = 'unused'")  # by an older build
    (tmp_path / "a.html").write_text(
        '<p class="text"><script src="_static/first.js?v=1" data-scripts="second.js shell.js">'
    )
    join_sheets(tmp_path)
    assert (static / "page.css").read_text().splitlines() == [
        'p{background:url("images/a.png")}',
        '@font-face{font-display:optional;src:url("katex-1.0.0/fonts/k.woff2")}',
        "p{background:url(data:image/svg+xml;base64,AAAA)}",
        ".named{x:1}",
    ]
    at_hand = (static / "fonts-at-hand.css").read_text()
    assert at_hand == '@font-face{font-display:swap;src:url("katex-1.0.0/fonts/k.woff2")}'

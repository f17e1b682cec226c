"""The words that a search from a file takes its excerpts from."""

from book.theme.excerpts import words


def test_words_keep_their_sections_and_nothing_else():
    html = """<html><nav>no</nav><article class="bd-article"><section id="a"><h1>A<a
    class="headerlink">#</a></h1><p>One <b>state</b> &lt; two, <span class="katex"><span
    class="katex-mathml"><math><mi>φ</mi><annotation encoding="application/x-tex">\\phi</annotation>
    </math></span><span class="katex-html">φ</span></span>.</p><script>no()</script><svg><text>no
    </text></svg><section id="b"><p>Of b.</p></section></section></article></html>"""
    assert words(html) == (
        '<div role="main"><section id="a">A One state &lt; two, φ . <section id="b">'
        "Of b. </section></section></div>"
    )
    assert words("<html></html>") == ""

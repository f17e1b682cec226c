"""A chapter built alone, in a folder where another was built before."""

from types import SimpleNamespace

from book.theme import extension


def test_a_page_of_an_older_build_is_removed(tmp_path):
    for name in ("book/new.html", "book/old.html", "_static/macros.html", "index.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    app = SimpleNamespace(outdir=tmp_path, env=SimpleNamespace(found_docs={"book/new"}))
    extension.drop_left_pages(app)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html")}
    assert left == {"book/new.html", "_static/macros.html", "index.html"}

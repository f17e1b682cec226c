"""The theme's script without what would lay out a whole page each time that it changes."""

from pathlib import Path

import pydata_sphinx_theme
import pytest
from sphinx.errors import ExtensionError

from book.theme.extension import THEME_SCRIPT, calm_theme

INSTALLED = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static"


class App:
    def __init__(self, folder, text):
        self.outdir = folder
        self.script = folder / "_static" / THEME_SCRIPT
        self.script.parent.mkdir(parents=True)
        self.script.write_text(text, encoding="utf-8")


def test_nothing_of_the_theme_measures_the_page(tmp_path):
    whole = (INSTALLED / THEME_SCRIPT).read_text(encoding="utf-8")
    app = App(tmp_path, whole)
    calm_theme(app)
    left = app.script.read_text(encoding="utf-8")
    assert "scrollWidth" in whole and "scrollWidth" not in left
    assert len(whole) - len(left) < 500 and left.count("{") == left.count("}")
    calm_theme(app)  # a build in the same folder may find the script as it left it
    assert app.script.read_text(encoding="utf-8") == left


def test_another_theme_is_noticed(tmp_path):
    with pytest.raises(ExtensionError, match="expected the theme's addTabStops"):
        calm_theme(App(tmp_path, "const wide=e=>e.scrollWidth>e.clientWidth"))

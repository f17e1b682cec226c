"""An Explorable in a notebook: the page's HTML and scripts in a cell's output.

anywidget carries them into JupyterLab, VS Code or Colab, without any other host. The scripts handle
controls, as on the page; "this computer" joins the stored curves as soon as it is measured.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

import anywidget
import traitlets

from . import page, palette

HERE = Path(__file__).parent
PLOTLY = HERE.parent / "theme" / "vendor" / "plotly-basic-4.1.1" / "plotly-basic.min.js"
# The page's scripts that a figure needs, without those for links in the text.
SCRIPTS = (
    "explorable-elements",
    "explorable-model",
    "explorable-geometry",
    "explorable-draw",
    "explorable-cursor",
    "explorable",
)
# Rules for a whole page are applied to the figure only.
ROOT = ".explorable-notebook"
WHOLE_PAGE = ((":root", ROOT), ('html[data-theme="dark"]', f'{ROOT}[data-theme="dark"]'))


def module():
    """The JavaScript module: the page's scripts, run once for all figures, and `notebook.js`."""
    engine = "\n".join(_read(f"{name}.js") for name in SCRIPTS)
    digest = sha256(engine.encode()).hexdigest()[:16]
    once = f'if (window.Explorables?.digest !== "{digest}") {{\n{engine}\n'
    return f'{once}window.Explorables.digest = "{digest}";\n}}\n{_read("notebook.js")}'


def style():
    """The page's colours and the figure's rules, restricted to the figure."""
    css = "\n".join(
        [palette.PALETTE_CSS.read_text("utf-8"), _read("explorable.css"), _read("notebook.css")]
    )
    for of_page, of_figure in WHOLE_PAGE:
        css = css.replace(of_page, of_figure)
    return css


def _read(name):
    return (HERE / name).read_text("utf-8")


class Library(anywidget.AnyWidget):
    """The drawing library, a megabyte: sent once per kernel, not with every figure."""

    _esm = "export default {}"
    code = traitlets.Unicode().tag(sync=True)


@cache
def shared_library():
    return Library(code=PLOTLY.read_text("utf-8"))


class Live(anywidget.AnyWidget):
    """A figure in a running notebook.

    html     the page's HTML, written again when a computer is added
    library  id of the model that holds plotly
    """

    _esm = module()
    _css = style()
    html = traitlets.Unicode().tag(sync=True)
    library = traitlets.Unicode().tag(sync=True)

    def __init__(self, figure):
        self.figure = figure
        super().__init__(html=page.html(figure), library=shared_library().model_id)
        figure.shown.append(self)

    def refresh(self):
        """Show the figure's present data; the reader's settings stay."""
        self.html = page.html(self.figure)

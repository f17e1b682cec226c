"""Data too heavy for the top of a page, moved to a script of its own that loads beside it.

A cell marks such data with `data-apart` (`json_script(..., id="x", data_apart=True)`). The page
keeps the empty element, and a deferred script fills it before the stages run. Notebooks keep the
data in place.

Files that a stage loads on demand are named by a cell, with `data-files` and their paths in the
project. A page opened from a disk may load nothing but scripts. So each file becomes a script,
which puts it as base64 into `window.BookFiles`. Its key is the name up to the first dot.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "data"  # in _static
MARKED = re.compile(
    r'(<script type="application/json" id="([a-z][a-z0-9-]*)" data-apart>)(.*?)(</script>)', re.S
)
NAMED = re.compile(r'<script type="application/json"[^>]* data-files="([^"]*)"')


def split(body: str) -> tuple[str, dict[str, str]]:
    """A page without its marked data, and a script for each element's data, by id."""
    scripts = {
        name: f"document.getElementById({json.dumps(name)}).textContent = {json.dumps(data)};\n"
        for _, name, data, _ in MARKED.findall(body)
    }
    return MARKED.sub(r"\1\4", body), scripts


def asked_for(body: str, root: Path = ROOT) -> dict[str, str]:
    """A script for each file that a page's cells name. Raises ExtensionError for a missing file."""
    scripts = {}
    for path in " ".join(NAMED.findall(body)).split():
        if not (root / path).is_file():
            raise ExtensionError(f"data-files: expected files of the project, got {path}")
        name, held = Path(path).name.partition(".")[0], base64.b64encode((root / path).read_bytes())
        scripts[name] = f'(window.BookFiles ??= {{}})["{name}"] = "{held.decode()}";\n'
    return scripts


def put_apart(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Write the page's marked data to files; `data_scripts` of the context names them."""
    context["body"], scripts = split(context.get("body") or "")
    context["data_scripts"] = [f"{FOLDER}/{name}.js" for name in scripts]
    folder = Path(app.outdir) / "_static" / FOLDER
    for name, script in {**scripts, **asked_for(context["body"])}.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.js").write_text(script, encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", put_apart, priority=940)

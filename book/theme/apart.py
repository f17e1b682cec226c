"""Data too heavy to stand before the text of a page: in a script of its own, loaded beside it.

A cell marks such data with `data-apart` (`json_script(..., id="x", data_apart=True)`). The page
keeps the empty element, and a deferred script fills it before the stages run. A notebook, and a
page read by hand, keep the data where they are.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from sphinx.application import Sphinx

FOLDER = "data"  # in _static
MARKED = re.compile(
    r'(<script type="application/json" id="([a-z][a-z0-9-]*)" data-apart>)(.*?)(</script>)', re.S
)


def split(body: str) -> tuple[str, dict[str, str]]:
    """A page without its marked data, and a script for each, by the id of its element."""
    scripts = {
        name: f"document.getElementById({json.dumps(name)}).textContent = {json.dumps(data)};\n"
        for _, name, data, _ in MARKED.findall(body)
    }
    return MARKED.sub(r"\1\4", body), scripts


def put_apart(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Write the page's marked data beside it; `data_scripts` of the context names the files."""
    context["body"], scripts = split(context.get("body") or "")
    context["data_scripts"] = [f"{FOLDER}/{name}.js" for name in scripts]
    folder = Path(app.outdir) / "_static" / FOLDER
    for name, script in scripts.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.js").write_text(script, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", put_apart, priority=940)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

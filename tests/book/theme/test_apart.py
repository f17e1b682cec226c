"""Heavy data leaves the page, and a script gives it back."""

from __future__ import annotations

import json
from types import SimpleNamespace

from book.explorable.markup import json_script
from book.theme import apart

HOSTILE = {"text": '</script><b>"it\'s"\n\\ \u2028'}


def test_marked_data_are_put_apart_and_others_stay():
    kept = json_script({"a": 1}, id="small")
    marked = json_script(HOSTILE, id="film-data", data_apart=True)
    body, scripts = apart.split(f"<p>{kept}{marked}</p>")
    assert kept in body and "it" not in body
    assert '<script type="application/json" id="film-data" data-apart></script>' in body
    [(name, script)] = scripts.items()
    assert name == "film-data" and script.endswith(";\n") and "<" not in script
    said = script.removeprefix('document.getElementById("film-data").textContent = ')
    assert json.loads(json.loads(said.rstrip(";\n"))) == HOSTILE


def test_the_script_lies_beside_the_page(tmp_path):
    marked = json_script(HOSTILE, id="film-data", data_apart=True)
    context = {"body": f"<p>{marked}"}
    apart.put_apart(SimpleNamespace(outdir=tmp_path), "book/a", "", context, None)
    assert context["data_scripts"] == ["data/film-data.js"]
    assert (tmp_path / "_static" / "data" / "film-data.js").is_file()
    apart.put_apart(SimpleNamespace(outdir=tmp_path), "search", "", search := {}, None)
    assert search == {"body": "", "data_scripts": []}

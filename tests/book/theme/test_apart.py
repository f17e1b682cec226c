"""Heavy data leaves the page, and a script gives it back."""

import base64
import json
from types import SimpleNamespace

import pytest
from sphinx.errors import ExtensionError

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


def test_a_named_file_becomes_a_script_that_the_page_does_not_load(tmp_path):
    held = bytes(range(256))
    (tmp_path / "a.weights.npz").write_bytes(held)
    cell = json_script({}, id="x", data_files="a.weights.npz")
    [(name, script)] = apart.asked_for(f"<p>{cell}", tmp_path).items()
    assert name == "a"
    said = script.removeprefix('(window.BookFiles ??= {})["a"] = "').removesuffix('";\n')
    assert base64.b64decode(said) == held
    assert apart.split(cell)[1] == {}
    with pytest.raises(ExtensionError, match="expected files of the project, got a.weights.npz"):
        apart.asked_for(cell, tmp_path / "elsewhere")

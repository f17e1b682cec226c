"""The page of the package: every public name, with what its docstring says."""

import lsa
from book.figures.api import api


def test_every_public_function_and_class_is_there_once_with_its_arguments():
    shown = "\n" + api.Reference()._repr_markdown_()
    assert {*lsa.__all__} - {*api.public()} == {"LAYERS", "SCALES"}
    for name in api.public():
        assert shown.count(f"\n### `{name}`\n") == 1
    assert "    mode: str = 'chunked',\n" in shown
    assert "\n) -> Tensor | tuple[Tensor, LinearState]\n" in shown
    assert "\n- `chunk_size`: tokens in a chunk" in shown
    assert "Define the computation performed" not in shown  # torch's own words


def test_a_docstring_becomes_paragraphs_arguments_and_formulas():
    docstring = "Sum, x_i.\n\n    a = b\n\nx: what\n    it is.\ny: <b> more `x_i`.\n\nNote: no."
    assert api.prose(docstring, {"x", "y"}).split("\n\n") == [
        r"Sum, x\_i.",
        "```text\na = b\n```",
        "- `x`: what it is.\n- `y`: \\<b> more `x_i`.",
        "Note: no.",
    ]

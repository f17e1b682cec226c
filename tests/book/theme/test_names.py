"""Names with a hyphen and a number stay on one line."""

from docutils import nodes

from book.theme.names import keep_whole


def test_names_stand_whole_and_code_stays_as_it_is():
    text = nodes.paragraph("", "", nodes.Text("GPT-2, as a one-layer Mamba-2, "))
    text += nodes.literal("", "GPT-2")
    keep_whole(text)
    assert text.astext() == "GPT-2, as a one-layer Mamba-2, GPT-2"
    assert [one.astext() for one in text.findall(nodes.inline)] == ["GPT-2", "Mamba-2"]

"""A cell of a table holds its words, and an element only where it has two."""

from docutils import nodes

from book.theme import cells


def test_a_cell_of_one_paragraph_holds_its_words_itself():
    name = nodes.paragraph("", "", nodes.literal("", "race"), nodes.Text(", again"))
    two = nodes.entry("", nodes.paragraph("", "one"), nodes.paragraph("", "two"))
    row = nodes.row("", nodes.entry("", name), two, nodes.entry())
    cells.unwrap_cells(row)
    first, second, empty = row
    assert [type(part) for part in first] == [nodes.literal, nodes.Text]
    assert [part.astext() for part in first] == ["race", ", again"]
    assert [part.astext() for part in second] == ["one", "two"]
    assert not empty.children

"""The glossary's row of letters leads to the first term of each."""

from docutils import nodes
from sphinx import addnodes

from book.theme.letters import add_row


def term(name: str) -> nodes.definition_list_item:
    word = nodes.term("", name, ids=[f"term-{name}"])
    return nodes.definition_list_item("", word, nodes.definition())


def test_each_letter_leads_to_its_first_term():
    names = ["batch", "bias", "CUDA graph", "decay"]
    glossary = addnodes.glossary("", nodes.definition_list("", *map(term, names)))
    page = nodes.section("", nodes.title("", "Glossary"), glossary)
    add_row(None, page, "glossary")
    title, row, left = page.children
    assert left is glossary
    assert [(one["attrs"]["href"], one.astext()) for one in row] == [
        ("#term-batch", "B"),
        ("#term-CUDA graph", "C"),
        ("#term-decay", "D"),
    ]


def test_a_page_without_a_glossary_stays_as_it_is():
    page = nodes.section("", nodes.title("", "A chapter"))
    add_row(None, page, "chapter")
    assert len(page) == 1

"""A stage's message: the bold words at the beginning of its caption."""

import pytest
from docutils import nodes

from book.theme.stages import parted


def paragraph(*children: nodes.Node) -> nodes.paragraph:
    return nodes.paragraph("", "", *children)


BOLD = nodes.strong("", "Look here.")


@pytest.mark.parametrize(
    ("body", "message", "caption"),
    [
        ([paragraph(BOLD.deepcopy(), nodes.Text(" The rest."))], ["Look here."], ["The rest."]),
        ([paragraph(BOLD.deepcopy()), paragraph(nodes.Text("More."))], ["Look here."], ["More."]),
        ([paragraph(nodes.Text(""), BOLD.deepcopy())], ["Look here."], []),
        (
            [paragraph(BOLD.deepcopy(), nodes.emphasis("", "So"), nodes.Text(" it is."))],
            ["Look here."],
            ["So it is."],
        ),
        ([paragraph(nodes.Text("It is "), BOLD.deepcopy())], [], ["It is Look here."]),
        ([nodes.comment("", "…")], [], ["…"]),
        ([paragraph()], [], [""]),
    ],
)
def test_bold_words_that_begin_a_caption_are_its_message(body, message, caption):
    found = parted(body)
    assert [[one.astext() for one in part] for part in found] == [message, caption]
    assert all("stage-message" in one["classes"] for one in found[0])

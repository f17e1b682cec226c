"""A question that marks its answers: each folded over what is said of it, one of them right."""

import pytest
from docutils import nodes

from book.theme.directives import choices


def given(*items: tuple[str, ...]) -> list[nodes.Node]:
    made = [
        nodes.list_item("", *(nodes.paragraph("", "", nodes.Text(part)) for part in item))
        for item in items
    ]
    return [nodes.bullet_list("", *made)]


def test_each_answer_is_folded_over_what_is_said_of_it():
    made = choices(given(("Four.", "Two and two."), ("Five.", "One more.", "Count again.")), 1)
    assert [one["tag"] for one in made] == ["details", "details"]
    summaries = [one.children[0] for one in made]
    assert [(one["tag"], one.astext()) for one in summaries] == [
        ("summary", "Four."),
        ("summary", "Five."),
    ]
    said = [[part.astext() for part in one.children[1].children] for one in made]
    assert said == [["Right. Two and two."], ["No. One more.", "Count again."]]


@pytest.mark.parametrize(
    ("list_given", "right", "message"),
    [
        (given(("Four.", "Yes.")), 2, "right: expected one of the 1 answers, got 2"),
        (given(("Four.", "Yes.")), 0, "right: expected one of the 1 answers, got 0"),
        (given(("Four.",), ("Five.", "No.")), 1, "expected one list"),
        ([nodes.paragraph("", "text")], 1, "expected one list"),
        ([], 1, "expected one list"),
    ],
)
def test_what_is_no_list_of_answers_is_refused(list_given, right, message):
    with pytest.raises(ValueError, match=message):
        choices(list_given, right)

"""What `make prose` reports: each rule, at its line, and nothing that is no prose."""

import subprocess
from pathlib import Path

import pytest

from tests.plain_words import findings, main

ROOT = Path(__file__).resolve().parents[1]
LONG = " ".join(["Word"] * 31)


def found(source: str, suffix: str = ".md") -> list[tuple[int, str]]:
    return [(line, rule) for line, rule, _ in findings(source, suffix)]


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        (f"{LONG}.", "over 30 words"),
        ("What is lost was used.", "opening"),
        ("Of either sum most is one product.", "opening"),
        ("It seems to end.", "hedge"),
        ("A batch, of which it holds more.", "joint"),
        ("Either pays its share of the bill.", "figure of speech"),
    ],
)
def test_a_sentence_is_found_at_its_line(sentence, rule):
    assert found(f"# A head\n\nOne is plain. Another,\ntoo. {sentence}\n") == [(4, rule)]


@pytest.mark.parametrize(
    "source",
    [
        "What does it cost?",
        "One claim. " * 20,
        f"{' '.join(['word'] * 28)} $a b c$ `d e f` {{cite:p}}`g`.",
        f"```python\n# {LONG}\n```",
        f"```{{question}}\nWhy?\n```\n\n```{{code-cell}} ipython3\n# {LONG}\n```",
        f"$$\n{LONG}\n$$",
        f"| {LONG} |",
        f"- {LONG[:80]}\n- {LONG[:80]}",
        f"k, v: {LONG[:80]}\nscale: {LONG[:80]}\no_i = {LONG}",
        "Measured, e.g. What follows.",
    ],
)
def test_what_is_plain_or_no_prose_is_left_alone(source):
    assert not found(source)


def test_words_with_punctuation_are_counted_in_one_way():
    """Not in each of all ways to divide them, which took longer than a test may."""
    assert not found("it's-, " * 25)


def test_prose_goes_on_after_formulas_and_inside_directives():
    page = "---\na: b\n---\n$$ x $$ (one)\n\n$$\ny\n$$ (two)\n\n:::{reveal}\nWhat is lost.\n:::\n"
    assert found(page) == [(11, "opening")]


def test_docstrings_captions_comments_and_names_of_a_module():
    source = (
        'def told(x):\n    """What a run says of itself, as a heading."""\n\n'
        '    # What it says\n    # is here.\n    return f"Of {x} nothing is left to tell here."\n'
    )
    assert sorted(found(source, ".py")) == [
        (1, "nameless"), (2, "opening"), (4, "opening"), (6, "opening"),
    ]  # fmt: skip


def test_a_script_has_comments():
    assert found("// Nor is it\n// read.\nlet x = 1;\n", ".js") == [(1, "opening")]
    assert found("let x = 1;\n/* One.\n   Nor\n   two. */\n", ".js") == [(3, "opening")]


def test_places_are_printed_and_counted(capsys):
    main([str(ROOT / "tests" / "plain_words.py")])
    *places, counts = capsys.readouterr().out.splitlines()
    assert all(place.startswith("tests/plain_words.py:") for place in places)
    assert sum(int(part.rsplit(" ", 1)[1]) for part in counts.split(", ") if part) == len(places)


def make_prose() -> str:
    return subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "-o", ".venv/test", "prose"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def test_make_prose_fails_on_spelling_alone():
    said = make_prose()
    assert said.index("codespell") < said.index("plain_words.py")


def test_no_word_is_misspelt():
    spelling = make_prose().splitlines()[0]
    assert "codespell" in spelling
    subprocess.run(spelling, shell=True, cwd=ROOT, check=True)

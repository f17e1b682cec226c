"""The chapters' figures come from stored results, and their prose from the same files."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from book.explorable.still import still
from book.figures.index import race, readme_picture
from book.figures.lib import format, records, seeds
from book.figures.lib.format import say
from book.figures.training import loss_curves
from experiments.harness.core import record

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"

CHAPTERS = sorted(path.stem for path in BOOK.glob("*.md"))


def test_a_figure_draws_what_is_stored():
    """Each point of the first figure, against the files themselves."""
    for curve in (one for one in loss_curves.figure().curves if one.role == "series"):
        stored = record.read(ROOT / curve.source)
        table = stored["tables"]["validation"]
        seconds = stored["tables"]["train"]["seconds"]
        for update, minutes, loss in zip(
            curve.columns["update"], curve.columns["minutes"], curve.columns["loss"], strict=True
        ):
            assert loss == pytest.approx(table["loss"][table["update"].index(update)], rel=1e-3)
            assert minutes == pytest.approx(sum(seconds[:update]) / 60, rel=1e-2)


def test_stored_results_were_made_by_code_in_the_history():
    history = subprocess.run(
        ["git", "rev-list", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    if (ROOT / ".git" / "shallow").exists():
        pytest.skip("a shallow clone has no history to look in")
    for one in record.load(partial=False):  # a run that has not ended is nobody's result yet
        assert not one["provenance"]["dirty"], one["path"]
        assert one["provenance"]["commit"] in history, one["path"]


def test_the_readme_shows_the_figure_as_it_is():
    assert (readme_picture.STATIC / "headline.svg").is_file()
    drawn = still(race.figure(context=race.OPENS_AT), theme="light")
    kept = (BOOK / "theme" / "static" / "headline.svg").read_text(encoding="utf-8")
    assert drawn == kept, "run python -m book.figures.index.readme_picture"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_measured_number_is_typed_into_prose(chapter):
    """A ratio or a time in a sentence is glued, so that it cannot go stale."""
    text = (BOOK / f"{chapter}.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```\{code-cell\}.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"\b\d[\d.,]*\s?(?:×|ms\b|µs\b|MiB\b|GiB\b|times faster)", prose)
    assert not found


def test_numbers_are_said_as_a_reader_would():
    assert [format.times(r) for r in (1.0, 1.944, 2, 7.26, 19.4, 203.4)] == [
        "1.00×", "1.94×", "2.0×", "7.3×", "19.4×", "200×",
    ]  # fmt: skip
    assert [format.duration(s) for s in (2.5, 0.0042, 3.1e-4, 5e-9)] == [
        "2.5 s", "4.2 ms", "310 µs", "5 ns",
    ]  # fmt: skip
    assert [format.size(b) for b in (12, 2048, 3 * 2**20, 1.5 * 2**30)] == [
        "12 B", "2 KiB", "3 MiB", "1.5 GiB",
    ]  # fmt: skip
    assert [format.counted(n) for n in (1, 12, 13, 1024)] == ["one", "twelve", "13", "1,024"]
    assert [seeds.how_many_seeds(n) for n in (1, 3)] == ["one seed", "three seeds"]
    assert [seeds.seeds_in_words(counts) for counts in ([1], [4, 4], [1, 3])] == [
        "one seed", "four seeds each", "one to three seeds",
    ]  # fmt: skip


def test_an_experiment_without_results_says_how_to_get_them():
    with pytest.raises(LookupError, match="python -m experiments run nothing_yet"):
        records.stored("nothing_yet")


@pytest.mark.parametrize("value", ["runs *without* it", "`a`"])
def test_a_glued_value_is_plain_text(value):
    with pytest.raises(ValueError, match="best is shown"):
        say(best=value)


def formulas(chapter):
    text = re.sub(r"```(\{code-cell\}|text).*?```", "", chapter.read_text("utf-8"), flags=re.DOTALL)
    return re.findall(r"\$\$.+?\$\$|\$.+?\$", text, flags=re.DOTALL)


def letters(formula):
    """Latin letters and Greek ones, not those of words."""
    formula = re.sub(r"\\(text|mathrm|operatorname|label|tag|begin|end)\{[^}]*\}", " ", formula)
    greek = set(
        re.findall(
            r"\\(?:var)?(alpha|beta|gamma|delta|phi|psi|sigma|theta|Phi)(?![A-Za-z])", formula
        )
    )
    return greek | set(re.findall(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", " ", formula)))


@pytest.mark.parametrize("name", [name for name in CHAPTERS if name != "notation"])
def test_every_letter_of_a_chapter_is_in_the_notation(name):
    known = set().union(*map(letters, formulas(BOOK / "notation.md")))
    used = set().union(*map(letters, formulas(BOOK / f"{name}.md")))
    assert used <= known


def hidden_cells():
    """The cells of which a page shows the output at most."""
    cell = re.compile(r"^```+\{code-cell\}[^\n]*\n:tags: \[remove-[^\n]*\n\n(.*?)^```", re.M | re.S)
    for name in CHAPTERS:
        for i, code in enumerate(cell.findall((BOOK / f"{name}.md").read_text(encoding="utf-8"))):
            yield pytest.param(code, id=f"{name}-{i}")


@pytest.mark.parametrize("code", hidden_cells())
def test_a_hidden_cell_is_one_call_that_computes_nothing(code):
    """A setting of the environment may stand before it, where an import has to find it."""
    lines = ast.parse(code).body
    calls = [one for one in lines if not isinstance(one, ast.Import | ast.ImportFrom)]
    if ast.unparse(calls[0]).startswith("os.environ["):
        calls = calls[1:]
    assert len(calls) <= 1, "expected one call: the rest belongs into a function of book/figures"
    reckoned = ast.BinOp | ast.Subscript | ast.JoinedStr | ast.comprehension | ast.Compare
    for one in calls:
        assert isinstance(one, ast.Expr)
        assert not any(isinstance(node, reckoned) for node in ast.walk(one))


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_line_of_a_cell_fits_its_column_in_the_widest_of_the_fonts(name):
    """DejaVu Sans Mono, which a computer without the others falls back to: 7.8 pixels a letter."""
    text = (BOOK / f"{name}.md").read_text(encoding="utf-8")
    cells = re.findall(
        r"^```+\{code-cell\}[^\n]*\n(?!:tags: \[remove-)(.*?)^```", text, flags=re.M | re.S
    )
    assert [line for cell in cells for line in cell.splitlines() if len(line) > 75] == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_asks_concludes_and_has_exercises(name):
    text = (BOOK / f"{name}.md").read_text(encoding="utf-8")
    *sections, exercises = re.split(r"^## ", text, flags=re.M)
    asks = exercises.startswith("Exercises\n")
    assert asks == ("{check}" in text) == ("\n## Three takeaways\n" in text)
    assert all(section.count("*Limits.*") <= 1 for section in sections)
    if asks:
        assert "{question}" in sections[0]
        assert re.findall(r"^\d+\.", sections[-1], flags=re.M) == ["1.", "2.", "3."]
        assert exercises.count("{predict}") >= 4
        assert exercises.count("{predict} 1. To prove") == 1
        answer = exercises.split(". To program\n")[1].split("{predict}")[0]
        assert "tags: [hide-cell]" in answer and "assert" in answer, "To program: a hidden cell"


RENAMED = {  # anchors of headings that had other words
    "causal-transformations": ("predict",),
    "sampling": ("predict",),
    "sequence-transformations": ("predict",),
    "sequences": ("predict",),
    "kernels": ("a-state-that-fades", "measured-against-others", "the-bill"),
    "linear-self-attention": ("other-ways-below-t-2", "predict"),
    "long-context": ("trained-to-find-again", "where-the-state-must-lose", "predict"),
    "relatives": ("predict",),
    "state-machines": ("taylor-sums", "predict"),
    "state-spaces": ("four-tasks-that-tell-layers-apart", "predict"),
    "three-modes": (
        "how-far-from-the-limit", "the-least-it-can-take", "what-each-of-them-does",
        "what-each-of-them-takes",
    ),
    "trained-model": ("eight-heads-of-270",),
    "training": (
        "how-a-larger-state-can-do-worse", "why-softmax-learns-more-from-an-update-if-it-does",
        "predict",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RENAMED)
def test_a_link_to_an_old_heading_still_leads_somewhere(name):
    text = (BOOK / f"{name}.md").read_text(encoding="utf-8")
    assert all(f'<span id="{anchor}"></span>' in text for anchor in RENAMED[name])

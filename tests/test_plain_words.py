"""`make prose` fails on spelling alone, and no word is misspelt."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


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

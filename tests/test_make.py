"""What `make` does where something stands in its way."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
JUPYTER = """#!/bin/sh
echo "path $PYTHONPATH"
for argument; do echo "argument $argument"; done
"""
COMMANDS = [
    "$(touch f)",
    "$$(touch f)",
    "$(shell touch f)",
    "`touch f`",
    '"; touch f; "',
    "'; touch f; '",
]


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A folder that holds the Makefile and nothing else."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    return tmp_path


def make(folder: Path, *arguments: str, made: bool = True) -> subprocess.CompletedProcess:
    # Where the environment counts as made, nothing is installed.
    command = ["make", *(["-o", ".venv/book"] if made else []), *arguments]
    # `make test` runs this, and would hand its own flags and level on.
    own = {name: value for name, value in os.environ.items() if not name.startswith("M")}
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = make(ROOT, "serve", f"PORT={port}", "HTML=README.md")
    assert done.returncode and f"Port {port} is taken: make serve PORT=8001" in done.stdout


NO_PORTS = ["abc", "-1", "99999", "65536", "0", "", "8000.5", "8000;touch f", *COMMANDS]
NO_CHAPTERS = ["sampler", "", "../Makefile", "x; touch f", *COMMANDS]


@pytest.mark.parametrize(
    ("target", "name", "expected", "value"),
    [("serve", "PORT", "a whole number from 1 to 65535", value) for value in NO_PORTS]
    + [("chapter", "C", "a chapter, e.g. C=sampling", value) for value in NO_CHAPTERS],
)
def test_what_is_no_port_or_chapter_is_named(alone, target, name, expected, value):
    done = make(alone, target, f"{name}={value}", "HTML=Makefile")
    assert done.returncode and done.stdout == f"{name}: expected {expected}, got '{value}'\n"
    assert not (alone / "f").exists()


@pytest.mark.parametrize("python", ["/nowhere", "false"])
def test_a_python_that_is_none_is_named(alone, python):
    (alone / "requirements.txt").touch()
    old = "-o", "requirements.lock", "-o", "pyproject.toml"
    done = make(alone, "book", f"PYTHON={python}", *old, made=False)
    expected = f"PYTHON: expected Python 3.11 or newer, e.g. PYTHON=python3.11, got '{python}'\n"
    assert done.returncode and done.stdout == expected
    assert done.stderr.startswith("make: ***") and not (alone / ".venv").exists()


@pytest.mark.parametrize(
    ("there", "asked", "fetched"),
    [
        (["chromium"], "", False),
        (["google-chrome"], "", False),
        ([], "", True),
        (["chromium"], "playwright", True),
        ([], "/opt/chromium", False),
    ],
)
def test_a_browser_is_fetched_only_where_there_is_none(alone, monkeypatch, there, asked, fetched):
    """Debian's users have `chromium` and no `chromium-headless-shell`."""
    commands = alone / "bin"
    commands.mkdir()
    for name in ("make", "sh"):
        (commands / name).symlink_to(shutil.which(name))
    for name in there:
        (commands / name).symlink_to("/bin/true")
    python = alone / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "python $*"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(commands))
    monkeypatch.setenv("BOOK_BROWSER", asked)
    done = make(alone, "-o", ".venv/test", "browser")
    assert not done.returncode, done.stderr
    assert done.stdout == ("python -m playwright install chromium\n" if fetched else "")


def test_the_notebooks_open_from_a_path_with_a_space(tmp_path):
    house = tmp_path / "a house"
    built = house / "_build" / "html" / "_notebooks"
    built.mkdir(parents=True)
    (built / "index.ipynb").write_text("{}")
    (built.parent / "index.html").touch()
    shutil.copy(ROOT / "Makefile", house)
    jupyter = house / ".venv" / "bin" / "jupyter"
    jupyter.parent.mkdir(parents=True)
    jupyter.write_text(JUPYTER)
    jupyter.chmod(0o755)
    done = make(house, "lab")
    assert not done.returncode, done.stderr
    assert f"argument --ServerApp.root_dir={house}\n" in done.stdout
    assert f"path {house}:{house}/book\n" in done.stdout
    assert (house / "_build" / "lab" / "notebooks" / "index.ipynb").is_file()


def test_make_book_names_the_sentences_that_results_contradict():
    said = subprocess.run(
        ["make", "--dry-run", "-o", ".venv/book", "book"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    build, check = said.index("jupyter-book build"), said.index("python -m book.prose")
    assert build < check

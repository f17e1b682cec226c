"""What `make` does where something stands in its way."""

import shutil
import socket
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
JUPYTER = """#!/bin/sh
echo "path $PYTHONPATH"
for argument; do echo "argument $argument"; done
"""


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    # The environment counts as made: nothing is installed.
    command = ["make", "-o", ".venv/book", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = make(ROOT, "serve", f"PORT={port}", "HTML=README.md")
    assert done.returncode and f"Port {port} is taken: make serve PORT=8001" in done.stdout


def test_a_chapter_that_is_not_there_is_named():
    done = make(ROOT, "chapter", "C=sampler")
    assert (
        done.returncode and "C: expected a chapter, e.g. C=sampling, got 'sampler'" in done.stdout
    )


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

"""Selection of the chapters that a build executes, and how many run at a time.

A chapter's cells depend on more than its source: on the package, the experiments, the results and
the figures. If none of these has changed since the last build, only edited chapters are executed
again. All pages are written again in any case, because they show parts of each other: numbers,
titles, previews.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from . import notebooks

ROOT = Path(__file__).resolve().parents[2]
# Folders that cells read, and those that turn a page into a document.
INPUTS = ("lsa", "experiments", "results", "book/figures", "book/explorable", "book/theme")
INPUT_KINDS = {".py", ".cpp", ".inl", ".json", ".sha256"}
FILES = (
    "book/javascript.py",
    "book/explorable/explorable-model.js",
    "book/theme/static/palette.css",
)
# These extensions keep nothing from one page to the next, but do not declare it.
SAFE_IN_PARALLEL = ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex")


def inputs_digest(root: Path = ROOT) -> str:
    """SHA-256 of everything that a chapter's cells depend on, except its own text."""
    digest = hashlib.sha256()
    files = (file for folder in INPUTS for file in sorted((root / folder).rglob("*")))
    folders = (file for file in files if file.suffix in INPUT_KINDS and file.is_file())
    for file in (*(root / name for name in FILES), *folders):
        digest.update(f"{file.relative_to(root)}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def outdated_chapters(
    app: Sphinx, env: BuildEnvironment, added: set, changed: set, removed: set
) -> list[str]:
    """All chapters with cells if their inputs have changed. The digest is stored in `env`."""
    digest = inputs_digest()
    if getattr(env, "chapter_inputs", None) == digest:
        return []
    env.chapter_inputs = digest  # type: ignore[attr-defined]
    return [page for page in env.found_docs if notebooks.is_notebook(app, page)]


def read_in_parallel(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    for name in SAFE_IN_PARALLEL:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True
    app.parallel = os.cpu_count() or 1


def write_every_page(app: Sphinx, env: BuildEnvironment) -> set[str]:
    # One after another: the engine for formulas does not survive a fork.
    app.parallel = 1
    return set(env.found_docs)


def setup(app: Sphinx) -> None:
    app.connect("env-get-outdated", outdated_chapters)
    app.connect("env-before-read-docs", read_in_parallel)
    app.connect("env-updated", write_every_page)

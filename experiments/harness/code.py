"""Which source files a result depends on, and whether they are still what they were."""

from __future__ import annotations

import ast
import hashlib
import subprocess
from functools import cache
from pathlib import Path

from .record import ROOT

PACKAGES = ("lsa", "experiments")


def code_files(experiment: str) -> list[Path]:
    """The files of `lsa` and `experiments` that an experiment's module imports, itself included."""
    found: dict[str, Path] = {}
    waiting = [f"experiments.{experiment}"]
    while waiting:
        module = waiting.pop()
        path = _file(module)
        if path is None or module in found:
            continue
        found[module] = path
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        waiting += [package, *_imported(path, package)]
    return sorted({*found.values()})


def code_digest(experiment: str) -> str:
    """SHA-256 of these files: two runs with the same digest ran under the same code."""
    digest = hashlib.sha256()
    for path in code_files(experiment):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def git(*arguments: str) -> str | None:
    """What git says of this project; None without git, or where the project is not its root."""
    if not (ROOT / ".git").exists():  # a copy inside someone else's repository
        return None
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


@cache
def is_known(commit: str) -> bool:
    """Whether a commit is in the history; true where there is no whole history to look in."""
    if git("rev-parse", "--is-shallow-repository") != "false":
        return True
    return git("cat-file", "-e", f"{commit}^{{commit}}") is not None


@cache
def changed_since(experiment: str, commit: str, digest: str | None) -> bool:
    """Whether an experiment's code differs from that of a record: by its digest, else by git."""
    if digest is not None:
        return digest != code_digest(experiment)
    files = [path.relative_to(ROOT).as_posix() for path in code_files(experiment)]
    return git("diff", "--quiet", commit, "--", *files) is None


def _file(module: str) -> Path | None:
    if module.split(".")[0] not in PACKAGES:
        return None
    place = ROOT.joinpath(*module.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _imported(path: Path, package: str) -> list[str]:
    """The modules that a file may import; names that are none are dropped by `_file`."""
    names = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return names

"""Which source files a result depends on, and whether they are still what they were."""

from __future__ import annotations

import ast
import hashlib
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .record import ROOT

PACKAGES = ("lsa", "experiments")
KERNELS = ("kernels", "triton")  # the rooms of modules that are imported by name
LAUNCHES = "lsa.launches"  # imported by name, with any kernel


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
        waiting += [package, *_imported(path, package), *_imported_by_name(package)]
    return sorted({*found.values()})


def code_digest(experiment: str) -> str:
    """SHA-256 of these files: two runs with the same digest ran under the same code."""
    digest = hashlib.sha256()
    for path in code_files(experiment):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def package_files() -> list[Path]:
    """Every source file of both packages."""
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def module_name(path: str) -> str:
    """`lsa.gpt` of `lsa/gpt.py`, `lsa` of `lsa/__init__.py`."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def git(*arguments: str) -> str | None:
    """What git says of this project; None without git, or where the project is not its root."""
    said = git_bytes(*arguments)
    return None if said is None else said.decode().strip()


def git_bytes(*arguments: str) -> bytes | None:
    """The same, as it comes."""
    if not (ROOT / ".git").exists():  # a copy inside someone else's repository
        return None
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


@cache
def is_known(commit: str) -> bool:
    """Whether a commit is in the history; true where there is no whole history to look in."""
    if git("rev-parse", "--is-shallow-repository") != "false":
        return True
    return git("cat-file", "-e", f"{commit}^{{commit}}") is not None


@cache
def _file(module: str) -> Path | None:
    if module.split(".")[0] not in PACKAGES:
        return None
    place = ROOT.joinpath(*module.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _imported(path: Path, package: str) -> list[str]:
    """The modules that a file may import; names that are none are dropped by `_file`."""
    names = []
    for one in imports(path.read_bytes()):
        base = absolute(package, one.level, one.module)
        names += [base, f"{base}.{one.name}"]
    return names


def _imported_by_name(package: str) -> list[str]:
    """Kernels beside a package's modules, whose names are put together when they are launched."""
    root = ROOT.joinpath(*package.split("."))
    found = [
        module_name(file.relative_to(ROOT).as_posix())
        for room in KERNELS
        for file in root.joinpath(room).rglob("*.py")
    ]
    return [*found, LAUNCHES] if found else []


class Import(NamedTuple):
    """`from ..module import name as local`; level: how many dots."""

    local: str
    level: int
    module: str
    name: str


@cache
def imports(source: bytes) -> list[Import]:
    """What a file's source imports from modules, wherever in it."""
    return [
        Import(alias.asname or alias.name, node.level, node.module or "", alias.name)
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


def absolute(package: str, level: int, module: str) -> str:
    """The whole name of a module that a file in `package` imports."""
    above = package.split(".")[: 1 - level or None] if level else []
    return ".".join([*above, *([module] if module else [])])


@cache
def parsed(source: bytes) -> ast.Module:
    """A file's source as a tree, which nobody may change."""
    return ast.parse(source)

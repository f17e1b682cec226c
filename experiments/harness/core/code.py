"""Source files on which a result depends, and the commits that have changed them since.

A result depends on the files that its experiment imports, and those that these import, within `lsa`
and `experiments`. An `__init__.py` that only re-exports a name is replaced by the module that
defines it. A package's C++ files count with its `__init__.py`. Comments, docstrings and formatting
do not count. Commits that a person has read and found harmless are listed, with a reason each, in
`experiments/reviewed.txt`.
"""

from __future__ import annotations

import ast
import hashlib
import io
import os
import re
import subprocess
import tarfile
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from .record import ROOT

PACKAGES = ("lsa", "experiments")
REVIEWED = ROOT / "experiments" / "reviewed.txt"
SUFFIXES = (".py", ".cpp", ".inl")
KERNELS = {"triton", "kernels"}  # folders whose modules are imported by names put together
BY_NAME = {"import_module", "triton_module"}
CPP_COMMENT = re.compile(r"""("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/""", re.DOTALL)  # 1: a string
DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
EDITED = "edits"

Tree = Mapping[str, bytes]  # the source of each file, by its path


class Change(NamedTuple):
    """A commit (or EDITED), its subject, and the files whose code it changed."""

    commit: str
    subject: str
    files: tuple[str, ...]


def git(*arguments: str) -> str | None:
    """Output of a git command; None without git, or if the project is not the repository's root."""
    said = git_bytes(*arguments)
    return None if said is None else said.decode(errors="surrogateescape").strip()


def git_bytes(*arguments: str) -> bytes | None:
    """The same, as bytes."""
    if not (ROOT / ".git").exists():  # a copy inside someone else's repository
        return None
    # Without the variables that would point git to another repository.
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    call = {"cwd": ROOT, "env": own, "capture_output": True, "check": True}
    try:
        return subprocess.run(["git", *arguments], **call).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


@cache
def is_known(commit: str) -> bool:
    """Whether a commit is in the history; True if the history is not complete here."""
    if git("rev-parse", "--is-shallow-repository") != "false":
        return True
    return git("merge-base", "--is-ancestor", commit, "HEAD") is not None


def code_digest(experiment: str) -> str:
    """SHA-256 of an experiment's files: two runs with the same digest ran under the same code."""
    digest = hashlib.sha256()
    today = worktree()
    for path in sorted(code_files(today, experiment, kernels=True)):
        digest.update(f"{path}\0".encode() + today[path])
    return digest.hexdigest()


_digest_today = cache(code_digest)


def changes_since(record: dict[str, Any]) -> list[Change] | None:
    """Commits that changed the code behind a record and are not listed as harmless, newest first.

    None if this is unknown: no commit has the code, or the commit cannot be read here.
    """
    origin, experiment = record["provenance"], record["experiment"]
    if origin.get("code") == _digest_today(experiment):
        return []
    commits = {leg["commit"] for leg in (origin, *origin.get("legs", []))}
    if origin["dirty"] or any(one == "unknown" or _at(one) is None for one in commits):
        return None
    on_gpu = origin["device"]["kind"] == "cuda"
    found = {change: None for one in commits for change in _between(one, experiment, on_gpu)}
    return list(found)


@cache
def _between(commit: str, experiment: str, on_gpu: bool) -> tuple[Change, ...]:
    """The changes from a commit to the working tree."""
    before, today = _at(commit), worktree()
    assert before is not None
    earlier, paths = (code_files(tree, experiment, kernels=on_gpu) for tree in (before, today))
    then, now = (
        {bare(one, tree[one]) for one in names}
        for tree, names in ((before, earlier), (today, paths))
    )
    if then == now:
        return ()
    harmless, found = _harmless(commit, experiment), []
    at_head = _at("HEAD") or {}
    edited = tuple(
        path
        for path in sorted(paths)
        if bare(path, today[path]) != bare(path, at_head.get(path, b""))
    )
    if edited:
        found.append(Change(EDITED, "that no commit holds", edited))
    paths |= earlier
    since = set((git("rev-list", f"{commit}..HEAD") or "").split())
    for sha, subject, touched in _log():
        if sha not in since:
            continue
        files = [new for old, new, differs in touched if {old, new} & paths and differs()]
        paths |= {old for old, new, _ in touched if new in paths}
        if files and not sha.startswith(harmless):
            found.append(Change(sha, subject, tuple(files)))
    return tuple(found)


def _harmless(commit: str, experiment: str) -> tuple[str, ...]:
    """Prefixes of the commits that are listed as harmless for these results.

    A line of the list: `SHA names reason`, or `A..B names reason` for results made at A, up to B.
    names: experiments separated by commas, or `*`.
    """
    found: list[str] = []
    for what, names in reviewed():
        if names != ("*",) and experiment not in names:
            continue
        first, dots, _ = what.partition("..")
        if not dots:
            found.append(what)
        elif commit.startswith(first):
            found += (git("rev-list", what) or "").split()
    return tuple(found)


@cache
def reviewed() -> list[tuple[str, tuple[str, ...]]]:
    """The commits or ranges of the list, each with its experiments."""
    lines = REVIEWED.read_text(encoding="utf-8").splitlines() if REVIEWED.exists() else []
    words = [line.split(maxsplit=2) for line in lines if line and not line.startswith("#")]
    return [(what, tuple(names.split(","))) for what, names, _ in words]


@cache
def _log() -> list[tuple[str, str, list[tuple[str, str, Any]]]]:
    """Each commit that touches the packages, newest first: its subject and, for each file, the old
    path, the new one, and whether the code differs. Merges are left out.
    """
    said = git(
        "log", "--no-merges", "--raw", "--no-abbrev", "-r", "-M", "--format=%x00%H%x00%s", "HEAD",
        "--", *(f"{package}/*{suffix}" for package in PACKAGES for suffix in SUFFIXES),
    )  # fmt: skip
    parts = (said or "").split("\0")[1:]
    found = []
    for sha, rest in zip(parts[::2], parts[1::2], strict=True):
        subject, *lines = rest.splitlines()
        touched = []
        for line in filter(None, lines):
            head, *paths = line.split("\t")
            _, _, before, after, _ = head.split()
            differs = cache(
                lambda path=paths[-1], a=before, b=after: (
                    bare(path, _blob(a)) != bare(path, _blob(b))
                )
            )
            touched.append((paths[0], paths[-1], differs))
        found.append((sha, subject, touched))
    return found


@cache
def _blob(sha: str) -> bytes:
    return b"" if set(sha) == {"0"} else git_bytes("cat-file", "blob", sha) or b""


@cache
def _at(commit: str) -> Tree | None:
    """The code of a commit; None if it cannot be read."""
    archive = git_bytes("archive", "--format=tar", commit, *PACKAGES)
    if archive is None:
        return None
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        return {
            one.name: opened.read()
            for one in files
            if one.name.endswith(SUFFIXES) and (opened := files.extractfile(one)) is not None
        }


@cache
def worktree() -> Tree:
    """The code in the working tree."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*"))
        if path.suffix in SUFFIXES
    }


@cache
def bare(path: str, source: bytes) -> str:
    """A file's code without comments, docstrings and formatting."""
    if not path.endswith(".py"):
        return " ".join(CPP_COMMENT.sub(lambda found: found[1] or " ", source.decode()).split())
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.unparse(tree)


def code_files(tree: Tree, experiment: str, *, kernels: bool) -> set[str]:
    """The files behind an experiment. kernels: include modules imported by computed names.

    They count on a GPU, and if the experiment imports any of them itself.
    """
    found: set[str] = set()
    waiting = [(f"experiments.{experiment}", "")]
    seen = set(waiting)
    while waiting:
        path, follow = _resolve(tree, *waiting.pop())
        if path and path not in found and follow is None:
            found |= {path, *_beside(tree, path)}
            names, beginnings, _ = imports(tree[path], _package(path))
            follow = [(module, name) for _, module, name in names]
            if beginnings and (kernels or path.startswith("experiments/")):
                follow += [(one, "") for one in map(_module, tree) if one.startswith(beginnings)]
        waiting += [one for one in follow or () if one not in seen]
        seen.update(follow or ())
    if not kernels and any(KERNELS & {*path.split("/")} for path in found):
        return code_files(tree, experiment, kernels=True)
    return found


def _beside(tree: Tree, path: str) -> list[str]:
    """The C++ files in the folder of a package's `__init__.py`."""
    folder, _, name = path.rpartition("/")
    if name != "__init__.py":
        return []
    return [one for one in tree if one.rpartition("/")[0] == folder and not one.endswith(".py")]


def _resolve(tree: Tree, module: str, name: str) -> tuple[str, list[tuple[str, str]] | None]:
    """The file that defines an imported name, or where to look further."""
    if module.split(".")[0] not in PACKAGES:
        return "", []
    place = module.replace(".", "/")
    inner = f"{place}/{name}" if name else place
    if f"{place}.py" in tree:
        return f"{place}.py", None
    path = f"{place}/__init__.py"
    if path not in tree:
        return "", []
    handed_on = {local: (base, one) for local, base, one in imports(tree[path], module).names}
    if handed_on.get(name, (module, name)) != (module, name):
        return "", [handed_on[name]]
    is_file = name and (f"{inner}.py" in tree or f"{inner}/__init__.py" in tree)
    if is_file and name not in imports(tree[path], module).defined:
        return "", [(f"{module}.{name}", "")]
    return path, None


class Imports(NamedTuple):
    """Imports anywhere in a file: local name, module and name there. beginnings: prefixes of module
    names given to `import_module`. defined: the file's own functions and classes.
    """

    names: tuple[tuple[str, str, str], ...]
    beginnings: tuple[str, ...]
    defined: frozenset[str]


@cache
def imports(source: bytes, package: str) -> Imports:
    """Read a file's imports; relative ones are resolved from its package."""
    names, beginnings, tree = [], [], ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names += [(alias.asname or alias.name, base, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [(alias.asname or alias.name, alias.name, "") for alias in node.names]
        elif isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            text = ast.unparse(node.args[0]).strip("f'\"").replace("{__package__}", package)
            start = text.partition("{")[0]
            start = package + start if start.startswith(".") else start
            if called in BY_NAME and start.startswith(tuple(f"{one}." for one in PACKAGES)):
                beginnings.append(start)
    defined = {node.name for node in tree.body if isinstance(node, DOCUMENTED[1:])}
    return Imports(tuple(names), tuple(beginnings), frozenset(defined))


def _package(path: str) -> str:
    """The package from which a file's relative imports are resolved."""
    return path.rpartition("/")[0].replace("/", ".")


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

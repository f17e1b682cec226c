"""Which code that a result depends on is no longer what it was when the result was made.

Compared are definitions, not files: those that an experiment's `perform` names, those that these
name, and so on, in the commit that the result was made under and in the code of today. Comments,
docstrings, annotations, the wording of errors, checks that can only refuse, and the file that a
definition stands in change no number and are left out. What the runner hands to a run, its text
and its clock, is left out too; of the text a record has the checksum.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Any

from .code import (
    KERNELS,
    LAUNCHES,
    PACKAGES,
    absolute,
    code_digest,
    git_bytes,
    module_name,
    package_files,
)
from .definitions import AT_IMPORT, Module, Part
from .record import ROOT

# Modules that refuse arguments, or keep a number and say what it is, but make none.
MAKES_NO_NUMBER = {
    "checks",
    "errors",
    "files",
    "plan",
    "provenance",
    "record",
    "stopping",
    "tables",
}
IMPORTING = "what it does at import"  # how a reader is told of AT_IMPORT

Name = tuple[str, str]  # a module and a name in it
Changes = dict[str, set[str]]  # by file, the names whose code differs


def changed_since(experiment: str, record: dict[str, Any]) -> Changes | None:
    """By file, the definitions behind a record that are not what they were. None: cannot tell.

    That is so where no commit holds the code, or none that can be read here.
    """
    origin = record["provenance"]
    if origin.get("code") == _digest_today(experiment):
        return {}
    commits = {leg["commit"] for leg in (origin, *origin.get("legs", []))}
    if origin["dirty"] or "unknown" in commits or any(_at(one) is None for one in commits):
        return None
    found: Changes = {}
    on_gpu, words = origin["device"]["kind"] == "cuda", frozenset(_words(record["config"]))
    for commit in commits:
        for file, names in _between(commit, experiment, words, on_gpu).items():
            found.setdefault(file, set()).update(names)
    return found


_digest_today = cache(code_digest)


@cache
def _between(commit: str, experiment: str, words: frozenset[str], on_gpu: bool) -> Changes:
    """What differs between a commit that can be read and today."""
    before = _at(commit)
    assert before is not None
    return differences(before, _today(), experiment, words, on_gpu)


def differences(
    before: Code, today: Code, experiment: str, words: Iterable[str] = (), on_gpu: bool = False
) -> Changes:
    """By file, the definitions behind an experiment that differ between two times.

    words, on_gpu: what `Code.behind` is to know of the run.
    """
    was, now = (code.behind(experiment, words, on_gpu) for code in (before, today))
    known, left = _by_name(was), _by_name(now)
    found: Changes = {}
    for (module, name), tree in now.items():
        if tree not in known.get(name, ()):
            found.setdefault(today.path(module), set()).add(name or IMPORTING)
    for module, name in was:
        if name not in left:
            found.setdefault(before.path(module), set()).add(name or IMPORTING)
    return found


def _by_name(definitions: dict[Name, str]) -> dict[str, set[str]]:
    """The code of each name, whichever modules it stands in."""
    found: dict[str, set[str]] = {}
    for (_, name), text in definitions.items():
        found.setdefault(name, set()).add(text)
    return found


def _words(value: Any) -> Iterator[str]:
    """Every text in a configuration."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        values = value.values() if isinstance(value, dict) else value
        yield from chain.from_iterable(map(_words, values))


_module = cache(Module)


def _is_kernel(module: str) -> bool:
    return any(f".{room}." in module for room in KERNELS)


class Code:
    """The source of both packages at one time."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = {module_name(path): (path, source) for path, source in files.items()}
        self._found: dict[Name, tuple[Part | None, list[Name]]] = {}

    def path(self, module: str) -> str:
        """The file of a module."""
        return self.files[module][0]

    def behind(self, experiment: str, words: Iterable[str], on_gpu: bool) -> dict[Name, str]:
        """The definitions that an experiment's `perform` reaches, with their code.

        words: those of a configuration. Of all layers those count that they name, or texts in
        the code; all where they name none.
        """
        parts: dict[Name, Part] = {}
        words, seen = set(words), set[Name]()
        waiting = {(f"experiments.{experiment}", "perform")}
        kernels = on_gpu
        while waiting := waiting - seen:
            seen |= waiting
            named: set[Name] = set()
            for found in waiting:
                part, also = self._look_up(*found)
                named.update(also)
                if part is not None:
                    parts[found] = part
                    kernels = kernels or self._compiles(found[0])
            if not named - seen:
                named = self._chosen(parts, words)
                named |= self._launched(parts) if kernels else set()
            waiting = named
        return {
            found: part.tree
            for found, part in parts.items()
            if part.tree and (kernels or not _is_kernel(found[0]))
        }

    @staticmethod
    def _chosen(parts: dict[Name, Part], words: set[str]) -> set[Name]:
        """The layers that a configuration names, and those that the code does."""
        texts = words.union(*(part.texts for part in parts.values()))
        return {
            (module, name)
            for (module, _), part in parts.items()
            for key, name in part.choices
            if key in texts or words.isdisjoint(dict(part.choices))
        }

    def _look_up(self, module: str, name: str) -> tuple[Part | None, list[Name]]:
        """What a name in a module stands for, if it is defined there; and what to look up then."""
        if (module, name) not in self._found:
            self._found[module, name] = self._looked_up(module, name)
        return self._found[module, name]

    def _looked_up(self, module: str, name: str) -> tuple[Part | None, list[Name]]:
        head, _, attribute = name.partition(".")
        if module not in self.files or module.rpartition(".")[2] in MAKES_NO_NUMBER:
            return None, []
        part = self._module(module).part(head)
        if part is not None:
            if attribute:
                return None, [(module, head)]
            return part, [(module, AT_IMPORT), *((module, one) for one in part.names)]
        found = self._module(module).imports.get(head)
        if found is None:
            return None, []
        base = absolute(self._package(module), found.level, found.module)
        inner = f"{base}.{found.name}"
        if attribute and inner in self.files and not self._defines(base, found.name):
            return None, [(inner, attribute)]
        return None, [(base, found.name)]

    def _defines(self, module: str, name: str) -> bool:
        """Whether a module has the name, its own or from elsewhere; a package's may be a file's."""
        return module in self.files and (
            name in self._module(module).names or name in self._module(module).imports
        )

    def _module(self, module: str) -> Module:
        return _module(self.files[module][1])

    def _package(self, module: str) -> str:
        is_package = self.path(module).endswith("__init__.py")
        return module if is_package else module.rpartition(".")[0]

    def _compiles(self, module: str) -> bool:
        """Whether it is a part of an experiment that takes kernels in hand itself."""
        return module.startswith("experiments.") and any(
            one.module.startswith("lsa.") and _is_kernel(f"{one.module}.{one.name}.")
            for one in self._module(module).imports.values()
        )

    def _launched(self, found: Iterable[Name]) -> set[Name]:
        """All of the kernels beside these modules, which are imported by names put together."""
        beside = {f"{module.rpartition('.')[0]}.{room}." for module, _ in found for room in KERNELS}
        return {
            (module, name)
            for module in self.files
            if module == LAUNCHES or module.startswith(tuple(beside))
            for name in self._module(module).names
        }


@cache
def _today() -> Code:
    return Code({path.relative_to(ROOT).as_posix(): path.read_bytes() for path in package_files()})


@cache
def _at(commit: str) -> Code | None:
    """The code of a commit; None where it cannot be read."""
    archive = git_bytes("archive", "--format=tar", commit, *PACKAGES)
    if archive is None:
        return None
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        return Code(
            {
                one.name: opened.read()
                for one in files
                if one.name.endswith(".py") and (opened := files.extractfile(one)) is not None
            }
        )

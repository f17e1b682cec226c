"""A source file's definitions, without what changes no number, and its imports."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any, NamedTuple

from .code import imports, parsed

DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
LAYERS = "LAYERS"
AT_IMPORT = ""  # the name of what a module does when it is imported


class Part(NamedTuple):
    """What a name stands for: its code as a tree, what that names, and what texts are in it.

    choices: of the table of all layers, which names stand for what: a run needs some of them.
    """

    tree: str
    names: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    choices: tuple[tuple[str, str], ...] = ()


class Module:
    """A file's definitions and imports."""

    def __init__(self, source: bytes) -> None:
        self._lines = source.splitlines()
        self._statements: dict[str, list[ast.stmt]] = {}
        for node in parsed(source).body:
            for name in _defines(node):
                self._statements.setdefault(name, []).append(node)
        self.imports = {one.local: one for one in imports(source)}
        self._checks = frozenset(
            one.local for one in self.imports.values() if one.module.endswith("checks")
        )

    @property
    def names(self) -> list[str]:
        """Of all its definitions."""
        return [*self._statements]

    def part(self, name: str) -> Part | None:
        """What a name defined here stands for; None for no such name."""
        if name not in self._statements:
            return None
        parts = [self._read(node) for node in self._statements[name]]
        return Part(
            "\n".join(part.tree for part in parts),
            frozenset().union(*(part.names for part in parts)),
            frozenset().union(*(part.texts for part in parts)),
            tuple(choice for part in parts for choice in part.choices),
        )

    def _read(self, node: ast.stmt) -> Part:
        decorators = [one.lineno for one in getattr(node, "decorator_list", [])]
        lines = self._lines[min([node.lineno, *decorators]) - 1 : node.end_lineno]
        return _part(b"\n".join(lines), self._checks)


def _defines(node: ast.stmt) -> list[str]:
    """The names that a statement gives a meaning to."""
    if isinstance(node, DEFINITIONS):
        registers = any("register" in ast.unparse(one) for one in node.decorator_list)
        return [AT_IMPORT if registers else node.name]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [x.id for one in targets for x in ast.walk(one) if isinstance(x, ast.Name)]
    return [] if isinstance(node, ast.Import | ast.ImportFrom) else [AT_IMPORT]


@cache  # most code is alike in most commits
def _part(statement: bytes, checks: frozenset[str]) -> Part:
    """What a statement does. checks: names of functions that can only refuse."""
    node = ast.parse(statement).body[0]
    if LAYERS in _defines(node) and isinstance(value := getattr(node, "value", None), ast.Dict):
        layers = zip(value.keys, map(ast.unparse, value.values), strict=True)
        return Part("", choices=tuple((ast.literal_eval(key), one) for key, one in layers if key))
    bare = _Bare(checks).visit(node)
    inside = [] if bare is None else [*ast.walk(bare)]
    plain = {x.id for x in inside if isinstance(x, ast.Name)}
    if isinstance(node, ast.Assign) and "table" in plain:  # a table of results is declared
        return Part("")
    dotted = {
        f"{x.value.id}.{x.attr}"
        for x in inside
        if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name)
    }
    texts = {x.value for x in inside if isinstance(x, ast.Constant) and isinstance(x.value, str)}
    tree = "" if bare is None else ast.dump(bare)
    return Part(tree, frozenset(plain | dotted), frozenset(texts))


class _Bare(ast.NodeTransformer):
    """Takes away what changes no number."""

    def __init__(self, checks: frozenset[str]) -> None:
        self.checks = checks

    def visit_ClassDef(self, node: Any) -> Any:
        if ast.get_docstring(node):
            node.body = node.body[1:]
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: Any) -> Any:
        node.returns = None
        return self.visit_ClassDef(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        return ast.Raise()

    def visit_Assert(self, node: ast.Assert) -> None:
        return None

    def visit_If(self, node: ast.If) -> Any:
        refuses = all(isinstance(one, ast.Raise) for one in node.body) and not node.orelse
        return None if refuses else self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        called = getattr(getattr(node.value, "func", None), "id", "")
        refuses = called in self.checks or called.lstrip("_").startswith("check")
        return None if refuses or isinstance(node.value, ast.Constant) else self.generic_visit(node)

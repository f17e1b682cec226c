"""The package's public names, documented from their docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Set
from types import ModuleType

import lsa

# `q, k: [B, T, H, K]` at the start of a line documents an argument.
ARGUMENT = re.compile(r"(\w+(?:, \w+)*): +(.*)", re.S)
QUOTED = re.compile(r"(?<=: )(?:ForwardRef\()?'([^']*)'\)?")
SPECIAL = re.compile(r"([\\*_$<|#])")
LONGEST = 78  # characters of a signature on one line


class Reference:
    """Every public name under its module."""

    def __repr__(self) -> str:
        return f"Reference({len(public())} names)"

    def _repr_markdown_(self) -> str:
        return "\n\n".join(part for module in modules() for part in _module(module))


def public() -> list[str]:
    """The functions and classes of the package, without its tables."""
    things = {name: getattr(lsa, name) for name in lsa.__all__}
    return [name for name, it in things.items() if inspect.isroutine(it) or inspect.isclass(it)]


def modules() -> list[ModuleType]:
    """The modules that define the public names: the operation first, then by name."""
    sources = {inspect.getmodule(getattr(lsa, name)) for name in public()}
    return sorted(
        filter(None, sources), key=lambda it: ("linear_attention" not in it.__name__, it.__name__)
    )


def _module(module: ModuleType) -> Iterator[str]:
    yield f"## `{module.__name__}`"
    yield prose(inspect.getdoc(module) or "")
    for name in public():
        thing = getattr(lsa, name)
        if thing.__module__ != module.__name__:
            continue
        yield f"### `{name}`"
        yield f"```python\n{signature(name, thing)}\n```"
        yield prose(inspect.getdoc(thing) or "", {*inspect.signature(thing).parameters})
        if inspect.isclass(thing):
            yield "\n".join(_members(thing))


def _members(kind: type) -> Iterator[str]:
    """Documented members that a class adds to its parents."""
    for name, member in vars(kind).items():
        called = inspect.isfunction(member)
        doc = member.__doc__ if called or isinstance(member, property) else None
        if name.startswith("_") or not doc:
            continue
        first = " ".join(inspect.cleandoc(doc).split("\n\n")[0].split())
        yield f"- `{kind.__name__}.{name}{'()' if called else ''}`: {escape(first)}"


def signature(name: str, thing: object) -> str:
    """`name(...)` as in Python; if it is long, with an argument a line."""
    inspected = inspect.signature(thing)  # type: ignore[arg-type]
    arguments = [QUOTED.sub(r"\1", part) for part in _parameters(inspected)]
    gives = inspected.return_annotation
    after = f" -> {gives}" if isinstance(gives, str) and gives != "None" else ""
    line = f"{name}({', '.join(arguments)}){after}"
    if len(line) <= LONGEST:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), f"){after}"])


def _parameters(inspected: inspect.Signature) -> Iterator[str]:
    starred = False
    for one in inspected.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred |= one.kind is one.VAR_POSITIONAL
        yield str(one)


def prose(docstring: str, arguments: Set[str] = frozenset()) -> str:
    """A docstring as Markdown: paragraphs, arguments as a list, indented formulas unchanged."""
    blocks = (block for block in docstring.split("\n\n") if block.strip())
    return "\n\n".join(_block(block, arguments) for block in blocks)


def _block(block: str, arguments: Set[str]) -> str:
    lines = block.splitlines()
    if all(line.startswith("    ") for line in lines):
        return f"```text\n{inspect.cleandoc(block)}\n```"
    parts: list[str] = []
    for line in lines:
        if _argument(line, arguments) or not parts:
            parts.append(line)
        else:
            parts[-1] += f" {line.strip()}"
    matches = [_argument(part, arguments) for part in parts]
    return "\n".join(
        f"- `{match[1]}`: {escape(match[2])}" if match else escape(part)
        for part, match in zip(parts, matches, strict=True)
    )


def _argument(line: str, arguments: Set[str]) -> re.Match | None:
    match = ARGUMENT.match(line)
    return match if match and {*match[1].split(", ")} <= arguments else None


def escape(text: str) -> str:
    """Text with its Markdown characters escaped, except between backticks."""
    parts = text.split("`")
    parts[::2] = (SPECIAL.sub(r"\\\1", plain) for plain in parts[::2])
    return "`".join(parts)

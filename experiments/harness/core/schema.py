"""The schema of a run's record as types, and `check_schema`.

`Must` adds conditions to a value's type.
"""

from __future__ import annotations

import math
import re
import typing
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict

from .tables import check_values, is_text

SCHEMA = 2
MOST = 100  # characters; names become parts of paths
NAMES = {float: "int or float", list: "a list", dict: "an object"}  # in messages


class Must(NamedTuple):
    """A condition on a value besides its type: in words, and as a function."""

    be: str
    holds: Callable[[Any], Any]


def slug(text: str) -> str:
    """A name for a folder: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _is_short(name: str) -> bool:
    return bool(slug(name)) and len(name) <= MOST


def _has_zone(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


_NAME = re.compile(rf"(?!.*\.partial$)[A-Za-z0-9][A-Za-z0-9_.+-]{{,{MOST - 1}}}")
Name = Annotated[str, Must("a name fit for a file", _NAME.fullmatch)]
SHA256 = Annotated[str, Must("64 hexadecimal digits", re.compile("[0-9a-f]{64}").fullmatch)]
Commit = Annotated[str, Must("40 hexadecimal digits", re.compile("[0-9a-f]{40}|unknown").fullmatch)]
Count = Annotated[int, Must("a number above 0", lambda count: count > 0)]


class Leg(TypedDict):
    """A process that performed part of a run."""

    commit: Commit
    dirty: bool
    started: Annotated[str, Must("a date, time and zone", _has_zone)]
    seconds: Annotated[float, Must("0 or more", lambda seconds: 0 <= seconds < 10**9)]


class Device(TypedDict):
    """The device of a run. count: threads or GPUs."""

    kind: Annotated[str, Must("cpu or cuda", {"cpu", "cuda"}.__contains__)]
    name: Annotated[str, Must(f"a name of at most {MOST} characters", _is_short)]
    count: Annotated[Count, Must("fewer than a million", lambda count: count < 10**6)]
    memory_bytes: Count


class Spread(TypedDict):
    """How a training was spread over ranks. tokens_per_second: of each rank."""

    world_size: Count
    mesh: dict[str, int]
    tokens_per_second: float


class Provenance(Leg):
    """Where the numbers come from. commit: of the last leg; dirty: if any leg's code was edited."""

    command: str
    seed: int
    device: Device
    versions: Annotated[dict[str, str | None], Must("what it ran with", len)]
    corpus: NotRequired[SHA256 | None]
    code: NotRequired[SHA256]
    legs: NotRequired[list[Leg]]
    ranks: NotRequired[Spread]
    warnings: NotRequired[list[str]]


class Contents(TypedDict):
    """A record as a run writes it. A table is a set of columns of equal length."""

    schema: Annotated[int, Must(str(SCHEMA), lambda schema: schema == SCHEMA)]
    experiment: Name
    name: Name
    config: Annotated[dict[str, Any], Must("what was run", len)]
    complete: bool
    provenance: Provenance
    units: dict[str, str]
    tables: dict[str, dict[str, list]]
    weights: NotRequired[dict[str, Any]]


class Record(Contents):
    """A record as it is read: signed, and with its path relative to the project."""

    digest: str
    path: str


def check_schema(record: Any) -> None:
    """Raise ValueError, starting with the field, unless a record follows the schema."""
    if not isinstance(record, dict):
        raise ValueError("expected a JSON object")
    _check("", {key: record[key] for key in record if key != "digest"}, Contents)
    origin, tables = record["provenance"], record["tables"]
    legs = {f"legs[{i}].": leg for i, leg in enumerate(origin.get("legs", []))}
    for where, leg in {"": origin, **legs}.items():
        if leg["commit"] == "unknown" and not leg["dirty"]:
            raise ValueError(f"provenance.{where}dirty: expected true where the commit is unknown")
    check_values(tables, record["units"])
    if record["complete"] and not any(any(columns.values()) for columns in tables.values()):
        raise ValueError("tables: expected rows, got none")


def _check(where: str, value: Any, kind: Any) -> None:
    """Raise ValueError unless a value, with its parts, is of a type. where: its field."""
    if kind is Any:  # anything that JSON can hold
        kind = {dict: dict[str, Any], list: list[Any]}.get(type(value), type(value))
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        _check(where, value, inside[0])
        for must in inside[1:]:
            if not must.holds(value):
                got = "nothing" if value == {} else f"{value!r:.40}"
                raise ValueError(f"{where}: expected {must.be}, got {got}")
    elif type(None) in inside:  # an optional type
        if value is not None:
            _check(where, value, inside[0])
    elif typing.is_typeddict(kind):
        _check_type(where, value, dict)
        _check_fields(f"{where}." if where else "", value, kind)
    else:
        _check_type(where, value, origin or kind)
        for key in value if origin is dict else ():
            _check_type(where, key, str)
            _check(f"{where}.{key}", value[key], inside[1])
        for i in range(len(value) if origin is list else 0):
            _check(f"{where}[{i}]", value[i], inside[0])


def _check_fields(where: str, value: dict[str, Any], kind: Any) -> None:
    fields = _fields(kind)
    for field, of in fields.items():
        optional = typing.get_origin(of) is NotRequired
        if field in value:
            _check(where + field, value[field], typing.get_args(of)[0] if optional else of)
        elif not optional:
            raise ValueError(f"{where}{field}: missing")
    for field in value.keys() - fields.keys():
        raise ValueError(f"{where}{field}: not a field of a record")


@cache
def _fields(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _check_type(where: str, value: Any, kind: type) -> None:
    kinds = (int, float) if kind is float else kind
    if not isinstance(value, kinds) or (isinstance(value, bool) and kind is not bool):
        name = NAMES.get(kind, kind.__name__)
        raise ValueError(f"{where}: expected {name}, got {value!r:.40}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where}: expected a finite number, got {value}")
    if isinstance(value, str) and not is_text(value):
        raise ValueError(f"{where}: expected text that UTF-8 can hold, got {value!r:.40}")

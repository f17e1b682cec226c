"""The schema of a run's record as types, and `check_schema`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from .tables import check_values, told

MOST = 100  # characters; names become parts of paths


def slug(text: str) -> str:
    """A name for a folder: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


Name = Annotated[
    str, Meta(pattern=rf"^(?!.*\.partial\Z)[A-Za-z0-9][A-Za-z0-9_.+-]{{,{MOST - 1}}}\Z")
]
SHA256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Commit = Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|unknown)\Z")]
Count = Annotated[int, Meta(gt=0)]
DATE, TIME, ZONE = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d:\d\d(\.\d+)?", r"[+-]\d\d:\d\d"


class Leg(TypedDict):
    """A process that performed part of a run."""

    commit: Commit
    dirty: bool
    started: Annotated[str, Meta(pattern=rf"^{DATE}T{TIME}{ZONE}\Z")]
    seconds: Annotated[float, Meta(ge=0, lt=10**9)]


class Device(TypedDict):
    """The device of a run. count: threads or GPUs."""

    kind: Literal["cpu", "cuda"]
    name: Annotated[str, Meta(max_length=MOST, pattern="[A-Za-z0-9]")]
    count: Annotated[int, Meta(gt=0, lt=10**6)]
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
    versions: Annotated[dict[str, str | None], Meta(min_length=1)]
    corpus: NotRequired[SHA256 | None]
    code: NotRequired[SHA256]
    legs: NotRequired[list[Leg]]
    ranks: NotRequired[Spread]
    warnings: NotRequired[list[str]]


class Contents(TypedDict):
    """A record as a run writes it. A table is a set of columns of equal length."""

    schema: Literal[2]
    experiment: Name
    name: Name
    config: Annotated[dict[str, Any], Meta(min_length=1)]
    complete: bool
    provenance: Provenance
    units: dict[str, str]
    tables: dict[str, dict[str, list]]
    weights: NotRequired[dict[str, Any]]


class Record(Contents):
    """A record as it is read: signed, and with its path relative to the project."""

    digest: str
    path: str


SCHEMA: Literal[2] = 2


def check_schema(record: Any) -> None:
    """Raise ValueError, starting with the field, unless a record follows the schema."""
    with told():
        msgspec.convert(record, Contents)
    origin, tables = record["provenance"], record["tables"]
    for where, part, kind in ("", record, Record), ("provenance.", origin, Provenance):
        for field in part.keys() - kind.__annotations__.keys():
            raise ValueError(f"{where}{field}: not a field of a record")
    legs = {f"legs[{i}].": leg for i, leg in enumerate(origin.get("legs", []))}
    for where, leg in {"": origin, **legs}.items():
        if leg["commit"] == "unknown" and not leg["dirty"]:
            raise ValueError(f"provenance.{where}dirty: expected true where the commit is unknown")
    check_values(tables, record["units"])
    if record["complete"] and not any(any(columns.values()) for columns in tables.values()):
        raise ValueError("tables: expected rows, got none")

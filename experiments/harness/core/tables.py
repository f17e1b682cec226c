"""Tables of results: columns of equal length, declared by an experiment, filled row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

Columns = dict[str, list]
Tables = dict[str, Columns]

INCREASING = True
# Units of columns of text; "thousandths" is a list of numbers separated by spaces.
WORDS = ("name", "yes or no", "text", "thousandths")
# Units of quantities that cannot be negative; a loss in nats or a plain number can be.
COUNTS = {"layers", "heads", "features", "sequences", "updates", "calls", "launches", "programs"}
NOT_NEGATIVE = {"s", "B", "FLOP", "B/s", "FLOP/s", "tokens", "tokens/s"} | COUNTS
LARGEST = 1e100  # squares of larger numbers overflow


# The column that names a row's calls; `pass` is not a valid name in Python.
PASS: dict[str, Any] = {"pass": ("name", "`forward` or `forward+backward`")}
PASSES = ("forward", "forward+backward")


class Column(NamedTuple):
    """A column's unit and meaning. increasing: whether each value is larger than the last."""

    unit: str
    meaning: str
    increasing: bool = False


@dataclass(frozen=True)
class Table:
    """A table. columns: in order. optional: when it may be absent or empty; "" for never."""

    columns: dict[str, Column]
    optional: str = ""


def table(*, optional: str = "", **columns: tuple) -> Table:
    """Declare a table, each column as (unit, meaning) or (unit, meaning, INCREASING)."""
    return Table({name: Column(*column) for name, column in columns.items()}, optional)


def append(tables: Tables, table: str, row: Mapping[str, Any]) -> None:
    """Add a row with the table's columns. Raises ValueError if its names differ."""
    columns = tables.setdefault(table, {})
    if not columns:
        columns |= {name: [] for name in row}
    if columns.keys() != row.keys():
        raise ValueError(
            f"{table}: expected the columns {', '.join(columns)}, got {', '.join(row)}"
        )
    for name, value in row.items():
        columns[name].append(value)


def check_values(tables: Tables, units: Mapping[str, str]) -> None:
    """Raise ValueError unless the tables hold finite numbers and texts, with units."""
    for name, columns in tables.items():
        lengths = {column: len(values) for column, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"tables.{name}: columns differ in length {lengths}")
        for column, values in columns.items():
            if column not in units:
                raise ValueError(f"tables.{name}.{column}: no unit")
            with told(f"tables.{name}.{column}"):
                msgspec.convert(values, _kind(units[column]))


def check_declared(
    tables: Tables, declared: Mapping[str, Table], units: Mapping[str, str], *, complete: bool
) -> None:
    """Raise ValueError unless `tables` are the declared ones; incomplete runs may lack some."""
    for name in tables:
        if name not in declared:
            raise ValueError(f"tables.{name}: expected one of {', '.join(declared)}")
    for name, expected in declared.items():
        found = tables.get(name)
        if not found or not any(found.values()):
            if complete and not expected.optional:
                raise ValueError(f"tables.{name}: expected rows, got none")
            if not found:
                continue
        if found.keys() != expected.columns.keys():
            raise ValueError(
                f"tables.{name}: expected the columns {', '.join(expected.columns)}, "
                f"got {', '.join(found)}"
            )
        for column, values in found.items():
            unit, _, increasing = expected.columns[column]
            if units.get(column) != unit:
                raise ValueError(f"units.{column}: expected {unit!r}, got {units.get(column)!r}")
            if increasing and any(after <= before for before, after in pairwise(values)):
                raise ValueError(f"tables.{name}.{column}: expected increasing values")


def check_repeated(tables: Tables) -> None:
    """Raise ValueError for a table in which every row occurs more than once."""
    for name, columns in tables.items():
        times = Counter(zip(*columns.values(), strict=True))
        if times and min(times.values()) > 1:
            raise ValueError(f"tables.{name}: expected rows that differ, got each more than once")


@contextmanager
def told(where: str = "") -> Iterator[None]:
    """Context in which a wrong value becomes a ValueError that starts with its field."""
    try:
        yield
    except msgspec.MsgspecError as error:
        expected, _, field = str(error).partition(" - at `$")
        field = f"{where}{field.rstrip('`')}".lstrip(".")
        raise ValueError(f"{field or 'record'}: {expected[0].lower()}{expected[1:]}") from error


@cache
def _kind(unit: str) -> Any:
    """The type of a column of a unit."""
    if unit in WORDS:
        return list[str]
    least = 0 if unit in NOT_NEGATIVE else -LARGEST
    whole = 1 if unit in COUNTS else None
    return list[Annotated[float, Meta(ge=least, le=LARGEST, multiple_of=whole)]]

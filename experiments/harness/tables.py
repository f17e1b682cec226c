"""Tables of results: columns of one length, filled row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Columns = dict[str, list]
Tables = dict[str, Columns]


def append(tables: Tables, table: str, row: Mapping[str, Any]) -> None:
    """Add a row, whose names are the table's columns. Raises ValueError when they are others."""
    columns = tables.setdefault(table, {})
    if not columns:
        columns |= {name: [] for name in row}
    if columns.keys() != row.keys():
        raise ValueError(
            f"{table}: expected the columns {', '.join(columns)}, got {', '.join(row)}"
        )
    for name, value in row.items():
        columns[name].append(value)

"""One run, one JSON file: how results are written, named, checked and read back.

A record holds `schema`, `experiment`, `name`, `config`, `complete`, `provenance`, `units` and
`tables`; a table is a set of columns of one length. results/README.md describes every column.
Reading checks everything and says which file and which field is wrong.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .files import replace_with

SCHEMA = 1
ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
PARTIAL = ".partial.json"

FIELDS = {
    "schema": int,
    "experiment": str,
    "name": str,
    "config": dict,
    "complete": bool,
    "provenance": dict,
    "units": dict,
    "tables": dict,
}
PROVENANCE_FIELDS = (
    "commit",
    "dirty",
    "command",
    "started",
    "seconds",
    "seed",
    "device",
    "versions",
)
DEVICE_FIELDS = ("kind", "name", "count", "memory_bytes")
# Quantities that cannot be negative, by unit; a loss in nats or a plain number can be.
NOT_NEGATIVE = {"s", "B", "FLOP", "B/s", "FLOP/s", "tokens", "updates", "tokens/s"}


class RecordError(Exception):
    """A result that cannot be read or written; the message names the file and the field."""


class WriteError(RecordError):
    """A result that is sound and finds no place; the message names the file and the reason."""


def slug(text: str) -> str:
    """A name fit for a folder: lower case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def device_folder(device: dict[str, Any]) -> str:
    """The folder of one kind of device: `nvidia-h200`, `cpu-amd-epyc-2`."""
    prefix = "cpu-" if device["kind"] == "cpu" else ""
    suffix = f"-{device['count']}" if device["kind"] == "cpu" or device["count"] > 1 else ""
    return prefix + slug(device["name"]) + suffix


def path_of(out: Path, experiment: str, device: dict[str, Any], name: str) -> Path:
    """Where the record of a run lies: <out>/<experiment>/<device>/<name>.json."""
    return Path(out) / experiment / device_folder(device) / f"{name}.json"


def partial_path(path: Path) -> Path:
    """Beside `path`, where a run that has not ended keeps what it has."""
    return path.with_name(path.stem + PARTIAL)


def write(path: Path, record: dict[str, Any], *, overwrite: bool = False) -> None:
    """Check a record and put it at `path` whole: a temporary file, synced, then renamed.

    Raises RecordError when the record is not valid or when `path` exists and overwrite is False,
    WriteError when the folder cannot be written to.
    """
    check(record, str(path))
    if path.exists() and not overwrite:
        raise RecordError(f"{path}: exists already; --force replaces it")
    try:
        replace_with(path, (_layout(record) + "\n").encode())
    except OSError as error:
        raise WriteError(
            f"{path}: cannot be written ({error.strerror}); choose another folder with --out"
        ) from error


def read(path: Path) -> dict[str, Any]:
    """Read one record and check it. Raises RecordError naming the file and the field."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_reject)
    except ValueError as error:
        raise RecordError(f"{path}: not a whole JSON file ({error})") from error
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from error
    check(record, str(path))
    return record


def load(
    experiment: str | None = None, results: Path = RESULTS, *, partial: bool = True
) -> list[dict[str, Any]]:
    """All records of an experiment (or of all), each with its `path` relative to the project.

    A run that was stopped is included, with complete = False, unless partial is False.
    """
    return [{**read(path), "path": _relative(path)} for path in paths(results, experiment, partial)]


def paths(results: Path, experiment: str | None = None, partial: bool = True) -> Iterator[Path]:
    """The files of stored runs, in a fixed order; a partial one only where no whole one is."""
    for path in sorted(Path(results).glob(f"{experiment or '*'}/*/*.json")):
        if path.name.startswith("."):
            continue
        if path.name.endswith(PARTIAL):
            whole = path.with_name(path.name.removesuffix(PARTIAL) + ".json")
            if not partial or whole.exists():
                continue
        yield path


def rows(tables: dict[str, dict[str, list]]) -> int:
    """How far a run is: the rows of all its tables."""
    return sum(min(map(len, columns.values()), default=0) for columns in tables.values())


def check(record: Any, where: str) -> None:
    """Raise RecordError, starting with `where`, unless the record keeps the schema."""

    def expect(condition: bool, message: str) -> None:
        if not condition:
            raise RecordError(f"{where}: {message}")

    expect(isinstance(record, dict), "expected a JSON object")
    schema = record.get("schema")
    expect(schema == SCHEMA, f"schema: expected {SCHEMA}, got {schema!r}")
    for field, kind in FIELDS.items():
        expect(field in record, f"{field}: missing")
        expect(isinstance(record[field], kind), f"{field}: expected {kind.__name__}")
    provenance = record["provenance"]
    for field in PROVENANCE_FIELDS:
        expect(field in provenance, f"provenance.{field}: missing")
    for field in DEVICE_FIELDS:
        expect(field in provenance["device"], f"provenance.device.{field}: missing")
    for table, columns in record["tables"].items():
        expect(isinstance(columns, dict), f"tables.{table}: expected columns")
        lengths = {name: len(values) for name, values in columns.items()}
        expect(
            len(set(lengths.values())) <= 1, f"tables.{table}: columns differ in length {lengths}"
        )
        for name, values in columns.items():
            _check_column(f"{where}: tables.{table}.{name}", values, record["units"].get(name))


def _check_column(where: str, values: list, unit: str | None) -> None:
    if unit is None:
        raise RecordError(f"{where}: no unit")
    for i, value in enumerate(values):
        if isinstance(value, str):
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RecordError(f"{where}[{i}]: expected a number or a string, got {value!r}")
        if not math.isfinite(value):
            raise RecordError(f"{where}[{i}]: expected a finite number, got {value}")
        if unit in NOT_NEGATIVE and value < 0:
            raise RecordError(f"{where}[{i}]: expected 0 or more {unit}, got {value}")


def _reject(constant: str) -> None:
    raise ValueError(f"{constant} is not a finite number")


def _layout(value: Any, indent: str = "") -> str:
    """JSON with one line a column, so that a difference between two runs can be read."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = indent + "  "
    lines = [f"{inner}{json.dumps(key)}: {_layout(item, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _relative(path: Path) -> str:
    path = Path(path).resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)

"""What a record of a run holds, and how it is told from what is none.

`Contents` and `Record` name its fields; a table is a set of columns of one length.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any, NotRequired, TypedDict, get_origin, get_type_hints

from .tables import check_values, is_text

SCHEMA = 2


class Contents(TypedDict):
    """What a run writes."""

    schema: int
    experiment: str
    name: str
    config: dict[str, Any]
    complete: bool
    provenance: dict[str, Any]
    units: dict[str, str]
    tables: dict[str, dict[str, list]]


class Record(Contents):
    """What is read back: signed, and with its place relative to the project."""

    digest: str
    path: str
    weights: NotRequired[dict[str, Any]]


FIELDS = {field: get_origin(kind) or kind for field, kind in get_type_hints(Contents).items()}
PROVENANCE = {
    "commit": str,
    "dirty": bool,
    "command": str,
    "started": str,
    "seconds": (int, float),
    "seed": int,
    "device": dict,
    "versions": dict,
}
OPTIONAL_PROVENANCE = {"corpus": (str, type(None)), "warnings": list, "legs": list, "code": str}
LEG = {"commit": str, "dirty": bool, "started": str, "seconds": (int, float)}
DEVICE = {"kind": str, "name": str, "count": int, "memory_bytes": int}
# Names become parts of paths.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")
COMMIT = re.compile(r"[0-9a-f]{40}|unknown")
SHA256 = re.compile(r"[0-9a-f]{64}")
LONGEST_NAME = 100  # characters of a device's, which becomes part of a path too


def slug(text: str) -> str:
    """A name fit for a folder: lower case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def check_schema(record: Any) -> None:
    """Raise ValueError, starting with the field, unless a record is as it should be."""
    if not isinstance(record, dict):
        raise ValueError("expected a JSON object")
    if record.get("schema") != SCHEMA:
        raise ValueError(f"schema: expected {SCHEMA}, got {record.get('schema')!r:.40}")
    _check_fields("", record, FIELDS, {"digest": str, "weights": dict})
    for field in ("experiment", "name"):
        if not NAME.fullmatch(record[field]) or record[field].endswith(".partial"):
            raise ValueError(f"{field}: expected a name fit for a file, got {record[field]!r:.40}")
    for field in ("config", "provenance", "units", "weights"):
        _check_plain(field, record.get(field))
    if not record["config"]:
        raise ValueError("config: expected what was run, got nothing")
    _check_provenance(record["provenance"])
    for unit in record["units"].values():
        if not isinstance(unit, str):
            raise ValueError(f"units: expected texts, got {unit!r:.40}")
    check_values(record["tables"], record["units"])
    _check_plain("tables", {name: [*columns] for name, columns in record["tables"].items()})
    if record["complete"] and not any(
        len(values) for columns in record["tables"].values() for values in columns.values()
    ):
        raise ValueError("tables: expected rows, got none")


def _check_provenance(provenance: dict[str, Any]) -> None:
    _check_fields("provenance.", provenance, PROVENANCE, OPTIONAL_PROVENANCE)
    _check_leg("provenance.", provenance)
    for i, leg in enumerate(provenance.get("legs", [])):
        if not isinstance(leg, dict):
            raise ValueError(f"provenance.legs[{i}]: expected an object")
        _check_fields(f"provenance.legs[{i}].", leg, LEG)
        _check_leg(f"provenance.legs[{i}].", leg)
    device = provenance["device"]
    _check_fields("provenance.device.", device, DEVICE)
    if device["kind"] not in ("cpu", "cuda"):
        raise ValueError(f"provenance.device.kind: expected cpu or cuda, got {device['kind']!r}")
    if not slug(device["name"]) or len(device["name"]) > LONGEST_NAME:
        raise ValueError(
            f"provenance.device.name: expected a name of at most {LONGEST_NAME} characters, "
            f"got {device['name']!r:.40}"
        )
    if not 0 < device["count"] < 10**6 or device["memory_bytes"] <= 0:
        raise ValueError("provenance.device: expected a count and memory_bytes above 0")
    if not provenance["versions"]:
        raise ValueError("provenance.versions: expected what it ran with, got nothing")
    for name, version in provenance["versions"].items():
        if not isinstance(version, str | None):
            raise ValueError(f"provenance.versions.{name}: expected a text, got {version!r:.40}")
    for field in ("code", "corpus"):
        found = provenance.get(field)
        if found is not None and not SHA256.fullmatch(found):
            raise ValueError(
                f"provenance.{field}: expected 64 hexadecimal digits, got {found!r:.40}"
            )
    if not all(isinstance(warning, str) for warning in provenance.get("warnings", [])):
        raise ValueError("provenance.warnings: expected texts")


def _check_leg(where: str, leg: dict[str, Any]) -> None:
    """What a record says of itself and of each of its legs."""
    if not COMMIT.fullmatch(leg["commit"]):
        raise ValueError(
            f"{where}commit: expected 40 hexadecimal digits, got {leg['commit']!r:.50}"
        )
    if leg["commit"] == "unknown" and not leg["dirty"]:
        raise ValueError(f"{where}dirty: expected true where the commit is unknown")
    if not 0 <= leg["seconds"] < 10**9:
        raise ValueError(f"{where}seconds: expected 0 or more, got {leg['seconds']!r:.40}")
    try:
        aware = datetime.fromisoformat(leg["started"]).tzinfo
    except ValueError:
        aware = None
    if aware is None:
        raise ValueError(
            f"{where}started: expected a date, time and zone, got {leg['started']!r:.40}"
        )


def _check_plain(where: str, value: Any) -> None:
    """Raise ValueError for what can be read from JSON and not be written."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where}: expected a finite number, got {value}")
    if isinstance(value, str) and not is_text(value):
        raise ValueError(f"{where}: expected text that UTF-8 can hold, got {value!r:.40}")
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_plain(where, key)
            _check_plain(f"{where}.{key}", inner)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            _check_plain(f"{where}[{i}]", inner)


def _check_fields(
    where: str, found: dict[str, Any], kinds: dict[str, Any], optional: dict[str, Any] | None = None
) -> None:
    for field, kind in kinds.items():
        if field not in found:
            raise ValueError(f"{where}{field}: missing")
        _check_kind(where + field, found[field], kind)
    optional = optional or {}
    for field in found.keys() - kinds.keys():
        if field not in optional:
            raise ValueError(f"{where}{field}: not a field of a record")
        _check_kind(where + field, found[field], optional[field])


def _check_kind(where: str, value: Any, kind: Any) -> None:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        names = " or ".join("null" if one is type(None) else one.__name__ for one in kinds)
        raise ValueError(f"{where}: expected {names}, got {value!r:.40}")

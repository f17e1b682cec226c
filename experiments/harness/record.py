"""One run, one JSON file: how results are written, named, checked and read back.

`Contents` and `Record` say what a record holds; a table is a set of columns of one length. Reading
checks everything and says which file and which field is wrong. What a table's columns are, an
experiment declares: `check_declared` in `tables`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict, cast, get_origin, get_type_hints

from .files import replace_with
from .tables import check_values

SCHEMA = 2
ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
PARTIAL = ".partial.json"


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
    """Sign a record, check it and put it at `path` whole: synced under another name, then renamed.

    Raises RecordError when the record is not valid or when `path` exists and overwrite is False,
    WriteError when the folder cannot be written to.
    """
    check(record, str(path), signed=False)
    record = sign(record)
    if path.exists() and not overwrite:
        raise RecordError(f"{path}: exists already; --force replaces it")
    try:
        replace_with(path, (_layout(record) + "\n").encode())
    except OSError as error:
        raise WriteError(
            f"{path}: cannot be written ({error.strerror}); choose another folder with --out"
        ) from error


def read(path: Path, *, older: bool = False) -> dict[str, Any]:
    """Read one record and check it. Raises RecordError naming the file and the field.

    older: also accept schema 1, which had no digest, and return it as one of this schema.
    """
    if Path(path).exists() and not Path(path).is_file():  # a pipe would be waited for
        raise RecordError(f"{path}: expected a regular file")
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_reject)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path}: not a whole JSON file ({error})") from error
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from error
    if older and isinstance(record, dict) and record.get("schema") == 1:
        record = sign(record)
    check(record, str(path))
    return record


def sign(record: dict[str, Any]) -> dict[str, Any]:
    """The record with this schema's number and the digest of everything in it."""
    contents = {**record, "schema": SCHEMA}
    return {**contents, "digest": digest(contents)}


def digest(record: dict[str, Any]) -> str:
    """SHA-256 of a record as canonical JSON, its own `digest` left out."""
    contents = {key: value for key, value in record.items() if key != "digest"}
    text = json.dumps(contents, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def load(
    experiment: str | None = None, results: Path = RESULTS, *, partial: bool = True
) -> list[Record]:
    """All records of an experiment (or of all), each with its `path` relative to the project.

    A run that was stopped is included, with complete = False, unless partial is False. A page asks
    hundreds of times: all callers share the records, and none changes one.
    """
    return [_read_once(path) for path in paths(results, experiment, partial)]


_parsed: dict[Path, tuple[tuple[int, int], Record]] = {}


def _read_once(path: Path) -> Record:
    """A record in its place and its `path`, parsed again only when its file has changed."""
    found = path.stat()
    version = (found.st_mtime_ns, found.st_size)
    if _parsed.get(path, (None,))[0] != version:
        record = read(path)
        check_place(path, record)
        _parsed[path] = version, cast(Record, {**record, "path": _relative(path)})
    return _parsed[path][1]


def check_place(path: Path, record: dict[str, Any]) -> None:
    """Raise RecordError unless a record lies where its own fields put it."""
    place = path_of(Path(), record["experiment"], record["provenance"]["device"], record["name"])
    if not record["complete"]:
        place = partial_path(place)
    if Path(path).parts[-3:] != place.parts:
        raise RecordError(f"{path}: expected at {place}, by its own fields")


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


def check(record: Any, where: str, *, signed: bool = True) -> None:
    """Raise RecordError, starting with `where`, unless the record keeps the schema.

    signed: whether it already has its digest.
    """
    try:
        _check(record)
        if signed and digest(record) != record.get("digest"):
            raise ValueError("digest: the contents are not those that were written")
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{where}: {error}") from error


def _check(record: Any) -> None:
    if not isinstance(record, dict):
        raise ValueError("expected a JSON object")
    if record.get("schema") != SCHEMA:
        raise ValueError(f"schema: expected {SCHEMA}, got {record.get('schema')!r:.40}")
    _check_fields("", record, FIELDS, {"digest": str})
    for field in ("experiment", "name"):
        if not NAME.fullmatch(record[field]) or record[field].endswith(".partial"):
            raise ValueError(f"{field}: expected a name fit for a file, got {record[field]!r:.40}")
    if not record["config"]:
        raise ValueError("config: expected what was run, got nothing")
    _check_provenance(record["provenance"])
    for unit in record["units"].values():
        if not isinstance(unit, str):
            raise ValueError(f"units: expected texts, got {unit!r:.40}")
    check_values(record["tables"], record["units"])
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
    if not slug(device["name"]):
        raise ValueError(f"provenance.device.name: expected a name, got {device['name']!r:.40}")
    if not 0 < device["count"] < 10**6 or device["memory_bytes"] <= 0:
        raise ValueError("provenance.device: expected a count and memory_bytes above 0")
    if not provenance["versions"]:
        raise ValueError("provenance.versions: expected what it ran with, got nothing")
    for name, version in provenance["versions"].items():
        if not isinstance(version, str | None):
            raise ValueError(f"provenance.versions.{name}: expected a text, got {version!r:.40}")
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

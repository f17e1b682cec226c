"""Records: one run, one JSON file; writing, naming and reading them.

`schema` declares the fields of a record, and an experiment the columns of its tables (`tables`,
`check_declared`). Reading checks everything; errors name the file and the field.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from .files import RESULTS, ROOT, replace_with
from .schema import SCHEMA, Record, check_schema, slug

PARTIAL = ".partial.json"


class RecordError(Exception):
    """A result that cannot be read or written; the message names the file and the field."""


class WriteError(RecordError):
    """A sound result that cannot be stored; the message names the file and the reason."""


def device_folder(device: dict[str, Any]) -> str:
    """The folder of one kind of device: `nvidia-h200`, `cpu-amd-epyc-2`."""
    prefix = "cpu-" if device["kind"] == "cpu" else ""
    suffix = f"-{device['count']}" if device["kind"] == "cpu" or device["count"] > 1 else ""
    return prefix + slug(device["name"]) + suffix


def path_of(out: Path, experiment: str, device: dict[str, Any], name: str) -> Path:
    """Path of a run's record: <out>/<experiment>/<device>/<name>.json."""
    return Path(out) / experiment / device_folder(device) / f"{name}.json"


def partial_path(path: Path) -> Path:
    """Path of the partial record of a run in progress, beside `path`."""
    return path.with_name(path.stem + PARTIAL)


def write(path: Path, record: dict[str, Any]) -> None:
    """Sign a record, check it and write it whole: synced under another name, renamed to `path`.

    Raises RecordError if the record is not valid, WriteError if the folder cannot be written to.
    """
    check(record, str(path), signed=False)
    with named(path):
        contents = (_layout(sign(record)) + "\n").encode()
    put(path, contents)


def put(path: Path, *contents: bytes) -> None:
    """Write a file of results, whole or not at all. Raises WriteError."""
    try:
        replace_with(path, *contents)
    except OSError as error:
        raise WriteError(
            f"{path}: cannot be written ({error.strerror}); choose another folder with --out"
        ) from error


def read(path: Path) -> dict[str, Any]:
    """Read one record and check it. Raises RecordError naming the file and the field."""
    try:
        if Path(path).exists() and not Path(path).is_file():  # reading a pipe would wait
            raise RecordError(f"{path}: expected a regular file")
        record = msgspec.json.decode(Path(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path}: not a whole JSON file ({error})") from error
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from error
    check(record, str(path))
    return record


def sign(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the schema's number and the digest of its contents."""
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

    Stopped runs, with complete = False, are included unless partial is False. A page calls this
    thousands of times, so all callers share the records, and none may change one. Files are looked
    at again when a folder has changed, as it does when a record is written or removed.
    """
    key = (results, experiment, partial)
    folders, version, records = _loaded.get(key, ((), None, []))
    if version is None or _version(folders) != version:
        rooms = experiment or "*"
        folders = (results, *results.glob(rooms), *results.glob(f"{rooms}/*"))
        version = _version(folders)
        records = [_read_once(path) for path in paths(results, experiment, partial)]
        if version and max(version) < time.time_ns() - SETTLED:
            _loaded[key] = folders, version, records
    return [*records]


_loaded: dict[tuple, tuple[tuple[Path, ...], tuple[int, ...] | None, list[Record]]] = {}
SETTLED = 2 * 10**9  # ns; two changes within a tick of a file system's clock look like one


def _version(folders: tuple[Path, ...]) -> tuple[int, ...] | None:
    """When each was changed last; None if one is gone."""
    try:
        return tuple(folder.stat().st_mtime_ns for folder in folders)
    except OSError:
        return None


_parsed: dict[Path, tuple[tuple[int, int], Record]] = {}


def _read_once(path: Path) -> Record:
    """A record and its `path`, parsed again only if its file has changed."""
    found = path.stat()
    version = (found.st_mtime_ns, found.st_size)
    if _parsed.get(path, (None,))[0] != version:
        record = read(path)
        check_place(path, record)
        _parsed[path] = version, cast(Record, {**record, "path": _relative(path)})
    return _parsed[path][1]


def check_place(path: Path, record: dict[str, Any]) -> None:
    """Raise RecordError unless a record's path agrees with its fields."""
    place = path_of(Path(), record["experiment"], record["provenance"]["device"], record["name"])
    if not record["complete"]:
        place = partial_path(place)
    if Path(path).parts[-3:] != place.parts:
        raise RecordError(f"{path}: expected at {place}, by its own fields")


def paths(results: Path, experiment: str | None = None, partial: bool = True) -> Iterator[Path]:
    """The files of stored runs, in a fixed order; a partial one only if there is no whole one."""
    for path in sorted(Path(results).glob(f"{experiment or '*'}/*/*.json")):
        if path.name.startswith("."):
            continue
        if path.name.endswith(PARTIAL):
            whole = path.with_name(path.name.removesuffix(PARTIAL) + ".json")
            if not partial or whole.exists():
                continue
        yield path


def rows(tables: dict[str, dict[str, list]]) -> int:
    """Number of rows in all tables of a run."""
    return sum(min(map(len, columns.values()), default=0) for columns in tables.values())


def check(record: Any, where: str, *, signed: bool = True) -> None:
    """Raise RecordError, starting with `where`, unless the record follows the schema.

    signed: whether it has a digest already.
    """
    with named(where):
        check_schema(record)
        if signed and digest(record) != record.get("digest"):
            raise ValueError("digest: the contents are not those that were written")


@contextmanager
def named(where: object) -> Iterator[None]:
    """Context in which an error becomes a RecordError that starts with `where`."""
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{where}: {error}") from error


def _layout(value: Any, indent: str = "") -> str:
    """JSON with one line a column, so that diffs between runs are readable."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = indent + "  "
    lines = [
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {_layout(item, inner)}"
        for key, item in value.items()
    ]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _relative(path: Path) -> str:
    path = Path(path).resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)

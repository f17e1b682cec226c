"""Files of a run, in progress and at its end: its record, whole or partial."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import torch

from . import record
from .checkpoint import shards
from .files import one_line, remove_leftovers, set_aside
from .plan import Experiment, Leg, Run, Session, Tables
from .provenance import provenance
from .tables import check_declared
from .team import here
from .weights import WEIGHTS, describe_weights

PARTIAL_EVERY = 30.0  # seconds between two partial records of a run in progress


def checkpoint_path(out: Path, run: Run, device: dict[str, Any]) -> Path:
    """Path of a run's checkpoint; any number of ranks and of threads continues from it."""
    one = _path_for_any_count(out, run, device)
    return one.parent / ".checkpoints" / f"{run.name}.pt"


def lock_path(out: Path, run: Run, device: dict[str, Any]) -> Path:
    """Path that the run's lock is named by: one for all that would continue from its checkpoint."""
    one = _path_for_any_count(out, run, device)
    return one.parent.with_name(f"{one.parent.name}-{one.name}")


def _path_for_any_count(out: Path, run: Run, device: dict[str, Any]) -> Path:
    return record.path_of(out, run.experiment, {**device, "count": 1}, run.name)


class Keeper:
    """The files of one run: its record, the partial one beside it, its checkpoint.

    In a team only the first rank writes them.
    """

    def __init__(self, experiment: Experiment, run: Run, device: torch.device, out: Path) -> None:
        self.experiment, self.run = experiment, run
        self.origin = provenance(device, run.experiment, run.config.get("seed", 0))
        self.path = record.path_of(out, run.experiment, self.origin["device"], run.name)
        self.partial = record.partial_path(self.path)
        self.checkpoint = checkpoint_path(out, run, self.origin["device"])
        self.team = here()
        self.began = self.saved = time.monotonic()
        self.session: Session  # set by `open`
        self._latest: tuple[Tables, dict[str, int]] = ({}, {})
        self._kept_rows = 0
        self._weights: dict[str, Any] | None = None

    def open(self, session: Session, *, force: bool) -> None:
        """Read the files of an earlier attempt. force: ignore those of the run that is stored."""
        self.session = session
        self.team.first(lambda: self._open(force))

    def _open(self, force: bool) -> None:
        session = self.session
        files = self.path, self.partial, self.checkpoint
        for path in files:
            remove_leftovers(path)
        if self.path.is_file():
            try:
                record.read(self.path)
            except record.RecordError as error:
                self._set_aside(self.path, one_line(error))
        if force and self.path.is_file():
            # What is newer than the whole run is part of this one, which was stopped.
            whole = self.path.stat().st_mtime_ns
            if all(path.stat().st_mtime_ns <= whole for path in files[1:] if path.is_file()):
                for path in files[1:]:
                    path.unlink(missing_ok=True)
                shutil.rmtree(shards(self.checkpoint), ignore_errors=True)
        if not self.partial.exists():
            return
        try:
            kept = record.read(self.partial)
            problem = None if kept["config"] == self.run.config else "of another configuration"
        except record.RecordError as error:
            problem = one_line(error)
        if problem:
            self._set_aside(self.partial, problem)
        else:
            self._kept_rows = record.rows(kept["tables"])
            if kept["provenance"].get("code") == self.origin["code"]:
                session.kept = kept

    def _set_aside(self, path: Path, problem: str) -> None:
        """Rename a file that this run cannot continue from; it may be someone's work."""
        aside = set_aside(path)
        self.session.warn(f"{path.name}: {problem}; set aside as {aside.name}")

    def leg(self) -> Leg:
        """This process's part of the run so far."""
        return {
            **{key: self.origin[key] for key in ("commit", "dirty", "started")},
            "seconds": round(time.monotonic() - self.began, 1),
        }

    def save(self, tables: Tables) -> None:
        """Store these tables as a partial record, if the last one is old enough."""
        self._latest = tables, {name: record.rows({name: tables[name]}) for name in tables}
        if not self.team.leads:
            return
        if time.monotonic() - self.saved >= PARTIAL_EVERY:
            self.saved = time.monotonic()
            self.keep(tables)

    def keep_latest(self) -> None:
        """Store the tables last given to `save`, without rows that were added since."""
        tables, rows = self._latest
        self.keep(
            {
                name: {column: values[: rows[name]] for column, values in tables[name].items()}
                for name in rows
            }
        )

    def keep(self, tables: Tables) -> None:
        """Write a partial record, unless a longer one is there. No space for it: a warning."""
        if not self.team.leads or not tables or record.rows(tables) < self._kept_rows:
            return
        try:
            record.write(self.partial, self._contents(tables, complete=False))
        except record.WriteError as error:
            self.session.warn(str(error))

    def keep_weights(self, packed: bytes) -> None:
        """Write weights beside the record, before the record. Raises ValueError, RecordError."""
        if not self.team.leads:
            return
        self._weights = describe_weights(packed)
        record.put(self.path.with_suffix(WEIGHTS), packed)

    def store(self, tables: Tables) -> None:
        """Write the whole record, and remove partial files.

        Raises RecordError; tables that do not match their declaration are stored as a partial
        record.
        """
        if not self.team.leads:
            return
        contents = self._contents(tables, complete=True)
        try:
            check_declared(tables, self.experiment.tables, contents["units"], complete=True)
        except ValueError as error:
            self.keep(tables)
            raise record.RecordError(f"{self.path}: {error}") from error
        record.write(self.path, contents)
        for path in (self.partial, self.checkpoint):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:  # the result is stored all the same
                self.session.warn(f"cannot be removed: {one_line(error)}")
        shutil.rmtree(shards(self.checkpoint), ignore_errors=True)

    def _contents(self, tables: Tables, complete: bool) -> dict[str, Any]:
        legs = [*self.session.earlier, self.leg()]
        origin = {
            **self.origin,
            "dirty": any(leg["dirty"] for leg in legs),
            "started": legs[0]["started"],
            "seconds": round(sum(leg["seconds"] for leg in legs), 1),
        }
        if self.session.ranks:
            origin["ranks"] = self.session.ranks
        if len(legs) > 1:
            origin["legs"] = legs
        if self.session.warnings:
            origin["warnings"] = self.session.warnings
        contents = {
            "schema": record.SCHEMA,
            "experiment": self.run.experiment,
            "name": self.run.name,
            "config": self.run.config,
            "complete": complete,
            "provenance": origin,
            "units": {
                name: self.experiment.units.get(name)
                for columns in tables.values()
                for name in columns
            },
            "tables": tables,
        }
        return contents if self._weights is None else {**contents, "weights": self._weights}

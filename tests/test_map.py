"""The map of the house names files that exist, and its recipes work."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOY = '''"""Sums of the first integers, timed."""

from .harness.plan import Experiment, Outcome, Run, Session
from .harness.tables import Tables, append, table

TABLES = {"rows": table(count=("numbers", "how many"), total=("numbers", "their sum"))}


def runs(kind, smoke):
    """One run."""
    return [Run("toy", "ten", {"longest": 10, "seed": 0}, 1)]


def perform(config, session: Session):
    """One run, as `plan.Experiment` asks."""
    tables: Tables = {}
    for count in range(config["longest"]):
        append(tables, "rows", {"count": count, "total": sum(range(count))})
        session.save(tables)
    return Outcome(tables)


EXPERIMENT = Experiment("toy", "sums of integers", TABLES, runs, perform)
'''


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_that_is_named_exists(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    named = re.findall(r"`((?:\.?[\w-]+/)+[\w.-]*|[\w-]+\.(?:md|toml|yml|txt|lock))`", text)
    assert named
    # .venv and the like are made, not kept; NAME is whatever one adds.
    kept = [path for path in named if path[0] != "." and "NAME" not in path]
    missing = [path for path in kept if not (ROOT / path).exists()]
    assert not missing


@pytest.mark.slow
def test_an_experiment_is_one_file(tmp_path):
    """The recipe of CONTRIBUTING.md, followed in a copy."""
    for name in ("lsa", "experiments", "results"):
        ignored = shutil.ignore_patterns("__pycache__", "*.json")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    (tmp_path / "experiments" / "toy.py").write_text(TOY)

    def experiments(*arguments):
        command = [sys.executable, "-m", "experiments", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "toy" in experiments("list", "toy", "--device", "cpu")
    experiments("run", "toy", "--device", "cpu")
    assert "1 of 1 results are sound" in experiments("check")
    experiments("describe")
    described = (tmp_path / "results" / "README.md").read_text(encoding="utf-8")
    assert "| `rows.total` | numbers | their sum |" in described

"""What is installed, run in CI and shipped is what was named, and no more."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", ["test", "publish"])
def test_an_action_is_a_commit_and_says_its_version(name):
    workflow = ROOT / ".github" / "workflows" / f"{name}.yml"
    used = re.findall(r"uses: (.*)", workflow.read_text(encoding="utf-8"))
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", name) for name in used)


@pytest.mark.slow
def test_the_wheel_is_the_package_alone_with_its_types(tmp_path):
    """Built without a compiler, which it has to do without; `make` builds the body."""
    for name in ("lsa", "experiments", "book"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    build = "import setuptools.build_meta as backend; backend.build_wheel('dist')"
    subprocess.run(
        [sys.executable, "-c", build], cwd=tmp_path, check=True, capture_output=True, timeout=300,
        env={**os.environ, "CC": "false", "CXX": "false"},
    )  # fmt: skip
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"lsa"}
    assert not [name for name in names if name.endswith(".so")]
    assert "lsa/py.typed" in names and "lsa/attention/triton/tiles.py" in names

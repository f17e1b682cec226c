"""Files that ARCHITECTURE.md and CONTRIBUTING.md name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_that_is_named_exists(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    named = re.findall(r"`((?:\.?[\w-]+/)+[\w.-]*|[\w-]+\.(?:md|toml|yml|txt|lock))`", text)
    assert named
    # .venv and the like are made, not kept; NAME and CHAPTER are whatever one adds, and where.
    kept = [
        path
        for path in named
        if path[0] != "." and not {"NAME", "CHAPTER"} & {*re.findall("[A-Z]+", path)}
    ]
    missing = [path for path in kept if not (ROOT / path).exists()]
    assert not missing

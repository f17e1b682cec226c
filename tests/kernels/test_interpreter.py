"""The kernels' arithmetic, without a GPU: interpreted, against float64."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
HERE = Path(__file__).parent


def test_interpreted_kernels_agree_with_float64():
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
               "--confcutdir", str(HERE),
               str(HERE / "interpreted.py"), str(HERE / "interpreted_scans.py")]  # fmt: skip
    done = subprocess.run(
        command,
        env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]

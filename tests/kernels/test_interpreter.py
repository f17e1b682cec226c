"""The kernels' arithmetic, without a GPU: interpreted, against float64."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
HERE = Path(__file__).parent


# All of it, in parts that workers share.
PARTS = [
    ("interpreted.py", "decay or fade"),
    ("interpreted.py", "not (decay or fade)"),
    ("interpreted_scans.py", ""),
]


@pytest.mark.parametrize(("file", "some"), PARTS)
def test_interpreted_kernels_agree_with_float64(file, some):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
               "--confcutdir", str(HERE), str(HERE / file), "-k", some]  # fmt: skip
    done = subprocess.run(
        command,
        env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]

"""The kernels' arithmetic, without a GPU: interpreted, against float64."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
HERE = Path(__file__).parent


# All of it, in two parts that workers share.
@pytest.mark.parametrize("some", ["decay or fade", "not (decay or fade)"])
def test_interpreted_kernels_agree_with_float64(some):
    files = [str(HERE / name) for name in ("interpreted.py", "interpreted_scans.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
               "-p", "tests.kernels.patched_once", "--confcutdir", str(HERE), *files,
               "-k", some]  # fmt: skip
    done = subprocess.run(
        command,
        env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]

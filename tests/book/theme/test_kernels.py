"""The kernels of a build: sockets of their own, a second start, and a process that forks them."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import nbformat
import pytest
import yaml
import zmq
from jupyter_cache.executors import utils
from myst_nb.core.execute import direct

from book.theme import extension, kernels
from experiments.harness.core import record

CONNECTION = "from ipykernel.connect import get_connection_info; print(get_connection_info())"
ROOT = Path(__file__).resolve().parents[3]
# The state of a new kernel and of its parent process.
STATE = """
import json, os, sys
modules = [*sys.modules]
from experiments.harness.core import record
print(json.dumps({
    "pid": os.getpid(),
    "parent": os.getppid(),
    "threads": len(os.listdir(f"/proc/{os.getppid()}/task")),
    "modules": modules,
    "records": len(record._parsed),
    "folder": os.getcwd(),
    "told": os.environ.get("TOLD"),
    "path": sys.path,
}))
"""
# A kernel that notes each start, and ends the first of them before it answers.
FALTERING = """
import runpy, sys
with open(sys.argv[1], "a+") as starts:
    starts.write("x")
    starts.seek(0)
    count = len(starts.read())
if count > int(sys.argv.pop(2)):
    runpy.run_module("ipykernel_launcher", run_name="__main__")
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has TCP alone"),
]


@pytest.fixture(autouse=True)
def build(monkeypatch):
    """myst-nb as a build finds it."""
    monkeypatch.setattr(utils, "executenb", None)
    assert "kernels" in extension.EXTENSIONS
    kernels.setup(Mock())


def execute(source: str, kernel: str = "python3") -> str:
    """What the cell prints that myst-nb executes."""
    cells = [nbformat.v4.new_code_cell(source)]
    metadata = {"kernelspec": {"name": kernel, "display_name": kernel}}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    done = direct.single_nb_execution(notebook, cwd=None, timeout=100, allow_errors=False)
    assert done.err is None, done.exc_string
    return notebook.cells[0].outputs[0]["text"]


def test_a_build_executes_its_chapters_over_sockets_of_the_file_system(capfd):
    said = json.loads(execute(CONNECTION))
    assert said["transport"] == "ipc"
    assert not Path(said["ip"]).parent.exists()  # nothing is left of it
    assert "without encryption" not in capfd.readouterr().err


def test_sockets_fit_where_the_folder_of_temporary_files_has_a_long_path(monkeypatch, tmp_path):
    deep = tmp_path / ("x" * zmq.IPC_PATH_MAX_LEN)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    assert json.loads(execute(CONNECTION))["transport"] == "ipc"


@pytest.fixture
def faltering(monkeypatch, tmp_path):
    """Make a kernel that starts only after `fails` tries; the file that counts them."""

    def make(fails: int) -> Path:
        folder = tmp_path / "kernels" / "faltering"
        folder.mkdir(parents=True)
        script, starts = folder / "kernel.py", folder / "starts"
        script.write_text(FALTERING)
        command = [sys.executable, script, starts, fails, "-f", "{connection_file}"]
        spec = {"argv": [str(part) for part in command], "display_name": "", "language": "python"}
        (folder / "kernel.json").write_text(json.dumps(spec))
        monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
        return starts

    return make


def test_a_kernel_that_does_not_start_is_started_again(faltering):
    starts = faltering(2)
    assert execute("print(1 + 1)", "faltering") == "2\n"
    assert len(starts.read_text()) == kernels.STARTS == 3


def test_a_kernel_that_never_starts_ends_the_build(faltering, monkeypatch):
    monkeypatch.setattr("atexit.register", lambda function: None)  # nbclient leaves its own there
    starts = faltering(100)
    with pytest.raises(RuntimeError, match="Kernel died before replying"):
        execute("print(1 + 1)", "faltering")
    assert len(starts.read_text()) == kernels.STARTS


@pytest.fixture
def zygote():
    """Start the zygote of a build with modules to import. It ends with the test."""

    def make(*modules: str):
        app = SimpleNamespace(config=SimpleNamespace(kernel_imports=modules))
        kernels.start_zygote(app, None, ["one", "two"])
        return kernels.Provisioner.zygote

    if sys.platform != "linux":
        pytest.skip("elsewhere each kernel starts on its own")
    yield make
    kernels.stop_zygote()


def test_kernels_begin_with_what_chapters_import(zygote, monkeypatch):
    config = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    first = zygote(*config["kernel_imports"])
    monkeypatch.setenv("TOLD", "after the zygote")
    states = [json.loads(execute(STATE)) for _ in range(2)]
    assert states[0]["pid"] != states[1]["pid"]
    for state in states:
        assert state["parent"] == first.process.pid != os.getpid()
        assert state["threads"] == 1  # a fork copies only one
        assert {"torch", "matplotlib", "book.explorable.notebook"} <= {*state["modules"]}
        assert "triton" not in state["modules"]
        assert state["records"] == len([*record.paths(record.RESULTS)]) > 0
        assert state["told"] == "after the zygote" and state["folder"] == str(Path.cwd())
        assert not Path(f"/proc/{state['pid']}").exists()
    kernels.stop_zygote()
    assert first.process.returncode == 0


def test_a_kernel_starts_without_the_zygote_that_is_lost(zygote):
    lost = zygote()
    lost.process.kill()
    assert execute("import os; print(os.getppid())") == f"{os.getpid()}\n"


def test_a_forked_kernel_that_dies_ends_the_build(zygote):
    zygote()
    with pytest.raises(RuntimeError, match="Kernel died"):
        execute("import os; os._exit(1)")


def test_a_kernel_that_has_just_ended_can_be_told_to_end(zygote, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    forked = zygote().fork(["-f", "nowhere/kernel.json"], {**os.environ}, str(Path.cwd()))
    os.kill(forked.pid, signal.SIGKILL)
    while Path(f"/proc/{forked.pid}").exists():
        time.sleep(0.01)
    forked.send_signal(signal.SIGTERM)
    assert forked.poll() == 0

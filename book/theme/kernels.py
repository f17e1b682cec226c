"""The kernels that execute the chapters.

Pages are read in parallel, each with a kernel. Jupyter looks for free TCP ports, and the kernel
binds them later. So two kernels could be given the same ports, and the second never answered. Here
each kernel has sockets in its own folder. On Linux, kernels are forked from a zygote process.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import zmq
from jupyter_cache.executors import utils
from jupyter_client import KernelManager
from jupyter_client.client import KernelClient
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner
from nbclient import NotebookClient
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from traitlets.config import Config

from .zygote import Zygote

STARTS = 3
LAUNCHER = "ipykernel_launcher"
CONNECTION = "kernel.json"
SOCKET = "kernel-ipc-5"  # jupyter_client's name for the last of five sockets


class Provisioner(LocalProvisioner):
    """Jupyter's local provisioner, which forks Python kernels from the zygote if there is one."""

    zygote: Zygote | None = None

    async def launch_kernel(self, cmd: list[str], **options) -> KernelConnectionInfo:
        if self.zygote and cmd[0] == sys.executable and LAUNCHER in cmd:
            arguments = cmd[cmd.index(LAUNCHER) + 1 :]
            self.cwd = str(options.get("cwd") or Path.cwd())
            with suppress(OSError):  # the zygote is lost: start the kernel as usual
                self.process = self.zygote.fork(arguments, options["env"], self.cwd)
                self.pid = self.pgid = self.process.pid
                return self.connection_info
        return await super().launch_kernel(cmd, **options)


class PatientClient(NotebookClient):
    """nbclient's client of a notebook, which restarts a kernel that does not start."""

    def create_kernel_manager(self) -> KernelManager:
        manager = super().create_kernel_manager()
        manager.provisioner = Provisioner(kernel_spec=manager.kernel_spec, parent=manager)
        return manager

    async def async_start_new_kernel_client(self) -> KernelClient:
        for _ in range(STARTS - 1):
            try:
                return await super().async_start_new_kernel_client()
            except RuntimeError:  # nbclient has logged it, and cleaned up
                self.create_kernel_manager()
                await self.async_start_new_kernel()
        return await super().async_start_new_kernel_client()


def execute(notebook: NotebookNode, cwd: str | None = None, **options) -> NotebookNode:
    """nbclient's `execute`, with a `PatientClient` and a transport without ports."""
    resources = {"metadata": {"path": cwd}} if cwd else {}
    with transport() as settings:
        client = PatientClient(nb=notebook, resources=resources, config=settings, **options)
        return client.execute()


@contextmanager
def transport() -> Iterator[Config]:
    """Settings of a manager whose kernel has sockets of its own. On Windows: none."""
    if sys.platform == "win32":  # zmq has only TCP there
        yield Config()
        return
    with tempfile.TemporaryDirectory(prefix="book-", dir=_short_folder()) as folder:
        connection = str(Path(folder, CONNECTION))
        yield Config(KernelManager={"transport": "ipc", "connection_file": connection})


def _short_folder() -> str:
    """Folder for temporary folders; /tmp if the path of a socket would otherwise be too long."""
    usual = tempfile.gettempdir()
    path = Path(usual, "book-12345678", SOCKET)
    return usual if len(os.fsencode(path)) <= zmq.IPC_PATH_MAX_LEN else "/tmp"


def start_zygote(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """Start the zygote before Sphinx forks its readers, which share it. One page needs none."""
    if len(pages) > 1:
        # Every core has a kernel: more threads of torch would wait for each other most of the time.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    if sys.platform == "linux" and len(pages) > 1:
        Provisioner.zygote = Zygote(app.config.kernel_imports)


def stop_zygote(*_) -> None:
    if Provisioner.zygote:
        Provisioner.zygote.close()
        Provisioner.zygote = None


def setup(app: Sphinx) -> None:
    # jupyter-cache calls nbclient by this name, and myst-nb has no setting for it.
    utils.executenb = execute
    app.add_config_value("kernel_imports", [], "", [list])
    app.connect("env-before-read-docs", start_zygote)
    app.connect("env-updated", stop_zygote)
    app.connect("build-finished", stop_zygote)

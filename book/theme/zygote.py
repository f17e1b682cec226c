"""A process that has imported what chapters import, and forks their kernels.

To start Python, import torch and read the stored results takes a kernel longer than most chapters
compute; here it is done once. `Zygote` starts the process, which runs this file with the number of
a socket and the names of modules.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module

LARGEST = 2**20  # bytes of a message; most of them are the environment
PATIENCE = 120  # s, for all the imports on a busy computer


class Zygote:
    """The process and the socket on which it is asked for kernels. Copies of this one ask too."""

    def __init__(self, modules: Iterable[str]) -> None:
        self.asking, asked = socket.socketpair(type=socket.SOCK_SEQPACKET)
        # As a kernel's own command has it: its debugger would warn of frozen modules.
        command = [sys.executable, "-Xfrozen_modules=off", "-P", "-m", __name__]
        with asked:
            self.process = subprocess.Popen(
                [*command, str(asked.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                pass_fds=[asked.fileno()],
                start_new_session=True,  # a reader's Ctrl-C is for the build, which ends this
            )

    def fork(self, arguments: list[str], env: dict[str, str], folder: str) -> Forked:
        """A Python kernel. Raises OSError where the process has ended or does not answer."""
        alive, its = socket.socketpair()
        try:
            with its:
                message = json.dumps((arguments, env, folder)).encode()
                socket.send_fds(self.asking, [message], [its.fileno()])
            alive.settimeout(PATIENCE)
            if not (said := alive.recv(100)):
                raise ConnectionError("the zygote has ended")
        except OSError:
            alive.close()
            raise
        return Forked(int(said), alive)

    def close(self) -> None:
        self.asking.shutdown(socket.SHUT_RDWR)  # for the copies too
        self.asking.close()
        self.process.wait()


class Forked:
    """A forked kernel, with what Jupyter asks of a process. Its exit code is not known."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int, alive: socket.socket) -> None:
        self.pid, self.alive = pid, alive

    def poll(self) -> int | None:
        if self.alive.fileno() >= 0 and select.select([self.alive], [], [], 0)[0]:
            self.alive.close()
        return None if self.alive.fileno() >= 0 else 0

    wait = poll  # is asked of a process that has ended

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


def serve(asked: socket.socket) -> None:
    """Fork a kernel for each message, until nobody is left who could send one.

    With a message comes a socket, to which the kernel writes its process id. It is closed when the
    kernel ends.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a kernel ended
    gc.freeze()  # looking for garbage would copy all that kernels share
    while True:
        message, sockets, *_ = socket.recv_fds(asked, LARGEST, 1, socket.MSG_CMSG_CLOEXEC)
        if not message:
            return
        if not os.fork():
            asked.close()
            become_kernel(*json.loads(message), alive=sockets[0])
            return
        os.close(sockets[0])


def become_kernel(arguments: list[str], env: dict[str, str], folder: str, *, alive: int) -> None:
    from ipykernel.kernelapp import launch_new_instance

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    os.write(alive, str(os.getpid()).encode())
    # With this process a kernel ends too.
    launch_new_instance(argv=[*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])


if __name__ == "__main__":
    for name in ("ipykernel.kernelapp", *sys.argv[2:]):
        import_module(name)
    serve(socket.socket(fileno=int(sys.argv[1])))

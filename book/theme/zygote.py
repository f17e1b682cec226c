"""A process that has imported what chapters import, and from which their kernels are forked.

Importing torch and reading the stored results takes longer than most chapters compute. Here it is
done once for all kernels. `Zygote` starts the process, which runs this file with a socket's number
and the names of modules as arguments.
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
from contextlib import suppress
from importlib import import_module

LARGEST = 2**20  # bytes in a message, which holds the environment
PATIENCE = 120  # s, for the imports on a busy computer


class Zygote:
    """The process, and the socket that kernels are requested on, also by forks of this process."""

    def __init__(self, modules: Iterable[str]) -> None:
        self.asking, asked = socket.socketpair(type=socket.SOCK_SEQPACKET)
        # The options of a kernel's own command: its debugger warns about frozen modules.
        command = [sys.executable, "-Xfrozen_modules=off", "-P", "-m", __name__]
        with asked:
            self.process = subprocess.Popen(
                [*command, str(asked.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                pass_fds=[asked.fileno()],
                start_new_session=True,  # Ctrl-C reaches only the build, which ends this process
            )

    def fork(self, arguments: list[str], env: dict[str, str], folder: str) -> Forked:
        """A Python kernel. Raises OSError if the process has ended or does not answer."""
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
        self.asking.shutdown(socket.SHUT_RDWR)  # in all forks
        self.asking.close()
        self.process.wait()


class Forked:
    """A forked kernel, with the methods that Jupyter calls. Its exit code is not known."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int, alive: socket.socket) -> None:
        self.pid, self.alive = pid, alive

    def poll(self) -> int | None:
        if self.alive.fileno() >= 0 and select.select([self.alive], [], [], 0)[0]:
            self.alive.close()
        return None if self.alive.fileno() >= 0 else 0

    wait = poll  # Jupyter calls it only after the process has ended

    def send_signal(self, number: int) -> None:
        """Send it, unless the kernel has ended, as Jupyter expects of a process."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


def serve(asked: socket.socket) -> None:
    """Fork a kernel for each message, until the other end of `asked` is closed.

    Each message carries a socket. The kernel writes its process id to it, and it is closed when the
    kernel ends.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies: exit codes are not read
    gc.freeze()  # a garbage collection in a kernel would copy the shared pages
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
    # A kernel ends when this process does.
    launch_new_instance(argv=[*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])


if __name__ == "__main__":
    for name in ("ipykernel.kernelapp", *sys.argv[2:]):
        import_module(name)
    serve(socket.socket(fileno=int(sys.argv[1])))

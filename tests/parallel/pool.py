"""Worker processes on gloo, started once, that serve every test which needs several ranks."""

import multiprocessing
import os
import pickle
import tempfile
from datetime import timedelta
from pathlib import Path

TIMEOUT = timedelta(seconds=60)  # of an exchange that hangs
PATIENCE = 300  # s, for an answer on a busy machine
MOST = 4
# torch's compiler too: counting bytes imports it, and each rank would on its own.
PRELOADED = ["tests.parallel.tasks", "tests.parallel.training_tasks"]
PRELOADED += ["torch.distributed.fsdp", "torch._dynamo.backends.debugging", "safetensors.torch"]

# In a worker: torch's groups by their ranks, and others on which checkpoints are written.
GROUPS, SAVING = {}, {}


def server():
    """Where a process begins without a past and soon: what tests need is imported, once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


class Pool:
    """`MOST` ranks of one group, and groups of the first 1, 2, 3, ... of them."""

    def __init__(self):
        self.pipes, self.workers = [], []

    def start(self):
        self.folder = tempfile.TemporaryDirectory()
        context = server()
        for rank in range(MOST):
            mine, its = context.Pipe()
            store = str(Path(self.folder.name) / "store")
            worker = context.Process(target=serve, args=(rank, store, its), daemon=True)
            worker.start()
            its.close()
            self.pipes.append(mine)
            self.workers.append(worker)

    def run(self, size, task, *args):
        """What task(group, *args) returns on each of the first `size` ranks. Raises what it does.

        After an error the workers are ended: some may wait for others.
        """
        if not self.workers:
            self.start()
        asked = pickle.dumps((size, task, args))
        for pipe in self.pipes[:size]:
            pipe.send_bytes(asked)
        answers = []
        for pipe in self.pipes[:size]:
            if not pipe.poll(PATIENCE):
                self.close()
                raise TimeoutError("a rank did not answer")
            done, answer = pickle.loads(pipe.recv_bytes())
            if not done:
                self.close()
                raise AssertionError(answer)
            answers.append(answer)
        return answers

    def close(self):
        if not self.workers:
            return
        for worker in self.workers:
            worker.kill()
            worker.join()
        for pipe in self.pipes:
            pipe.close()
        self.workers.clear()
        self.pipes.clear()
        self.folder.cleanup()


def serve(rank, store, pipe):
    import traceback

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=MOST, timeout=TIMEOUT
    )
    for those in [(0,), (1,), (2,), (3,), (0, 1), (0, 1, 2), (2, 3)]:
        GROUPS[those] = dist.new_group([*those], timeout=TIMEOUT)
    GROUPS[(0, 1, 2, 3)] = dist.group.WORLD
    for size in range(2, MOST + 1):
        SAVING[tuple(range(size))] = dist.new_group([*range(size)], timeout=TIMEOUT)
    while True:
        try:
            size, task, args = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return
        try:
            torch.manual_seed(0)
            answer = True, task(GROUPS[tuple(range(size))], *args)
        except Exception:
            answer = False, f"rank {rank}: {traceback.format_exc()}"
        pipe.send_bytes(pickle.dumps(answer))

"""A training on several ranks is that of one process: its curve, and where it goes on from."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from experiments import loss_curves
from tests.experiments.conftest import made_corpus as made_corpus
from tests.parallel import training_tasks as tasks

pytestmark = pytest.mark.slow

BOUND = {torch.float64: 1e-9, torch.float32: 1e-4}


def config(**changes):
    run, *_ = loss_curves.runs("cpu", True)
    shape = {"scale": "nano", "shape": {"n_layer": 1, "n_head": 2, "d_model": 16}}
    text = {"context": 12, "span": 12, "spans": 4, "validation_span": 48}
    rest = {"updates": 50, "learning_rate": 1e-2, "autocast": False, "attention": "linear"}
    return {**run.config, **shape, **text, **rest, **changes}


def check(found, wanted, dtype):
    for losses, validation, _ in found:
        assert len(losses) == len(wanted[0])
        assert max(map(abs, map(float.__sub__, losses, wanted[0]))) <= BOUND[dtype]
        assert math.isclose(validation, wanted[1], abs_tol=BOUND[dtype] + 1e-12)


def both(pool, made_corpus, size, dtype, updates, task=tasks.train, **changes):
    """What a training is on ranks, and alone."""
    args = str(made_corpus), config(**changes), dtype, updates
    return pool.run(size, task, *args), tasks.train(None, *args)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "dtype", "task"),
    [(2, torch.float64, tasks.replicated), (4, torch.float64, tasks.train)],
)
def test_ranks_repeat_the_curve_of_one(pool, made_corpus, size, dtype, task):
    """Two windows an update: four ranks part these too."""
    found, wanted = both(pool, made_corpus, size, dtype, 50, task, spans=2)
    check(found, wanted, dtype)
    assert wanted[0][-1] < wanted[0][0] - 1.5  # it has learned, so that the curve says something
    assert [tuple(one[2].values()) for one in found] == [
        (2, size // 2, 1 if task is tasks.replicated else size)
    ] * size


@pytest.mark.parametrize(
    ("windows", "micro_batches", "attention", "size", "mesh"),
    [
        (4, 4, "softmax", 2, (2, 1)),  # a rank has two windows, in two parts
        (4, 3, "softmax", 3, (3, 1)),  # one has two windows, the others one
        (1, 1, "gated", 3, (1, 3)),
        (1, 1, "softmax", 2, (1, 2)),
        (2, 1, "s6", 4, (2, 2)),
    ],
)
def test_windows_and_parts_of_them(
    pool, made_corpus, windows, micro_batches, attention, size, mesh
):
    changed = {"spans": windows, "micro_batches": micro_batches, "attention": attention}
    found, wanted = both(pool, made_corpus, size, torch.float64, 3, **changed)
    check(found, wanted, torch.float64)
    assert [tuple(one[2].values()) for one in found] == [(*mesh, size)] * size


def test_blocks_are_computed_again_where_memory_is_short(pool, made_corpus):
    args = str(made_corpus), config(spans=1), torch.float64, 2
    found = pool.run(2, tasks.recompute, *args)
    check([one[:3] for one in found], tasks.train(None, *args), torch.float64)
    # Twice in each of two updates, and once for each of the five held-out novels.
    assert [one[3] for one in found] == [2 * 2 + 5] * 2


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3), (3, 2), (4, 3), (3, 1)])
def test_another_number_of_ranks_goes_on(pool, made_corpus, tmp_path, before, after):
    """Two ranks have all weights each; three and four have shards."""
    given, dtype = config(), torch.float64
    wanted = tasks.train(None, str(made_corpus), given, dtype, 6)
    checkpoint = str(tmp_path / "run.pt")

    def train(size, updates):
        args = str(made_corpus), given, dtype, updates, checkpoint, 2
        if size == 1:
            return [tasks.train(None, *args)]
        return pool.run(size, tasks.replicated if size == 2 else tasks.train, *args)

    train(before, 3)  # one update further than the checkpoint, as a run that is killed
    check(train(after, 6), (wanted[0][2:], wanted[1]), dtype)


ALONE = """
import sys
sys.modules["triton"] = None
import torch
before = set(sys.modules)

def of_ranks():
    return {name for name in sys.modules if name.startswith("torch.distributed")}

import lsa
extras = "fsdp", "checkpoint", "tensor", "_functional_collectives", "nn"
print(of_ranks() - before, [name for name in extras if f"torch.distributed.{name}" in sys.modules])
layer = torch.nn.Linear(2, 2)
layer(torch.ones(1, 2)).sum().backward()
torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
torch.optim.AdamW(layer.parameters()).step()
before = set(sys.modules)
from tests.parallel.command import run_command
run_command(sys.argv[1])
lsa.layers.mamba.S6(4)(torch.rand(1, 3, 4)).sum().backward()
print(of_ranks() - before)
"""


@pytest.mark.slow
def test_one_process_imports_nothing_of_ranks(made_corpus, tmp_path):
    """Nothing of torch.distributed, in a whole training, that torch does not import itself.

    Nor by `import lsa` alone. All of it runs without Triton.
    """
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(tmp_path / "out")],
        cwd=Path(__file__).parents[2], capture_output=True, text=True,
    )  # fmt: skip
    lsa, *_, training = done.stdout.splitlines() or [""]
    assert (lsa, training) == ("set() []", "set()"), done.stderr

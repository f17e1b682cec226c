"""What does not fit is refused before it begins; what fits if blocks are computed again is."""

import pytest
import torch

from experiments import loss_curves
from experiments.__main__ import main
from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import record, runner
from experiments.harness.core.files import in_bytes
from experiments.harness.core.plan import UsageError
from experiments.harness.core.team import TOLD, supposed
from experiments.harness.learning.shapes import memory_needed
from lsa import GPT, GPTConfig
from lsa.cost import training_memory
from tests.parallel import tasks

pytestmark = pytest.mark.slow

H100 = 80 * 10**9


def needed(scale, context, devices, **options):
    with supposed(devices):
        run = next(
            run
            for run in loss_curves.runs("cuda", False)
            if run.name == f"{scale}-linear-{context}"
        )
    return memory_needed(run.config, devices, **options)


def test_memory_is_that_of_weights_and_of_what_gradients_need():
    config = GPTConfig(
        attention="linear", vocab_size=11, n_positions=8, n_layer=3, n_head=2, d_model=6
    )
    model = GPT(config)
    weights = sum(p.numel() for p in model.parameters())
    block = sum(p.numel() for p in model.blocks[0].parameters())
    alone = 16 * weights + 5 * (3 * 6 * 36 + 11 * 8)
    assert training_memory(config, 5) == alone
    assert training_memory(config, 5, recompute=True) == alone - 5 * 6 * (2 * 36 - 3 * 4)
    shared = training_memory(config, 5, devices=4)
    assert shared == -(-16 * weights // 4) + 8 * block + 5 * (3 * 6 * 36 + 11 * 8)


def test_the_longest_context_needs_several_devices():
    """As the plan of one device has it, whose limits were found by arithmetic and by trying."""
    for scale, longest in loss_curves.LONGEST.items():
        assert needed(scale, longest, 1) < H100, scale
        if longest < 131072:
            context = {65536: 131072, 16384: 65536}[longest]
            assert needed(scale, context, 2, recompute=False) * 2 > H100, scale
        assert needed(scale, 131072, 8, recompute=False) < H100, scale
        assert needed(scale, 131072, 2) < H100, scale  # blocks are computed again


def test_the_plan_of_several_ranks_can_be_listed(capsys, tmp_path):
    wanted = ["loss_curves", "--device", "cpu", "--out", str(tmp_path), "--smoke"]
    assert main(["list", *wanted, "--ranks", "8"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(" MB a device")
    assert main(["list", *wanted, "--ranks", "16"]) == 0  # four for each of four windows
    softmax, linear = capsys.readouterr().out.splitlines()
    said = "ranks: 16 ranks share 4 pieces of text, 4 each; softmax attention expects at most one"
    assert said in softmax and linear.endswith(" MB a device")


@pytest.mark.skipif(torch.cuda.is_available(), reason="of a computer without a GPU")
def test_the_headlines_plan_is_listed_without_a_gpu(capsys):
    """On a cluster's front end, with the memory that eight GPUs need."""
    wanted = "loss_curves", "--only", "scale=1.5B,context=131072", "--device", "cuda"
    assert main(["list", *wanted, "--ranks", "8"]) == 0
    for line, attention in zip(
        capsys.readouterr().out.splitlines(), ("softmax", "linear"), strict=True
    ):
        state, _, name, number, *unit = line.split()[1:]
        assert (state, name) == ("unknown", f"1.5B-{attention}-131072")
        assert unit == ["GB", "a", "device"] and 5 < float(number) < 80


def test_a_window_that_cannot_be_split_is_refused():
    run, *_ = loss_curves.runs("cpu", True)
    with pytest.raises(UsageError) as refused:
        memory_needed({**run.config, "attention": "window"}, 8)
    said = "ranks: expected at most one for each of 4 windows, since attention window cannot be "
    assert str(refused.value) == f"{said}split, got 8"


def test_the_plan_of_eight_devices_is_one_that_they_can_run():
    """Softmax is split by heads, of which the largest models have enough."""
    with supposed(8):
        for run in loss_curves.runs("cuda", False):
            if run.config["scale"] != "nano":
                assert memory_needed(run.config, 8) < H100, run.name
                assert run.config["train_seconds"] <= 300  # "a few minutes", as the chapter says


def test_a_run_that_cannot_be_is_left_out_by_all_ranks(pool, tmp_path):
    """The headline's plan goes on: the others of it may fit. One rank says so and writes."""
    said = f"1 new result under {tmp_path}; broke off: a large"
    others = [(said, [TOLD], 0)] * 3
    assert pool.run(4, tasks.planned, str(tmp_path)) == [(said, [], 1), *others]
    assert [one["name"] for one in record.load(results=tmp_path)] == ["small"]


def test_a_run_that_cannot_fit_is_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(runner, "memory_of_rank", lambda device: 10**6)
    run, *_ = loss_curves.runs("cpu", True)
    with pytest.raises(runner.FailedError, match="broke off: loss_curves nano-softmax-64"):
        runner.run_all(EXPERIMENTS, [run], torch.device("cpu"), tmp_path)
    said = capsys.readouterr().err.splitlines()
    needs = in_bytes(memory_needed(run.config, 1))
    assert said == [
        f"[1/1] loss_curves nano-softmax-64: memory: expected {needs} for each rank, got 1 MB; "
        "more ranks need less each"
    ]

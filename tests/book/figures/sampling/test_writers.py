"""What the sampler is told: models whose weights are stored, or what to run."""

import hashlib
import re

import pytest
import torch

from book.figures.lib import records
from book.figures.sampling import writers
from experiments.harness.core.record import ROOT, RecordError
from experiments.harness.core.weights import WEIGHTS
from experiments.novel_states import sums
from tests.book.figures.made_up import page_data


@pytest.mark.parametrize("how", ["cut", "of another run"])
def test_other_weights_than_the_records_are_refused(store, how):
    """The page would load them, and every number beside them would be of others."""
    trained = [
        path
        for name in writers.MODELS
        for path in ROOT.glob(f"results/long_race/*/{name}-all-seed0.json")
    ]
    for path in trained:
        place = store.joinpath(*path.parts[-3:])
        place.parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".json", WEIGHTS):
            place.with_suffix(suffix).write_bytes(path.with_suffix(suffix).read_bytes())
    assert "experiments run novel_states" in repr(writers.data())  # the models are there
    packed = place.with_suffix(WEIGHTS).read_bytes()
    other = trained[0].with_suffix(WEIGHTS).read_bytes()
    spoiled = {"cut": packed[:-30], "of another run": other}[how]
    place.with_suffix(WEIGHTS).write_bytes(spoiled)
    records._weighed.clear()
    with pytest.raises(RecordError, match=f"{place.stem}.weights.npz: "):
        writers.data()


def test_a_writer_can_be_had_in_torch_and_its_sums_looked_at():
    machine = writers.model("linear").machine()
    text = torch.randint(256, (1, 9), generator=torch.Generator().manual_seed(0))
    before, _ = machine.prefill(machine.initial_state, text[:, :8])
    after, _ = machine.step(before, text[:, 8])
    more = writers.sums(after)[0, 0] - writers.sums(before)[0, 0]
    assert more.shape == (2, 96, 96)  # of the first layer, whose keys and values are no head's work
    # A head that never fades has one outer product more; one that fades has lost some besides.
    assert [torch.linalg.matrix_rank(one, rtol=1e-4).item() > 1 for one in more] == [True, False]


def test_the_stage_gets_its_models_and_where_their_weights_are():
    html = writers.data().data
    files = re.search(r'data-files="([^"]*)"', html)[1].split()
    told = page_data(html)
    sizes = [(ROOT / file).stat().st_size for file in files]
    assert told["bytes"] >= sum(sizes[:3]) * 4 / 3 and max(sizes) < 3e6
    assert [model["name"] for model in told["models"]] == ["softmax", "window", "linear"]
    assert [model.get("window") for model in told["models"]] == [None, 128, None]
    loaded = [*told["models"], *told["stations"]]
    assert all(f"/{one['file']}." in file for one, file in zip(loaded, files, strict=True))
    (first, grows, _), (flat, level, _) = told["bills"]["softmax"], told["bills"]["linear"]
    assert first < flat < first + 1000 * grows and level == 0
    assert told["bills"]["window"] == [first, grows, 128]


def test_the_states_are_of_the_pages_model_and_of_the_size_that_is_told():
    told = page_data(writers.data())
    assert [one["letters"] for one in told["stations"]] == [1000, 10_000, 100_000, 1_000_000]
    assert all(len(one["text"]) == 240 for one in told["stations"])
    machine = writers.model("linear").machine()
    assert told["state"] == 4 * sum(S.numel() + z.numel() for S, z in sums(machine.initial_state))
    assert told["row"] == 4 * 2 * 6 * 192  # keys and values, layers, width
    [trained] = ROOT.glob("results/long_race/*/linear-all-seed0.weights.npz")
    wanted = hashlib.sha256(trained.read_bytes()).hexdigest()
    for run in writers.stations():
        assert run["tables"]["weights"]["sha256"] == [wanted]
        assert run["tables"]["state"]["bytes"] == [told["state"]]

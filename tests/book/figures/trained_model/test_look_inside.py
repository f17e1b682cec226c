"""What the stage `look-inside` is told, and that its numbers are lsa's."""

import re

import pytest
import torch

from book.figures.trained_model import look_inside
from book.figures.trained_model.measured import ranking
from experiments.harness.core.record import ROOT
from experiments.harness.learning.returning import trained
from experiments.look_inside import looks
from tests.book.figures.made_up import page_data
from tests.experiments.test_look_inside import unpacked

TOLERANCE = 1e-3
MOST = 800_000  # bytes that the page loads at once


def test_the_stage_gets_all_heads_and_files_that_are_light():
    html = look_inside.data().data
    files = re.search(r'data-files="([^"]*)"', html)[1].split()
    told = page_data(html)
    assert [tuple(head[:2]) for head in told["heads"]] == [(h.layer, h.head) for h in ranking()]
    assert told["shape"] == [30, 9]
    for (*_, brings), head in zip(told["heads"], ranking(), strict=True):
        assert f"{brings:.2f}" == f"{head.brings.mean:.2f}"  # on the stage as in the table
    sizes = [-(-(ROOT / file).stat().st_size // 3) * 4 for file in files]
    assert sizes == [page["bytes"] for page in told["pages"]]
    assert max(sizes) < MOST and len(html) < 100_000
    for page in told["pages"]:
        first, again, length = page["passage"]
        tokens = page["tokens"]
        assert tokens[first : first + length] == tokens[again:]
        assert again <= page["start"] + 1 < len(tokens)


def test_what_the_stage_begins_with_shows_its_message():
    """Of the word after: guessed with all heads free, and not with the first eight confined."""
    for run in look_inside.stored():
        found = look_inside.arrays(run)
        i = look_inside.start(run) + 1 - len(run["tables"]["tokens"]["text"]) + 40
        free, few = (
            look_inside.row_of(run, *which) for which in (("none",), ("first", look_inside.FEW))
        )
        wanted = found["wanted"][[free, few], i]
        assert wanted[0] > 500 > 250 > wanted[1]


@pytest.fixture(scope="module")
def model():
    pytest.importorskip("gguf")
    pytest.importorskip("tokenizers")
    try:
        return trained("SmolLM2-135M-Instruct").model
    except ValueError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_its_numbers_are_those_of_lsa(model):
    run = look_inside.stored()[0]
    config, tables, found = run["config"], run["tables"], look_inside.arrays(run)
    tokens = torch.tensor(tables["tokens"]["token"])
    A = looks(model, tokens)
    kept = unpacked(found, len(tokens))
    assert (kept - A).abs()[kept > 0].max() < TOLERANCE
    # What is left out is small, or less than the six that are kept.
    left = A.masked_fill(kept > 0, 0).amax(-1)
    smallest = kept.masked_fill(kept == 0, 1).amin(-1)
    full = (kept > 0).sum(-1) == config["largest"]
    assert left[~full].max() < config["least"] + TOLERANCE
    assert (left <= smallest + TOLERANCE)[full].all()
    heads = [*zip(tables["ranking"]["layer"], tables["ranking"]["head"], strict=True)]
    again = torch.arange(len(tokens) - config["passage"], len(tokens))
    sets = {"none": [], "first": heads[: look_inside.FEW], "head": heads[:1]}
    for where, confined in sets.items():
        number = len(confined) if where == "first" else 0
        row = look_inside.row_of(run, where, number)
        model.attend({f"{layer}.{head}": config["attention"] for layer, head in confined})
        with torch.no_grad():
            shares = model(tokens[None])[0, again - 1].softmax(-1)
        guessed = torch.tensor(tables["vocabulary"]["guess"])[found["guesses"][row].astype(int)]
        stored = torch.from_numpy(found["shares"][row] / 1000).float()
        assert (shares.gather(1, guessed) - stored).abs().max() < TOLERANCE
        wanted = torch.from_numpy(found["wanted"][row] / 1000).float()
        assert (shares[torch.arange(40), tokens[again]] - wanted).abs().max() < TOLERANCE
        right = (shares.argmax(-1) == tokens[again]).sum().item()
        assert right == tables["sets"]["right"][row]
    model.attend({})

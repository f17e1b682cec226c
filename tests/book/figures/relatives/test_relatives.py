"""The relatives' figures: the law of random codes and the family."""

import math
import re
from pathlib import Path

import pytest
import torch

from book.explorable import palette
from book.figures.relatives import family, random_codes, recall
from book.figures.three_modes import published
from lsa.layers import LAYERS

BOOK = Path(__file__).resolve().parents[4] / "book"
CHAPTERS = "\n".join(path.read_text(encoding="utf-8") for path in BOOK.glob("*.md"))


@pytest.mark.parametrize(("K", "V", "pairs"), [(64, 32, 200), (8, 32, 64), (32, 32, 100)])
def test_random_codes_are_answered_as_often_as_the_law_says(K, V, pairs):
    """The result of the chapter, against sums of random codes; 60 draws of every key."""
    tokens, torch_rng = 20, torch.Generator().manual_seed(0)

    def codes(n, width):
        return (2.0 * torch.randint(2, (60, n, width), generator=torch_rng) - 1) * width**-0.5

    keys, alphabet = codes(pairs, K), codes(tokens, V)
    values = torch.randint(tokens, (60, pairs), generator=torch_rng)
    S = torch.einsum("nik,niv->nkv", keys, alphabet[torch.arange(60)[:, None], values])
    scores = torch.einsum("nik,nkv,ntv->nit", keys, S, alphabet)
    right = (scores.argmax(-1) == values).double().mean().item()
    law = random_codes.right_by_the_law(K, V, pairs, tokens)
    assert right == pytest.approx(law, abs=0.06)
    drawn = random_codes.right_when_drawn(K, V, pairs, tokens)
    assert drawn == pytest.approx(right, abs=0.03)


def test_half_are_right_at_the_capacity():
    K, V, tokens = 64, 64, 10_000
    capacity = K * V / (2 * math.log(tokens)) - K
    law = random_codes.right_by_the_law(K, V, round(capacity), tokens)
    assert 0.3 < law < 0.75


def test_the_law_errs_in_either_direction_in_the_cases_of_the_chapter():
    errors = [
        random_codes.right_by_the_law(*case) - random_codes.right_when_drawn(*case)
        for case in recall.CASES
    ]
    assert min(errors) < -0.02 and max(errors) > 0.02
    assert "It errs in either direction" in CHAPTERS


def told_of(layer):
    """Whether a chapter calls a layer by its label, or by its class in backticks.

    Any other `Memory` or `Gate` in a chapter is a word.
    """
    label = palette.label(layer)
    by_label = label and re.search(rf"\b{re.escape(label)}\b", CHAPTERS)
    return by_label or f"`{LAYERS[layer].__name__}`" in CHAPTERS


def test_every_layer_is_in_the_family_and_whole_if_a_chapter_tells_of_it():
    assert len(family.table().cells) == len(LAYERS) + len(family.VARIANTS)
    assert family.MEMBERS.keys() <= LAYERS.keys() | family.VARIANTS.keys()
    told = {layer for layer in LAYERS if told_of(layer)}
    assert told <= family.MEMBERS.keys(), "a chapter tells of it: a line in MEMBERS is missing"


def test_a_layer_that_no_chapter_tells_of_has_its_state_and_dashes(monkeypatch):
    whole = family.table().cells
    told = whole.pop([*family.MEMBERS].index("rwkv"))
    monkeypatch.delitem(family.MEMBERS, "rwkv")
    rows = family.table().cells
    rows.remove(["RWKV", "–", "–", "–", "–", told[5], "–", *told[7:]])
    assert rows == whole


def test_published_tables_are_whole():
    for table in (published.zero_shot(), published.selective_copying()):
        assert all(len(line) == len(table.titles) for line in table.cells)

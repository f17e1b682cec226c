"""Numbers that chapters compute while they are built."""

import re

import torch

from book.figures.lib import chapter_numbers
from lsa import GPT, gpt_config
from lsa.machines import state_bytes


def test_walks_carry_their_standard_error():
    said = chapter_numbers.walks(t=5, draws=200)
    mean, error = map(float, re.fullmatch(r"(\d+) ± (\d+)", said["fair_dumb"]).groups())
    expected = 5 * (2**5 + 1) / 2
    assert said["fair_expected"] == f"{expected:.0f}" and said["fair_draws"] == "200"
    assert 0 < error < mean
    assert abs(mean - expected) < 3 * error


def test_a_token_of_gpt_takes_what_its_machine_keeps():
    with torch.device("meta"):
        machine = GPT(gpt_config("124M")).machine()
        state, _ = machine.step(machine.initial_state, torch.tensor([0]))
    assert chapter_numbers.gpt_cache()["gpt_cache_numbers"] == f"{state_bytes(state) // 4:,}"

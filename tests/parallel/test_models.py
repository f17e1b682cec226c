"""A GPT over ranks is that of one process, whatever layer it has whose state is linear."""

import pytest
import torch

from lsa import GPT, GPTConfig
from lsa.layers import GatedLinearAttention, LinearAttention
from lsa.layers.mamba import S6
from lsa.parallel import WAYS
from tests.parallel import tasks

pytestmark = pytest.mark.slow

CASES = {
    "linear": ("linear", {}),
    "linear-fades": ("linear", {"log_decay": [-0.3, 0.0]}),
    "linear-recurrent": ("linear", {"mode": "recurrent", "normalize": False}),
    "gated-fixed": ("gated", {"decay": "fixed"}),
    "gated-head": ("gated", {"decay": "head"}),
    "gated-channel": ("gated", {"decay": "channel"}),
    "gated-normalized": (
        "gated", {"decay": "channel", "normalize": True, "feature_map": "softplus"},
    ),
    "s6": ("s6", {"d_state": 3}),
    "s6-tree": ("s6", {"d_state": 3, "mode": "tree", "input_rule": "zoh"}),
}  # fmt: skip


def shape(case, **changes):
    name, options = CASES[case]
    return model(name, options, **changes)


def model(name, options, n_layer=2, n_head=2, n_positions=40):
    return GPTConfig(
        vocab_size=11, n_positions=n_positions, n_layer=n_layer, n_head=n_head, d_model=8,
        attention=name, attention_options=options,
    )  # fmt: skip


def check(pool, config, lengths, way="gather", how="argument", ends=None):
    tokens, targets = torch.randint(11, (2, 2, sum(lengths)))
    given, text = (way, config, GPT(config).double().state_dict()), (tokens, targets)
    wanted, gradients = tasks.model(None, *given, [sum(lengths)], *text, "argument", ends)
    answers = pool.run(len(lengths), tasks.model, *given, lengths, *text, how, ends)
    logits = torch.cat([answer[0] for answer in answers], 1)
    assert logits.any()  # two that are zero would be equal too
    torch.testing.assert_close(logits, wanted, rtol=1e-12, atol=1e-12)
    for name, gradient in gradients.items():
        found = sum(answer[1][name] for answer in answers)
        torch.testing.assert_close(found, gradient, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_a_model_over_ranks_is_that_of_one_process(pool, case, way):
    for lengths in ([5, 8], [4, 0, 9], [1, 3, 2, 7]):
        check(pool, shape(case), lengths, way)


@pytest.mark.parametrize("log_decay", [None, [-0.3, 0.0, -0.1, -2.0]])
def test_softmax_over_ranks_is_that_of_one_process(pool, log_decay):
    """By heads, of which some ranks have more than others; a decay counts from the text's start."""
    config = model("softmax", {"log_decay": log_decay}, n_head=4)
    for lengths in ([5, 8], [4, 0, 9], [1, 3, 2, 7]):
        check(pool, config, lengths)


PACKED = ("linear", "linear-fades", "linear-recurrent", "gated-fixed", "gated-channel", "s6")


@pytest.mark.parametrize("case", PACKED)
def test_documents_are_packed_over_cuts(pool, case):
    """Two rows of 13 or 11: documents end at a cut, before it, after it, and are empty."""
    for lengths, ends, way in (
        ([5, 8], [0, 3, 8, 13, 18, 18, 26], "gather"),
        ([4, 0, 7], [0, 4, 11, 12, 22], "scan"),
        ([1, 3, 2, 7], [0, 13, 26], "gather"),
    ):
        check(pool, shape(case), lengths, way, ends=torch.tensor(ends))


@pytest.mark.parametrize("case", ["linear-fades", "gated-head", "s6"])
def test_a_style_is_the_argument(pool, case):
    check(pool, shape(case), [3, 4], how="style")


def test_a_plan_may_name_the_layers(pool):
    """Of a model without positions, in which nothing else asks how long a text is."""
    check(pool, shape("linear-fades", n_positions=None), [3, 0, 4], "scan", how="plan")


@pytest.mark.parametrize(
    ("layer", "operators", "counts"),
    [
        # Keys and values; queries; the output.
        (LinearAttention(8, 2), ("mm", "addmm"), [1, 1, 1]),
        # What the part adds; scores, outputs of a chunk and what it adds; what the state gives.
        (GatedLinearAttention(8, 2), ("bmm",), [1, 3, 1]),
    ],
)
def test_what_needs_no_state_is_computed_while_states_travel(pool, layer, operators, counts):
    for names in pool.run(2, tasks.order, layer):
        sent, came = map(names.index, ("all_gather_into_tensor", "wait_tensor"))
        parts = names[:sent], names[sent:came], names[came:]
        assert [sum(name in operators for name in part) for part in parts] == counts


def test_s6_computes_its_direct_term_while_states_travel(pool):
    for names in pool.run(2, tasks.order, S6(8, d_state=3)):
        sent, came = map(names.index, ("all_gather_into_tensor", "wait_tensor"))
        assert names[sent:came].count("mul") == 1


@pytest.mark.slow
def test_a_compiled_block_exchanges_states_too(pool):
    check(pool, shape("linear-fades", n_layer=1), [3, 5], "gather", how="compiled")


def test_what_cannot_be_split_is_refused(pool):
    config = shape("linear")
    window, mamba, softmax = (model(name, {}) for name in ("window", "mamba", "softmax"))
    alone = model("softmax", {}, n_head=1)
    ends, whole = torch.tensor([0, 1, 3]), torch.tensor([0, 6])
    for given, tokens, packed, message in (
        (window, 3, None, "ranks: expected attention softmax, linear, s6, gated, got WindowAtt"),
        # Its short convolution would need tokens of the rank before.
        (mamba, 3, None, "ranks: expected attention softmax, linear, s6, gated, got Mamba"),
        (alone, 3, None, "ranks: expected at most one for each of 1 heads, got 2"),
        (softmax, 3, whole, "cu_seqlens: expected None with softmax attention over ranks"),
        (config, 21, None, "tokens: expected at most n_positions = 40 of them, got 42"),
        (config, 3, ends, "cu_seqlens: expected to rise from 0 to B T = 6, got [0, 1, 3]"),
    ):
        text = torch.zeros(1, tokens, dtype=torch.long)
        for said in pool.run(2, tasks.refusal, given, text, packed):
            assert said.startswith(message)

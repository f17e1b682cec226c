"""State machines: U and P, the diagram they make, and composition."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa.machines import StateMachine, elementwise, residual, stack, tape, unroll
from lsa.sequences import Counted, all_prefixes, take_last
from tests.examples import examples

many = examples(250, derandomize=True)


@st.composite
def finite_machines(draw, states=3, alphabet="ab"):
    """A random machine with a few states, over one alphabet for inputs and outputs."""
    keys = [(s, x) for s in range(states) for x in alphabet]
    entry = st.tuples(st.integers(0, states - 1), st.sampled_from(alphabet))
    table = {key: draw(entry) for key in keys}
    return StateMachine(draw(st.integers(0, states - 1)), lambda s, x: table[s, x])


words = st.lists(st.sampled_from("ab"), min_size=1, max_size=6).map(tuple)


@many
@given(finite_machines(), words)
def test_every_machine_unrolls_to_a_causal_transformation(machine, x):
    h = unroll(machine)
    assert all(h(x[:i]) == h(x)[:i] for i in range(len(x) + 1))


@many
@given(st.integers(0, 10**6), words)
def test_unrolling_a_tape_gives_all_prefixes(salt, x):
    g = lambda x: hash((salt, x)) % 7  # noqa: E731
    assert unroll(tape(g))(x) == all_prefixes(g)(x)
    assert take_last(unroll(tape(g)))(x) == g(x)


def parity() -> StateMachine:
    def step(s: int, x: int) -> tuple[int, int]:
        s = (s + x) % 2
        return s, s

    return StateMachine(0, step)


def test_p_l_u_is_not_the_identity():
    machine = parity()
    again = tape(take_last(unroll(machine)))
    assert again.initial_state != machine.initial_state
    ticks = Counted(machine.step)
    counted = StateMachine(0, ticks)
    unroll(counted)((1, 0, 1, 1))
    assert ticks.calls == 4
    ticks.calls = 0
    unroll(tape(take_last(unroll(counted))))((1, 0, 1, 1))
    # Tick i of the tape runs the machine over i tokens: 1 + 2 + 3 + 4.
    assert ticks.calls == 10


def test_cheap_and_expensive_arrows():
    x = tuple("penguin")
    g = Counted(lambda prefix: prefix[-1])
    all_prefixes(g)(x)
    assert g.calls == len(x)
    h = Counted(lambda x: x)
    take_last(h)(x)
    assert h.calls == 1


@many
@given(finite_machines(), finite_machines(), words)
def test_stacking_composes(first, second, x):
    assert unroll(stack(first, second))(x) == unroll(second)(unroll(first)(x))


@many
@given(finite_machines(), words, words)
def test_a_state_is_all_that_the_past_leaves(machine, x, y):
    state, before = machine.prefill(machine.initial_state, x)
    _, after = machine.prefill(state, y)
    assert before + after == unroll(machine)(x + y)


def test_an_empty_stack_is_the_identity():
    assert unroll(stack())(("a", "b")) == ("a", "b")


def test_elementwise_and_residual_on_tensors():
    x = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    machine = elementwise(torch.tanh)
    assert torch.equal(unroll(machine)(x), x.tanh())
    assert torch.equal(unroll(residual(machine))(x), x + x.tanh())
    assert torch.equal(machine.prefill(machine.initial_state, x)[1], x.tanh())
    assert unroll(machine)(x[:, :0]).shape == (2, 0, 3)


def test_unroll_of_plain_sequences():
    running_sum = StateMachine(0, lambda s, x: (s + x, s + x))
    assert unroll(running_sum)([1, 2, 3]) == (1, 3, 6)
    assert unroll(running_sum)([]) == ()
    assert unroll(tape(lambda xs: xs[::-1]))("abc") == (("a",), ("b", "a"), ("c", "b", "a"))


def test_a_layer_is_no_machine():
    with pytest.raises(ValueError, match="^machine: expected a StateMachine, got Linear; a layer"):
        unroll(torch.nn.Linear(2, 2))

"""The book's first three chapters, as properties of small random cases."""

import math
from fractions import Fraction
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa.sequences import (
    Counted,
    all_prefixes,
    autoregressive,
    conditional,
    independent,
    influence,
    is_causal,
    is_causal_at,
    is_order_preserving,
    is_prefix,
    log_likelihood,
    sample_autoregressively,
    sample_by_walking,
    sequences,
    take_last,
)
from tests.examples import examples

many = examples(300, derandomize=True)
some = examples(150, derandomize=True)


def distributions(alphabet):
    """Exact distributions; zero weights are common on purpose."""
    weights = st.lists(st.integers(0, 4), min_size=len(alphabet), max_size=len(alphabet))
    return weights.filter(any).map(
        lambda w: {x: Fraction(n, sum(w)) for x, n in zip(alphabet, w, strict=True)}
    )


@st.composite
def models(draw, max_length=4):
    """(alphabet, t, g) with g a table of exact distributions over every prefix shorter than t."""
    alphabet = "abc"[: draw(st.integers(1, 3))]
    t = draw(st.integers(1, max_length if len(alphabet) < 3 else max_length - 1))
    prefixes = [p for n in range(t) for p in sequences(alphabet, n)]
    table = {p: draw(distributions(alphabet)) for p in prefixes}
    return alphabet, t, table.__getitem__


@st.composite
def joint_distributions(draw):
    """(alphabet, t, f) with f any exact distribution over the sequences of length t."""
    alphabet = "abc"[: draw(st.integers(1, 3))]
    t = draw(st.integers(1, 4 if len(alphabet) < 3 else 3))
    table = draw(distributions(list(sequences(alphabet, t))))
    return alphabet, t, table.__getitem__


@st.composite
def next_values(draw):
    """(alphabet, t, g) with g any integer function of the non-empty sequences up to t."""
    alphabet = "ab"
    t = draw(st.integers(1, 4))
    keys = [x for n in range(1, t + 1) for x in sequences(alphabet, n)]
    values = draw(st.lists(st.integers(0, 2), min_size=len(keys), max_size=len(keys)))
    return alphabet, t, dict(zip(keys, values, strict=True)).__getitem__


@st.composite
def transformations(draw):
    """(alphabet, t, h) with h any length-preserving function up to t; few of them are causal."""
    alphabet = "ab"
    t = draw(st.integers(1, 3))
    keys = [x for n in range(t + 1) for x in sequences(alphabet, n)]
    table = {x: draw(st.tuples(*(st.sampled_from("ab") for _ in x))) for x in keys}
    if draw(st.booleans()):
        # Half of them are made causal, or the interesting side would hardly ever be seen.
        table = {x: tuple(table[x[: i + 1]][i] for i in range(len(x))) for x in keys}
    return alphabet, t, table.__getitem__


def test_sequences_are_counted_by_powers():
    assert list(sequences("ab", 0)) == [()]
    assert [len(list(sequences("abc", t))) for t in range(5)] == [1, 3, 9, 27, 81]


@many
@given(distributions("abc"), distributions("xy"))
def test_independent_is_a_distribution(p, q):
    joint = independent(p, q)
    assert sum(joint.values()) == 1
    assert min(joint.values()) >= 0
    assert all(sum(joint[x, y] for y in q) == p[x] for x in p)


@many
@given(models())
def test_autoregressive_is_a_distribution(model):
    alphabet, t, g = model
    f = autoregressive(g, t)
    probabilities = [f(x) for x in sequences(alphabet, t)]
    assert sum(probabilities) == 1
    assert min(probabilities) >= 0


@many
@given(joint_distributions())
def test_autoregressive_is_surjective(joint):
    alphabet, t, f = joint
    g = conditional(f, alphabet, t)
    for n in range(t + 1):
        for prefix in sequences(alphabet, n):
            assert sum(g(prefix).values()) == 1
    again = autoregressive(g, t)
    assert all(again(x) == f(x) for x in sequences(alphabet, t))


def test_autoregressive_forgets_g_after_an_impossible_prefix():
    sure = {"a": Fraction(1), "b": Fraction(0)}
    other = {"a": Fraction(0), "b": Fraction(1)}
    f = autoregressive(lambda x: sure, 2)
    f_other = autoregressive(lambda x: other if x == ("b",) else sure, 2)
    assert all(f(x) == f_other(x) for x in sequences("ab", 2))


@some
@given(models(3), st.integers(0, 10**6))
def test_log_likelihood_is_the_log_of_the_product(model, seed):
    alphabet, t, g = model
    data = Random(seed).choices(list(sequences(alphabet, t)), k=3)
    product = math.prod(autoregressive(g, t)(x) for x in data)
    expected = math.log(product) if product else -math.inf
    assert log_likelihood(g, data) == pytest.approx(expected, abs=1e-9)


def test_log_likelihood_survives_where_the_product_underflows():
    g = lambda x: {"a": 1e-5, "b": 1 - 1e-5}  # noqa: E731
    x = ("a",) * 100
    assert autoregressive(g, 100)(x) == 0.0
    assert log_likelihood(g, [x]) == pytest.approx(100 * math.log(1e-5))


@some
@given(models(3), st.integers(0, 10**6))
def test_samplers_cost_what_the_book_says(model, seed):
    alphabet, t, g = model
    counted = Counted(g)
    sample_autoregressively(counted, t, Random(seed))
    assert counted.calls == t
    counted = Counted(g)
    sample_by_walking(autoregressive(counted, t), sequences(alphabet, t), Random(seed))
    assert t <= counted.calls <= t * len(alphabet) ** t


def chi_squared_limit(k, z=3.7):
    """What chi-squared with k degrees of freedom passes once in ten thousand times.

    Wilson and Hilferty (1931): the cube root of chi-squared / k is nearly normal.
    """
    return k * (1 - 2 / (9 * k) + z * math.sqrt(2 / (9 * k))) ** 3


def markov(x):
    """Three tokens; the next depends on the last, one step is impossible."""
    rows = {"a": (0.5, 0.5, 0.0), "b": (0.1, 0.3, 0.6), "c": (0.2, 0.2, 0.6)}
    return dict(zip("abc", rows[x[-1]] if x else (0.6, 0.3, 0.1), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["walking", "autoregressive"])
def test_sampling_frequencies_follow_the_distribution(way):
    t, n, rng = 3, 20_000, Random(7)
    f = autoregressive(markov, t)
    outcomes = [x for x in sequences("abc", t) if f(x) > 0]
    seen = dict.fromkeys(sequences("abc", t), 0)
    for _ in range(n):
        if way == "walking":
            seen[sample_by_walking(f, sequences("abc", t), rng)] += 1
        else:
            seen[sample_autoregressively(markov, t, rng)] += 1
    assert sum(seen[x] for x in outcomes) == n
    chi_squared = sum((seen[x] - n * f(x)) ** 2 / (n * f(x)) for x in outcomes)
    assert chi_squared < chi_squared_limit(len(outcomes) - 1)


def test_walking_ends_on_a_possible_outcome_despite_rounding():
    class AlmostOne(Random):
        def random(self):
            return math.nextafter(1, 0)

    p = {**dict.fromkeys(range(10), 0.1), 10: 0.0}
    assert sample_by_walking(p.__getitem__, p, AlmostOne()) == 9
    with pytest.raises(ValueError, match="positive probability"):
        sample_by_walking(lambda x: 0, "ab", Random(0))


@many
@given(next_values())
def test_take_last_undoes_all_prefixes(case):
    alphabet, t, g = case
    back = take_last(all_prefixes(g))
    assert all(back(x) == g(x) for n in range(1, t + 1) for x in sequences(alphabet, n))
    assert is_causal(all_prefixes(g), alphabet, t)


@many
@given(transformations())
def test_all_prefixes_undoes_take_last_exactly_on_causal_transformations(case):
    alphabet, t, h = case
    back = all_prefixes(take_last(h))
    same = all(back(x) == h(x) for n in range(t + 1) for x in sequences(alphabet, n))
    assert same == is_causal(h, alphabet, t)


@many
@given(transformations())
def test_causal_means_order_preserving(case):
    alphabet, t, h = case
    assert is_causal(h, alphabet, t) == is_order_preserving(h, alphabet, t)


def test_what_changes_the_length_is_not_causal():
    assert is_order_preserving(lambda x: x[:2], "ab", 3)
    assert not is_causal(lambda x: x[:2], "ab", 3)


words = st.lists(st.sampled_from("ab"), max_size=5).map(tuple)


@many
@given(words, words, words)
def test_prefixes_are_a_partial_order(x, y, z):
    assert is_prefix(x, x)
    assert is_prefix((), x)
    assert is_prefix(x, x + y)
    assert not (is_prefix(x, y) and is_prefix(y, x)) or x == y
    assert not (is_prefix(x, y) and is_prefix(y, z)) or is_prefix(x, z)


def test_take_last_and_all_prefixes_on_tensors():
    x = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    h = lambda x: x.cumsum(1)  # noqa: E731
    assert torch.equal(take_last(h)(x), x.cumsum(1)[:, -1])
    assert torch.allclose(all_prefixes(take_last(h))(x), h(x))
    with pytest.raises(ValueError, match="x: expected at least one element"):
        all_prefixes(take_last(h))(x[:, :0])


def test_tensor_checks_tell_causal_from_not():
    x = torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(0))
    causal = lambda x: x.cumsum(1)  # noqa: E731
    reverse = lambda x: x.flip(1).cumsum(1).flip(1)  # noqa: E731
    assert is_causal_at(causal, x)
    assert not is_causal_at(reverse, x)
    assert torch.equal(influence(causal, x), torch.ones(5, 5, dtype=torch.bool).triu())
    assert torch.equal(influence(reverse, x), torch.ones(5, 5, dtype=torch.bool).tril())
    assert torch.equal(influence(causal, 0 * x), influence(causal, x))  # zeros change too


def test_length_is_information_too():
    """No later token moves an earlier output, and yet this is not causal: it knows the length."""
    h = lambda x: x / x.shape[1]  # noqa: E731
    x = torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(influence(h, x), torch.eye(5, dtype=torch.bool))
    assert not is_causal_at(h, x)

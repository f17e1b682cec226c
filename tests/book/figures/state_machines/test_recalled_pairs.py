"""Recall from a sum of outer products: drawn for keys of both signs and for positive ones."""

from book.figures.state_machines import recalled_pairs


def test_both_signs_are_drawn_and_said():
    figure = recalled_pairs.figure_of(lambda K, n, keys: float(n <= (K if keys == "signed" else 4)))
    found = {
        (one.keys["features"], one.keys["keys"]): dict(
            zip(one.columns["pairs"], one.columns["share"], strict=True)
        )
        for one in figure.curves
    }
    assert {keys for _, keys in found} == set(recalled_pairs.KEYS)
    for K in recalled_pairs.FEATURES:
        assert (found[f"K = {K}", "signed"][K], found[f"K = {K}", "elu + 1"][K]) == (100, 0)
    said = recalled_pairs.of_computed({"signed": 0.998, "elu + 1": 0.041, "exp(2x)": 0.5})
    assert said == {"recall_signed": "100%", "recall_positive": "4%", "recall_exp": "50%"}

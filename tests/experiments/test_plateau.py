"""The plateau: each run differs from the next in the one thing that its remedy names."""

from experiments import plateau


def test_a_remedy_changes_what_it_names_and_nothing_else():
    runs = {run.name: run.config for run in plateau.runs("cpu", smoke=False)}
    assert len(runs) == 3 * (2 * len(plateau.EITHER) + len(plateau.CONTROLS))
    named = {"remedy", "attention", "attention_options", "seed"}
    for config in runs.values():
        change = plateau.EITHER.get(config["remedy"], {})
        allowed = named | {key for key in change if key != "log_decay"}
        differs = {key for key, value in plateau.BASE.items() if config[key] != value}
        assert differs <= allowed
    both = [name for name in runs if name.startswith("linear-")]
    for name in both:
        of_softmax = runs[name.replace("linear-", "softmax-", 1)]
        assert {**runs[name], "attention": "softmax"} == of_softmax

"""Sampling speed: positions that are there are not timed again."""

import torch

from experiments import sampling_speed
from experiments.harness.plan import Session


def test_a_run_goes_on_where_it_was_left(tmp_path, monkeypatch):
    (run,) = sampling_speed.runs("cpu", smoke=True)
    session = Session(
        device=torch.device("cpu"),
        corpus=lambda name: None,
        save=lambda tables: None,
        show=lambda *_: None,
        checkpoint=tmp_path / "none",
    )
    whole = sampling_speed.perform(run.config, session).tables["rows"]
    assert whole["position"] == [1, 64] * 2
    origin = {"commit": "0", "dirty": False, "started": "then", "seconds": 3.0}
    first = {name: values[:3] for name, values in whole.items()}
    session.kept = {"provenance": origin, "tables": {"rows": first}}
    made = []
    model = sampling_speed.GPT
    monkeypatch.setattr(sampling_speed, "GPT", lambda shape: made.append(1) or model(shape))
    again = sampling_speed.perform(run.config, session).tables["rows"]
    assert again["attention"] == whole["attention"] and again["position"] == whole["position"]
    assert again["seconds"][:3] == whole["seconds"][:3] and len(made) == 1
    assert again["state"] == whole["state"]
    assert session.earlier == [origin]

"""The table of a token's time, from a made-up run."""

from book.figures.trained_model import converted_speed
from tests.book.figures.made_up import columns


def test_each_way_has_its_times_and_what_it_keeps_at_the_end(monkeypatch):
    points = [
        (way, position, position / 1e3, position / 2e3, position / 5e2, 1024.0 * position)
        for way in converted_speed.WAYS
        for position in converted_speed.POSITIONS
    ]
    table = columns("way position seconds low high state", points)
    run = {"name": "batch-1", "config": {}, "tables": {"rows": table}}
    monkeypatch.setattr(converted_speed, "have", lambda experiment: [run])
    cells = converted_speed.table().cells
    assert cells[0][:2] == ["all 270", "32 (16–64)"] and cells[0][-1] == "64 MiB"
    assert [row[0] for row in cells] == [*converted_speed.WAYS.values()]

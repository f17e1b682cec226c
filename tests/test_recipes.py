"""The recipes of CONTRIBUTING.md, each followed in a copy: a thing is added where they say."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.slow

LAYER = '''"""Twice the token: a layer without memory."""

from torch import Tensor, nn

from ..machines import StateMachine, elementwise


class Double(nn.Module):
    """y_t = 2 W x_t. [B, T, D] to [B, T, D]."""

    def __init__(self, d_model: int, *, bias: bool = True) -> None:
        super().__init__()
        self.W = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return 2 * self.W(x)

    def machine(self) -> StateMachine:
        return elementwise(self)

    def sequence_flops(self, T: int) -> int:
        return 0

    def tick_flops(self, t: int) -> int:
        return 0

    def state_numbers(self, t: int) -> int:
        return 0
'''
# What stands before them in palette.css: the last layer's line there, in either theme.
COLOURS = {
    '  --power-label: "Power attention";': """  --double: #6B6B00;
  --double-text: #6B6B00;
  --double-label: "Double";""",
    "  --power-text: #DEADC1;": "  --double: #B5B52E;\n  --double-text: #B5B52E;",
}
EXPERIMENT = '''"""Sums of the first integers, timed."""

from .harness.plan import Experiment, Outcome, Run, Session
from .harness.tables import Tables, append, table

TABLES = {"rows": table(count=("numbers", "how many"), total=("numbers", "their sum"))}


def runs(kind, smoke):
    """One run."""
    return [Run("toy", "ten", {"longest": 10, "seed": 0}, 1)]


def perform(config, session: Session):
    """One run, as `plan.Experiment` asks."""
    tables: Tables = {}
    for count in range(config["longest"]):
        append(tables, "rows", {"count": count, "total": sum(range(count))})
        session.save(tables)
    return Outcome(tables)


EXPERIMENT = Experiment("toy", "sums of integers", TABLES, runs, perform)
'''
FIGURE = '''"""Sums of integers."""

from __future__ import annotations

from ..explorable.figure import Axis, Explorable, Series
from .results import have, provenance
from .words import Missing


def figure(id: str = "toy") -> Explorable | Missing:
    """The sums against how many are summed."""
    records = have("toy")
    if not records:
        return Missing("toy")
    return Explorable(
        id=id,
        caption="**Sums grow.**",
        alt="A line that rises ever faster.",
        series=[Series({"run": run["name"]}, run["tables"]["rows"]) for run in records],
        x=Axis("count", "How many"),
        y=Axis("total", "Sum"),
        color="run",
        mark="line",
        provenance=provenance(records),
    )
'''
STAGE = """"use strict";

/* A count to three. */

Stage.mount("toy", (stage) => {
  const length = () => 3;
  const picture = Stage.element("p");
  const steps = Stage.stepper({
    length, render: (n) => { picture.textContent = n; }, say: (n) => `The count is ${n}.`,
  });
  stage.append(picture, steps.line, steps.bar);
  Stage.keys(stage, steps, length);
  steps.show(0);
  return { step: [Stage.whole(steps.show, steps.step, 0, 3), 0] };
});
"""
CHAPTER = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# Toys

```{question}
How fast do sums grow?
```

```{code-cell} ipython3
:tags: [remove-input]

from book.figures import toy

toy.figure()
```

See {view}`three <toy-count:step=3>`.

:::{stage} toy
:part: count
:title: A count

It counts to three.
:::
"""


@pytest.fixture
def house(tmp_path):
    """A copy of the house without its results, its chapters and what was built."""
    ignored = shutil.ignore_patterns("__pycache__", "*.json", "*.ipynb")
    for name in ("lsa", "experiments", "results", "book", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for name in ("_config.yml", "_toc.yml", "Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def run(house: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(house), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=house, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def append_after(path: Path, mark: str, line: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(mark) == 1, f"{path.name}: expected one {mark!r}"
    path.write_text(text.replace(mark, f"{mark}\n{line}"), encoding="utf-8")


def test_a_layer_is_its_file_its_line_and_its_colour(house):
    (house / "lsa" / "layers" / "double.py").write_text(LAYER)
    layers = house / "lsa" / "layers" / "__init__.py"
    append_after(layers, "from .delta import DeltaNet", "from .double import Double")
    append_after(layers, '    "delta": DeltaNet,', '    "double": Double,')
    palette = house / "book" / "theme" / "static" / "palette.css"
    for before, colours in COLOURS.items():
        append_after(palette, before, colours)
    rooms = ("layers/test_laws", "layers/test_costs", "book/test_palette")
    said = run(
        house, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k",
        "double and not two", *(f"tests/{room}.py" for room in rooms),
    )  # fmt: skip
    assert int(re.search(r"(\d+) passed", said)[1]) >= 10


def test_an_experiment_a_figure_a_stage_and_a_chapter_are_a_file_each(house):
    (house / "experiments" / "toy.py").write_text(EXPERIMENT)
    experiments = (sys.executable, "-m", "experiments")
    assert "toy" in run(house, *experiments, "list", "toy", "--device", "cpu")
    run(house, *experiments, "run", "toy", "--device", "cpu")
    assert "1 of 1 results are sound" in run(house, *experiments, "check")
    run(house, *experiments, "describe")
    described = (house / "results" / "README.md").read_text(encoding="utf-8")
    assert "| `rows.total` | numbers | their sum |" in described

    (house / "book" / "figures" / "toy.py").write_text(FIGURE)
    (house / "book" / "stages" / "toy.js").write_text(STAGE)
    (house / "book" / "toy.md").write_text(CHAPTER)
    # The environment is this one: nothing is installed for a copy.
    made = Path(sys.executable).parent
    run(house, "make", "-o", ".venv/book", "chapter", "C=toy", f"BIN={made}")
    built = house / "_build" / "chapter" / "_build" / "html"
    page = (built / "book" / "toy.html").read_text(encoding="utf-8")
    assert '<figure class="explorable" id="toy"' in page and "Sums grow." in page
    assert 'data-stage="toy"' in page and (built / "_static" / "stages" / "toy.js").is_file()
    assert (built / "_notebooks" / "toy.ipynb").is_file()
    assert [*(built / "results" / "toy").rglob("ten.json")]

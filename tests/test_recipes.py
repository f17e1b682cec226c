"""The recipes of CONTRIBUTING.md, each followed in a copy: a thing is added where they say."""

import filecmp
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sphinx_external_toc.parsing import parse_toc_yaml

ROOT = Path(__file__).resolve().parents[1]
# The environment is this one: nothing is installed for a copy.
BIN = Path(sys.executable).parent
pytestmark = pytest.mark.slow
COUNTS = {"one": 1, "two": 2, "three": 3}

# Its name is a word that chapters use of other things.
LAYER = (ROOT / "lsa" / "layers" / "none.py").read_text("utf-8").replace("NoAttention", "Memory")
EXPERIMENT = '''"""Sums of the first integers, timed."""

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table

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
# Four commands of `python -m experiments` in a process.
COMMANDS = """
from experiments.__main__ import main

for command in ("describe", "list toy --device cpu", "run toy --device cpu", "check"):
    print("command", command)
    assert main(command.split()) == 0
"""
FIGURE = '''"""Sums of integers."""

from __future__ import annotations

from ...explorable.figure import Axis, Explorable, Series
from ..lib.records import have, provenance
from ..lib.tables import Missing


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

{
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
}
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

from book.figures.state_spaces import toy

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
    ignored = shutil.ignore_patterns("__pycache__", "*.json", "*.npz", "*.ipynb", "*.so")
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


def recipe(thing: str) -> str:
    """What CONTRIBUTING.md says of adding a thing, on one line."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^- \*\*{thing}\*\*: (.*?)(?=\n- |\n\n)", text, re.S | re.M)
    return " ".join(found.split())


def written(house: Path, recipes: dict[str, set[str]]) -> None:
    """Every recipe says how many files it takes, no other was touched, and all are in style.

    A run that was stored is not counted.
    """
    for thing, files in recipes.items():
        assert COUNTS[re.match(r"(\w+) files?\b", recipe(thing))[1]] == len(files), thing
    paths = [
        path.relative_to(house)
        for path in house.rglob("*")
        if path.is_file() and path.suffix not in (".json", ".pyc")
    ]
    changed = {
        str(path)
        for path in paths
        if not (ROOT / path).exists() or not filecmp.cmp(house / path, ROOT / path, shallow=False)
    }
    assert changed == set().union(*recipes.values())
    code = sorted(path for path in changed if path.endswith(".py"))
    for check in (["check"], ["format", "--check"]):
        run(house, str(BIN / "ruff"), *check, "--no-cache", *code)


def test_a_layer_is_two_files_and_one_command_says_whether_it_holds(house):
    (house / "lsa" / "layers" / "memory.py").write_text(LAYER)
    layers = house / "lsa" / "layers" / "__init__.py"
    append_after(layers, "from .mamba import S6, Mamba", "from .memory import Memory")
    append_after(layers, '    "power": PowerAttention,', '    "memory": Memory,')
    written(house, {"A layer": {"lsa/layers/memory.py", "lsa/layers/__init__.py"}})

    (command,) = re.findall(r"`pytest ([^`]+)`", recipe("A layer"))
    arguments = shlex.split(command.replace("NAME", "memory"))
    said = run(house, sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments)
    passed = {line.partition(" ")[0] for line in said.splitlines() if " PASSED" in line}
    # Its law, its costs and its training, each by its name.
    for room in ("layers/test_laws", "layers/test_costs", "test_gpt"):
        assert any(test.startswith(f"tests/{room}.py") and "[memory" in test for test in passed)
    # What all layers are held to together.
    tests = {re.sub(r".*::|\[.*", "", test) for test in passed}
    assert {"test_no_two_layers_look_alike", "test_palette_is_readable_in_both_themes"} <= tests
    assert any(test.startswith("test_every_layer_is_in_the_family") for test in tests)
    assert any(test.startswith("test_the_plan_holds_every_layer") for test in tests)


def test_an_experiment_a_figure_a_stage_and_a_chapter_are_two_files_each(house):
    (house / "experiments" / "toy.py").write_text(EXPERIMENT)
    (house / "book" / "figures" / "state_spaces" / "toy.py").write_text(FIGURE)
    (house / "book" / "stages" / "toy.js").write_text(STAGE)
    (house / "book" / "toy.md").write_text(CHAPTER)
    toc = house / "_toc.yml"
    append_after(toc, "      - file: book/state-spaces", "      - file: book/toy")
    said = run(house, sys.executable, "-c", COMMANDS)
    _, _, listed, _, checked = said.split("command ")
    assert "toy" in listed.partition("\n")[2] and "1 of 1 results are sound" in checked
    described = (house / "results" / "README.md").read_text(encoding="utf-8")
    assert "| `rows.total` | numbers | their sum |" in described
    written(house, {
        "An experiment": {"experiments/toy.py", "results/README.md"},
        "A figure": {"book/figures/state_spaces/toy.py", "book/toy.md"},
        "A stage": {"book/stages/toy.js", "book/toy.md"},
        "A chapter": {"book/toy.md", "_toc.yml"},
    })  # fmt: skip
    # One page is built with a list of its own, so that of the book is read here.
    assert "book/toy" in parse_toc_yaml(toc)

    run(house, "make", "-o", ".venv/book", "chapter", "C=toy", f"BIN={BIN}")
    built = house / "_build" / "chapter" / "_build" / "html"
    page = (built / "book" / "toy.html").read_text(encoding="utf-8")
    assert '<figure class="explorable figure-frame" id="toy"' in page and "Sums grow." in page
    assert 'data-stage="toy"' in page and (built / "_static" / "stages" / "toy.js").is_file()
    assert (built / "_notebooks" / "toy.ipynb").is_file()
    assert [*(built / "results" / "toy").rglob("ten.json")]

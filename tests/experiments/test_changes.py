"""What of an experiment's code counts as changed, told by small packages and by the real ones."""

import ast

import pytest

from experiments.harness.core import changes, code
from experiments.harness.core.changes import Code, changed_since, differences
from lsa.layers import LAYERS

FILES = {
    "experiments/__init__.py": "",
    "experiments/sums.py": '''
from lsa import add
from lsa.layers import LAYERS

from .harness.tables import table

TABLES = {"rows": table(sum=("number", "of two"))}

def runs(kind, smoke):
    return [1]

def perform(config, session):
    """One run."""
    return add(1, LAYERS[config["layer"]]()) if TABLES else 0
''',
    "experiments/harness/__init__.py": "",
    "experiments/harness/core/tables.py": "def table(**columns):\n    return columns\n",
    "lsa/__init__.py": "from .add import add\n",
    "lsa/add.py": '''
"""Adding."""

from .checks import whole

ONE = 1  # what is added last

def add(a, b):
    """The sum, and one."""
    whole("a", a)
    if b < 0:
        raise ValueError("b: expected 0 or more")
    return a + b + ONE

def unused(a):
    return a
''',
    "lsa/checks.py": "def whole(name, value):\n    assert value == int(value), name\n",
    "lsa/layers/__init__.py": """
from .left import Left
from .right import Right

LAYERS = {"left": Left, "right": Right}
""",
    "lsa/layers/left.py": "class Left:\n    size = 1\n",
    "lsa/layers/right.py": "class Right:\n    size = 2\n",
    "lsa/kernels/__init__.py": "",
    "lsa/kernels/sums.py": "WIDTH = 16\n",
}


def package(edits):
    """The files, with a text in place of an old one (None: of the whole file) by path."""
    files = dict(FILES)
    for path, (old, new) in edits.items():
        if old is None:
            files[path] = new
        else:
            assert old in files[path]
            files[path] = files[path].replace(old, new)
    return Code({path: source.encode() for path, source in files.items()})


def changed(edits, words=("left",), on_gpu=False):
    return differences(package({}), package(edits), "sums", words, on_gpu)


@pytest.mark.parametrize(
    "edits",
    [
        {},
        {"lsa/add.py": ("  # what is added last", "")},
        {"lsa/add.py": ("The sum, and one.", "Both, and one.")},
        {"lsa/add.py": ('"""Adding."""', "")},
        {"lsa/add.py": ("def add(a, b):", "def add(a: int, b: int) -> int:")},
        {"lsa/add.py": ("expected 0 or more", "below 0")},
        {"lsa/add.py": ('    whole("a", a)\n', "")},
        {"lsa/add.py": ("    if b < 0:", "    if b < 0 or b > 9:")},
        {"lsa/add.py": ("    return a\n", "    return -a\n")},
        {"lsa/checks.py": ("int(value)", "round(value)")},
        {"experiments/sums.py": ('"of two"', '"of both"')},
        {"experiments/sums.py": ("[1]", "[1, 2]")},
        {"experiments/harness/core/tables.py": ("return columns", "return dict(columns)")},
        {"lsa/layers/right.py": ("size = 2", "size = 3")},
        {"lsa/layers/__init__.py": ('"right": Right}', '"right": Right, "last": Right}')},
        {"lsa/kernels/sums.py": ("16", "32")},
    ],
)
def test_what_changes_no_number_is_no_change(edits):
    assert changed(edits) == {}


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ({"lsa/add.py": ("ONE = 1", "ONE = 2")}, {"lsa/add.py": {"ONE"}}),
        ({"lsa/add.py": ("a + b + ONE", "a - b + ONE")}, {"lsa/add.py": {"add"}}),
        ({"lsa/add.py": ("def add(a, b):", "def add(a, b=1):")}, {"lsa/add.py": {"add"}}),
        ({"lsa/add.py": ("def unused", "add = abs\n\ndef unused")}, {"lsa/add.py": {"add"}}),
        ({"lsa/add.py": ("\nONE", "\nprint()\nONE")}, {"lsa/add.py": {changes.IMPORTING}}),
        ({"lsa/layers/left.py": ("size = 1", "size = 3")}, {"lsa/layers/left.py": {"Left"}}),
        ({"experiments/sums.py": ("add(1", "add(2")}, {"experiments/sums.py": {"perform"}}),
    ],
)
def test_what_a_run_computes_with_is_named(edits, told):
    assert changed(edits) == told


def test_a_definition_that_moves_is_the_same():
    moved = FILES["lsa/add.py"].replace("ONE = 1  # what is added last", "from .one import ONE")
    edits = {"lsa/add.py": (None, moved), "lsa/one.py": (None, "ONE = 1\n")}
    assert changed(edits) == {}
    assert changed({**edits, "lsa/one.py": (None, "ONE = 2\n")}) == {"lsa/one.py": {"ONE"}}


def test_a_definition_that_is_gone_is_named_where_it_stood():
    assert changed({"lsa/add.py": ("+ ONE", "+ 1")}) == {"lsa/add.py": {"ONE", "add"}}


def test_where_a_configuration_names_no_layer_all_count():
    edit = {"lsa/layers/right.py": ("size = 2", "size = 3")}
    assert changed(edit, words=()) == {"lsa/layers/right.py": {"Right"}}
    assert changed(edit, words=("right",)) == {"lsa/layers/right.py": {"Right"}}


def test_kernels_count_on_a_gpu_and_for_what_compiles_them():
    edit = {"lsa/kernels/sums.py": ("16", "32")}
    assert changed(edit, on_gpu=True) == {"lsa/kernels/sums.py": {"WIDTH"}}
    importing = FILES["experiments/sums.py"].replace(
        "    return add", "    from lsa.kernels import sums\n    return add"
    )
    before = package({"experiments/sums.py": (None, importing)})
    today = package({"experiments/sums.py": (None, importing), **edit})
    assert differences(before, today, "sums", ["left"]) == {"lsa/kernels/sums.py": {"WIDTH"}}


def test_the_real_experiments_reach_what_they_run():
    today = changes._today()
    found = set(today.behind("loss_curves", ["linear"], on_gpu=False))
    assert {
        ("experiments.loss_curves", "perform"),
        ("experiments.harness.learning.training", "Training"),
        ("lsa.gpt", "GPT"),
        ("lsa.layers.linear", "LinearAttention"),
        ("lsa.attention.api", "linear_attention"),
        ("lsa.attention.eager", "chunked_forward"),
    } <= found
    modules = {module for module, _ in found}
    others = {"lsa.layers.rwkv", "experiments.mode_speed", "lsa.attention.triton.tiles"}
    assert not others & modules
    on_gpu = {module for module, _ in today.behind("loss_curves", ["linear"], on_gpu=True)}
    assert {"lsa.attention.triton.tiles", "lsa.launches"} <= on_gpu
    every = {module for module, _ in today.behind("loss_curves", [], on_gpu=False)}
    assert {layer.__module__ for layer in LAYERS.values()} <= every


def test_without_the_commit_nobody_can_tell(monkeypatch):
    origin = {"commit": "0" * 40, "dirty": False, "device": {"kind": "cpu"}, "code": "0" * 64}
    record = {"provenance": origin, "config": {}}
    assert changed_since("ngram_baseline", record) is None
    origin["commit"] = code.git("rev-parse", "HEAD") or "unknown"
    for untold in ({"dirty": True}, {"commit": "unknown"}, {"legs": [{"commit": "0" * 40}]}):
        assert changed_since("ngram_baseline", {**record, "provenance": origin | untold}) is None
    same = origin | {"dirty": True, "code": code.code_digest("ngram_baseline")}
    assert changed_since("ngram_baseline", {**record, "provenance": same}) == {}


def test_our_own_modules_are_imported_by_from_alone():
    """What `code.imports` reads; `import lsa.gpt` would hide from it."""
    for path in code.package_files():
        plain = [
            node for node in ast.walk(code.parsed(path.read_bytes())) if type(node) is ast.Import
        ]
        names = {alias.name.split(".")[0] for node in plain for alias in node.names}
        assert names.isdisjoint(code.PACKAGES), path

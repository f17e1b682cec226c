"""How strong the tests are: code changed in one place, and whether a test that goes there fails.

Run by hand in a copy, as CONTRIBUTING.md says: a seed draws the same of cosmic-ray's mutants again.
"""

import ast
import os
import random
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest
import torch  # noqa: F401  what each mutant's process would import again
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

OPERATORS = [one for one in operator_names() if not get_operator(one).arguments()]


def places(path):
    """By line and column, the operators that can change what stands there; types aside."""
    source, found = path.read_text(encoding="utf-8"), defaultdict(list)
    written = [*ast.walk(ast.parse(source))]
    kinds = (getattr(node, name, None) for node in written for name in ("annotation", "returns"))
    types = [(k.lineno, k.col_offset, k.end_lineno, k.end_col_offset) for k in kinds if k]
    nodes = [*ast_nodes(get_ast(source))]
    for name in OPERATORS:
        change = get_operator(name)().mutation_positions
        for i, (at, _) in enumerate(spot for node in nodes for spot in change(node)):
            if not any(span[:2] <= at < span[2:] for span in types):
                found[at].append((name, i))
    return [(path, at, found[at]) for at in sorted(found)]


def tests_of(covered, path, line):
    """The tests that go through a line; else through its file; else its room's, in processes."""
    lines, room = covered.contexts_by_lineno(str(path.resolve())), Path("tests", *path.parts[1:-1])
    through = {*lines.get(line, ())} - {""} or {one for of in lines.values() for one in of} - {""}
    through = through or {str(room)} if room.is_dir() and room.name != "tests" else through
    return sorted({one.split("|")[0] for one in through}, key=lambda one: path.stem not in one)


def outcome(path, mutant, tests, seconds=600):
    """Whether tests catch a mutant, in a process of their own."""
    source, end = path.read_bytes(), time.monotonic() + seconds
    path.write_text(mutant, encoding="utf-8")
    if not (child := os.fork()):
        os.setsid()
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        os._exit(bool(pytest.main(["-x", "-q", "-n0", "-p", "no:cacheprovider", *tests])))
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < end:
        time.sleep(0.05)
    if not ended[0]:
        os.killpg(child, 9)
        os.waitpid(child, 0)
    path.write_bytes(source)
    return "late" if not ended[0] else "caught" if ended[1] else "survived"


if __name__ == "__main__":
    folder, count, seed, *after = sys.argv[1:]
    sys.dont_write_bytecode, os.environ["PYTHONDONTWRITEBYTECODE"] = True, "1"
    sys.path.insert(0, ".")
    covered, draw, found = CoverageData(), random.Random(int(seed)), Counter()
    covered.read()
    files = sorted(Path(folder).rglob("*.py"))
    every = [p for f in files if not {"triton", "kernels"} & {*f.parts} for p in places(f)]
    sample = [(*place, draw.choice(place[2])) for place in draw.sample(every, int(count))]
    for path, (line, _), _, (name, i) in sample[int(*after) :]:
        mutant = mutate_code(path.read_text(encoding="utf-8"), get_operator(name)(), i)
        tests = tests_of(covered, path, line)
        what = outcome(path, mutant, tests) if tests else "not covered"
        found[what] += 1
        print(f"{what}: {path}:{line} by {len(tests)} tests: {mutant.splitlines()[line - 1]}")
    print(", ".join(f"{number} {what}" for what, number in found.items()))

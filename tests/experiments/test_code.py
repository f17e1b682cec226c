"""What of the code behind a result counts as changed: in small packages, and in the real ones."""

import subprocess

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import code
from experiments.harness.core.code import changes_since, code_files

FILES = {
    "experiments/__init__.py": "",
    "experiments/sums.py": "from lsa import add\n\ndef perform():\n    return add(1, 2)\n",
    "lsa/__init__.py": "from .add import add\nfrom .other import other\n",
    "lsa/add.py": '"""Adding."""\n\ndef add(a, b):\n    """The sum."""\n    return a + b\n',
    "lsa/other.py": "def other(a):\n    return a\n",
}
PACKAGES = {path.rpartition("/")[0] for path in code.worktree()}
NO_SUMS = {"experiments/harness"}


def tree(**files):
    return {path: text.encode() for path, text in {**FILES, **files}.items()}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of its own, whose code is `FILES`; returns what commits it, and what is told."""
    caches = (code._between, code._log, code._at, code.worktree, code._digest_today, code.reviewed)
    monkeypatch.setattr(code, "ROOT", tmp_path)
    monkeypatch.setattr(code, "REVIEWED", tmp_path / "reviewed.txt")

    def git(*arguments):
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        command = ["git", *who, *arguments]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(subject, **files):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "--message", subject)
        return git("rev-parse", "HEAD")

    def told(sha):
        for one in caches:
            one.cache_clear()
        return changes_since(made_by(sha, "sums"))

    git("init", "--quiet")
    yield commit, told, git
    for one in caches:
        one.cache_clear()


def made_by(sha, experiment, **more):
    origin = {"commit": sha, "dirty": False, "device": {"kind": "cuda"}, **more}
    return {"experiment": experiment, "provenance": origin}


def test_commits_that_changed_the_code_are_named_until_they_are_reviewed(project, tmp_path):
    commit, told, git = project
    first = commit("First", **FILES)
    assert told(first) == []
    commit("Words", **{"lsa/add.py": FILES["lsa/add.py"].replace("The sum.", "Both.") + "# so\n"})
    commit("Elsewhere", **{"lsa/other.py": "def other(a):\n    return -a\n"})
    assert told(first) == []
    git("mv", "lsa/add.py", "lsa/sum.py")
    moved = commit("Moved", **{"lsa/__init__.py": "from .sum import add\n"})
    assert told(first) == []
    changed = commit("A sign", **{"lsa/sum.py": "def add(a, b):\n    return a - b\n"})
    (change,) = told(first)
    assert change == (changed, "A sign", ("lsa/sum.py",)) and told(changed) == []
    (tmp_path / "lsa/sum.py").write_text("def add(a, b):\n    return a * b\n")
    assert [one.commit for one in told(changed)] == [code.EDITED]
    assert [one.commit for one in told(first)] == [code.EDITED, changed]
    git("checkout", "--quiet", ".")
    for line, found in [
        (f"{changed} sums why", []), (f"{changed} * why", []), (f"{changed} others why", [change]),
        (f"{first}..{changed} sums why", []), (f"{moved}..{changed} sums why", [change]),
    ]:  # fmt: skip
        (tmp_path / "reviewed.txt").write_text(f"# why not\n\n{first} others why\n{line}\n")
        assert told(first) == found, line


def test_without_the_commit_nobody_can_tell(project):
    commit, told, _ = project
    first = commit("First", **FILES)
    assert told("0" * 40) is None and told("unknown") is None
    assert changes_since(made_by(first, "sums", dirty=True)) is None
    assert changes_since(made_by(first, "sums", legs=[{"commit": "0" * 40}])) is None
    same = {"dirty": True, "code": code.code_digest("sums")}
    assert changes_since(made_by(first, "sums", **same)) == []


def test_a_package_that_hands_a_name_on_is_not_all_of_its_modules():
    assert code_files(tree(), "sums", kernels=True) == {"experiments/sums.py", "lsa/add.py"}
    whole = tree(**{"lsa/__init__.py": FILES["lsa/__init__.py"] + "add = add\n"})
    assert "lsa/other.py" not in code_files(whole, "sums", kernels=True)
    own = tree(**{"lsa/__init__.py": "from .other import other\ndef add(a, b): return other(a)\n"})
    assert code_files(own, "sums", kernels=True) == {
        "experiments/sums.py", "lsa/__init__.py", "lsa/other.py",
    }  # fmt: skip


def test_kernels_count_on_a_gpu_and_where_they_are_imported():
    adding = "def add(a, b):\n    return import_module(f'{__package__}.kernels.{a}')\n"
    kernel = {"lsa/kernels/__init__.py": "", "lsa/kernels/sums.py": "WIDTH = 16\n"}
    files = tree(**{"lsa/add.py": adding, **kernel})
    assert "lsa/kernels/sums.py" in code_files(files, "sums", kernels=True)
    assert "lsa/kernels/sums.py" not in code_files(files, "sums", kernels=False)
    asking = "from lsa import add\nfrom lsa.kernels import WIDTH\n"
    files |= tree(**{"lsa/add.py": adding, **kernel, "experiments/sums.py": asking})
    assert "lsa/kernels/sums.py" in code_files(files, "sums", kernels=False)


def test_the_cpp_of_a_package_counts_with_its_init(project):
    commit, told, _ = project
    source = '// A sum.\nfloat sum(float a, float b) { return a + b; }\nauto says = "// a";\n'
    files = {"lsa/__init__.py": "def add(a, b):\n    return a + b\n", "lsa/body.cpp": source}
    first = commit("First", **{**FILES, **files})
    commit("Words", **{"lsa/body.cpp": source.replace("A sum", "Both").replace("{ ", "{\n/* */ ")})
    assert told(first) == []
    for subject, old, new in (("A sign", "a + b", "a - b"), ("A string", "// a", "// b")):
        sha = commit(subject, **{"lsa/body.cpp": source.replace(old, new)})
        assert (sha, subject, ("lsa/body.cpp",)) == told(first)[0], subject


@pytest.mark.slow
@pytest.mark.parametrize("package", sorted(PACKAGES - NO_SUMS))
def test_a_flipped_sign_is_reported_in_each_package(package, monkeypatch):
    """In the first of its files that has a sum and that an experiment imports."""
    files = code.worktree()
    path, flipped, user = next(
        (path, flipped, user)
        for path in files
        if path.rpartition("/")[0] == package
        for flipped in [files[path].replace(b" + ", b" - ")]
        if code.bare(path, flipped) != code.bare(path, files[path])
        for user in EXPERIMENTS
        if path in code_files(files, user, kernels=True)
    )
    monkeypatch.setattr(code, "_at", lambda commit: files)
    monkeypatch.setattr(code, "worktree", lambda: {**files, path: flipped})
    (change,) = code._between.__wrapped__("HEAD", user, True)
    assert (change.commit, change.files) == (code.EDITED, (path,))


@pytest.mark.slow
def test_every_review_is_of_a_commit_and_gives_a_reason():
    lines = code.REVIEWED.read_text(encoding="utf-8").splitlines()
    assert all(len(line.split()) > 3 for line in lines if line and not line.startswith("#"))
    for what, names in code.reviewed():
        assert all(code.is_known(one) for one in what.split("..")), what
        assert names == ("*",) or {*names} <= EXPERIMENTS.keys(), names

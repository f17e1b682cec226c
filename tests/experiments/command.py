"""The command, as a test runs it."""

from experiments.__main__ import main


def smoke(tmp_path, *arguments):
    return main(["run", *arguments, "--smoke", "--device", "cpu", "--out", str(tmp_path / "out")])


def gpu(out, *more):
    return main(["gpu", "--device", "cpu", "--smoke", "--out", str(out), *more])

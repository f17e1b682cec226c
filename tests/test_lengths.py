"""No file and no function is longer than one takes in at once, but where a reason is given."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("book", "experiments", "lsa", "tests")
FILE_LINES, FUNCTION_LINES = 350, 60
WIDTH = 110  # of scripts and style sheets, as deno.json has them; ruff holds Python to its own

# A longer one, with its reason.
FUNCTIONS = {
    "lsa/attention/api.py linear_attention": "most of it says what each argument is",
}


def sources(ending: str) -> dict[str, str]:
    """The text of each file that was written here, by its path."""
    found = (path for room in ROOMS for path in (ROOT / room).rglob(f"*.{ending}"))
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in found
        if not {"vendor", ".ipynb_checkpoints"} & set(path.relative_to(ROOT).parts)
    }


def is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A kernel is one program: what it calls for is all there, in the order in which it runs."""
    return any(ast.unparse(one).startswith("triton.jit") for one in function.decorator_list)


def test_files_are_short():
    texts = sources("py") | sources("js")
    assert len(texts) > 200
    assert not [name for name, text in texts.items() if len(text.splitlines()) > FILE_LINES]


def test_functions_are_short():
    long = {
        f"{name} {one.name}"
        for name, text in sources("py").items()
        for one in ast.walk(ast.parse(text))
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        and not is_kernel(one)
        and one.end_lineno - one.lineno + 1 > FUNCTION_LINES
    }
    assert long == set(FUNCTIONS)


def test_lines_of_scripts_and_style_sheets_fit():
    wide = [
        f"{name}:{i}"
        for name, text in (sources("js") | sources("css")).items()
        for i, line in enumerate(text.splitlines(), 1)
        if len(line) > WIDTH and not (name.endswith(".css") and is_selector(line))
    ]
    assert not wide


def is_selector(line: str) -> bool:
    """Whether a line of a style sheet is a selector, which the formatter keeps on one line."""
    return ":is(" in line and line.endswith(("{", ","))

"""No file and no function is longer than one takes in at once, but where a reason is given."""

import ast
from pathlib import Path

from pygments.lexers import JavascriptLexer
from pygments.token import Comment, Punctuation, Text

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


OPENING, CLOSING = "([{", ")]}"
# A block after these and a bracket is no function's.
CONTROL = {"if", "for", "await", "while", "switch", "catch", "with"}


def script_tokens(text: str) -> list[tuple[int, str, bool]]:
    """Line and text of each token of a script, and whether it is punctuation and no string."""
    tokens, line = [], 1
    for _, kind, value in JavascriptLexer().get_tokens_unprocessed(text):
        if kind not in Text and kind not in Comment:
            tokens.append((line, value, kind in Punctuation))
        line += value.count("\n")
    return tokens


def script_functions(text: str) -> list[tuple[int, int]]:
    """First and last line of each function of a script.

    The wrapper around a script, called where it stands, is none: it keeps names off the page.
    """
    tokens = script_tokens(text)
    marks = [value if punctuation else "" for _, value, punctuation in tokens]
    partner, opened = {}, []
    for i, mark in enumerate(marks):
        if mark and mark in OPENING:
            opened.append(i)
        elif mark and mark in CLOSING:
            begin = opened.pop()
            partner |= {begin: i, i: begin}
    assert not opened
    found = []
    for i, mark in enumerate(marks):
        if mark == "=>" and marks[i + 1] == "{":
            found.append((i, partner[i + 1]))
        elif mark == "=>":  # its body is an expression
            end = i + 1
            while marks[end] not in [",", ";", *CLOSING]:
                end = partner.get(end, end) + 1
            found.append((i, end - 1))
        elif mark == "{" and marks[i - 1] == ")":
            begin = partner[i - 1]
            if tokens[begin - 1][1] not in CONTROL:
                found.append((begin, partner[i]))
    is_wrapper = {end for _, end in found if marks[end + 1 : end + 3] == [")", "("]}
    return [(tokens[a][0], tokens[b][0]) for a, b in found if b not in is_wrapper]


def own_lines(functions: list[tuple[int, int]], function: tuple[int, int]) -> int:
    """Lines of a function of a script without those of the longer ones inside it.

    A stage is mounted by one function, which holds the small ones that its parts share.
    """
    begin, end = function
    inner = [one for one in functions if begin <= one[0] < one[1] <= end and one != function]
    return sum(not any(a <= line <= b for a, b in inner) for line in range(begin, end + 1))


def test_the_scan_of_a_script_finds_its_functions():
    script = """(() => {
  const told = (x) => `${x} {`;  // }
  function f(a, b) {
    if (a) { b(); }
    for (const one of a) {
      one(/[{]/);
    }
    return a.map((one) =>
      [one, b]);
  }
  class Two {
    draw({ x }) {
      return x;
    }
    get y() { return async () => {
    }; }
  }
  run(function () {
  });
})();
"""
    lines = [(2, 2), (3, 10), (8, 9), (12, 14), (15, 16), (15, 16), (18, 19)]
    assert sorted(script_functions(script)) == lines
    assert [own_lines(lines, one) for one in lines] == [1, 6, 2, 3, 2, 2, 2]


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


def test_functions_of_scripts_are_short():
    functions = {name: script_functions(text) for name, text in sources("js").items()}
    assert sum(map(len, functions.values())) > 800
    assert not [
        f"{name}:{first}"
        for name, found in functions.items()
        for first, last in found
        if own_lines(found, (first, last)) > FUNCTION_LINES
    ]


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

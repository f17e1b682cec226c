"""Sentences that are hard to read, in chapters, docstrings, captions and comments.

`python tests/plain_words.py [FILE ...]` prints `file:line: rule: sentence` for each, then how many
there are of every rule. It fails on none. Without arguments it reads the whole project.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READ = "*.md results/*.md book/*.md lsa/**/*.py experiments/**/*.py book/**/*.py book/**/*.js"
RULES = {
    "over 30 words": r"([^\w ]*\w\S*( [^\w ]+)* ){30}[^\w ]*\w",
    "opening": r"^(What|Whoever|Whatever|Which|Whichever|Nor|Of)\b(?!.*\?$)",
    "hedge": r"\b(perhaps|hardly|rather|somewhat|seems?|as far as|a little|more or less|of course"
    r"|so to speak|in a sense|nearly all|apparently|in the long run)\b",
    "joint": r", (of|for|to|by|from) (which|whom)\b|, nor\b",
    "figure of speech": r"\b(hears?|shouts?|lives? by|has room for|the company|bill)\b",
}
NAMELESS = re.compile(r"\s*def (told|drawn|kept|asked|found|one|many)\(")
ONE_WORD = [  # what counts as one word, or as none
    (r"\{cite:\w+\}`[^`]*`", ""),
    (r"\{[\w:]+\}`([^`<]*?)\s*(?:<[^`]*>)?`", r"\1"),
    (r"\$[^$]+\$|`[^`]+`|https?://\S+", "N"),
    (r"!?\[([^\]]*)\]\([^)]*\)", r"\1"),
    (r"<[^>]+>|\*\*|(?<!\w)[*_]|[*_](?!\w)", ""),
]
SENTENCE = re.compile(r"\S.*?(?:(?<!e\.g)(?<!i\.e)[.!?][\"')*”]*(?=\s+[^a-z\s])|$)", re.DOTALL)
NO_PROSE = re.compile(r"\s*(\||:[\w-]+:|#+ |[-:`]{3,}|<|\(.*\)=$|@|\S+ (=|<-) )")
BLOCK = re.compile(r"/\*.*?(?=\s*\*/)", re.DOTALL)
ITEM = re.compile(r"^\s*([-*]|\d+\.|[a-z_]\w*(, [a-z_]\w*)*:) ")  # of a list, or an argument
FENCE = re.compile(r"\s*(```(?=\{(?:code|math|bib|toc|raw|eval)|[a-z])|\$\$(?!.*\$\$)|---$)")


def paragraphs(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The prose of a page: the number of its first line, and its lines."""
    inside, first, text = "", 1, []
    for number, line in enumerate([*lines, ""], 1):
        fence = FENCE.match(line)
        shown = not (inside or fence or NO_PROSE.match(line)) and line.strip()
        if inside:
            inside = "" if re.match(rf"\s*{re.escape(inside)}|.*\$\$", line) else inside
        elif fence and (fence[1] != "---" or number == 1) and lines[number:]:
            inside = fence[1]
        if text and (not shown or ITEM.match(line)):
            yield first, "\n".join(text)
            text = []
        if shown:
            first = first if text else number
            text.append(ITEM.sub("", line))


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings and captions: literals of several words; a value put into one is a word."""
    for node in ast.walk(ast.parse(source)):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "N" for part in parts)
        if isinstance(node, ast.Constant | ast.JoinedStr) and len(text.split()) > 5:
            for first, words in paragraphs(text.splitlines()):
                yield node.lineno + first - 1, words


def findings(source: str, suffix: str) -> Iterator[tuple[int, str, str]]:
    """Line, rule and sentence of every place in a file's text."""
    if suffix == ".js":  # a comment of several lines as lines of comment
        source = BLOCK.sub(lambda block: re.sub(r"(?m)^\s*(/\*)?", "// ", block[0]), source)
    lines = source.splitlines()
    commented = [re.match(r"\s*(?:#:?|//) (.*)", line) for line in lines]
    shown = lines if suffix == ".md" else [match[1] if match else "" for match in commented]
    for first, text in [*paragraphs(shown), *(strings(source) if suffix == ".py" else [])]:
        for match in SENTENCE.finditer(text):
            sentence = " ".join(match[0].split())
            for pattern, word in ONE_WORD:
                sentence = re.sub(pattern, word, sentence).strip()
            line = first + text[: match.start()].count("\n")
            broken = [rule for rule, words in RULES.items() if re.search(words, sentence)]
            yield from ((line, rule, sentence) for rule in broken)
    yield from ((n, "nameless", x.strip()) for n, x in enumerate(lines, 1) if NAMELESS.match(x))


def main(names: list[str]) -> None:
    """Print every place, then the number of places of each rule."""
    read = [path for pattern in READ.split() for path in ROOT.glob(pattern)]
    found = [
        (f"{path.relative_to(ROOT)}:{line}", rule, sentence)
        for path in sorted([Path(name).resolve() for name in names] or read)
        if "vendor" not in path.parts
        for line, rule, sentence in findings(path.read_text(encoding="utf-8"), path.suffix)
    ]
    print(*(": ".join(place) for place in found), sep="\n")
    print(", ".join(f"{rule}: {n}" for rule, n in sorted(Counter(f[1] for f in found).items())))


if __name__ == "__main__":
    main(sys.argv[1:])

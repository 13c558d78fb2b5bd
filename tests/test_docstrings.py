"""Docstrings are short sentences, and the first line of a function's says what it does."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(path for folder in ("src", "experiments/src") for path in (ROOT / folder).rglob("*.py"))
MEDIAN_WORDS, MOST_WORDS = 16, 25
SECTION = re.compile(r"-{3,}")
END = re.compile(r"(?<!\bEq\.)(?<!\bEqs\.)(?<!\bFig\.)(?<!\bFigs\.)(?<!\bet al\.)(?<=[.!?:])\s+(?=[^a-z])")
WORD = re.compile(r"[^\W_][\w'’.^-]*")
NO_VERB = re.compile(
    r"(An?|The|Of|Same|What|How|Whether|Where|Which|Who|Those|These|This|That|As|All|Any|Each|Every|Some|One|Two|Six|For"
    r"|From|In|By|To|With|Not|No|Like|Above|Both|Such|Small)\b"
)
Nodes = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def documented(path: Path) -> list[tuple[ast.AST, str]]:
    """List the docstrings of a module, its classes, functions and constants, and what has them."""
    return list(found_in(ast.parse(path.read_text(encoding="utf-8"))))


def found_in(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if isinstance(node, Nodes) and (text := ast.get_docstring(node)):
            yield node, text
        body = getattr(node, "body", None)
        for before, after in pairwise(body) if isinstance(body, list) else ():
            if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                value = after.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield before, inspect.cleandoc(value.value)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the prose of a docstring; headings, names of parameters, examples and lists are no sentences."""
    lines = [*text.splitlines(), ""]
    prose: list[str] = []
    example = False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        example = (example and bool(line.strip())) or line.strip().startswith(">>>")
        indented = line.startswith(" ")
        header = not indented and after.startswith(" ") and not line.startswith("* ")
        heading = SECTION.fullmatch(line) or SECTION.fullmatch(after)
        if not line.strip() or example or header or heading or line.startswith("* "):
            yield " ".join(prose)
            prose = [line[2:]] if line.startswith("* ") else []
        else:
            prose.append(line.strip())


def sentences(text: str) -> list[str]:
    """Cut a docstring into sentences of two or more words."""
    found = [sentence for prose in paragraphs(text) for sentence in END.split(prose)]
    return [sentence for sentence in found if len(WORD.findall(sentence)) > 1]


def n_words(sentence: str) -> int:
    return len(WORD.findall(re.sub(r"`+[^`]*`+|\([^)]*\)", "x", sentence)))


def test_sentences_are_cut_where_they_end():
    text = "Do it. See Eq. 6 of it.\n\nParameters\n----------\nmap, other\n    A map; NaN = missing.\n\n>>> no.\n1 2."
    assert sentences(text) == ["Do it.", "See Eq. 6 of it.", "A map; NaN = missing."]


@pytest.mark.slow
def test_half_of_all_sentences_are_short():
    lengths = [n_words(each) for path in SOURCES for _, text in documented(path) for each in sentences(text)]
    assert len(lengths) > 1000
    assert median(lengths) <= MEDIAN_WORDS


@pytest.mark.slow
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_sentence_is_long(path):
    found = [each for _, text in documented(path) for each in sentences(text) if n_words(each) > MOST_WORDS]
    assert not found, f"more than {MOST_WORDS} words"


@pytest.mark.slow
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_docstring_of_a_function_begins_with_a_verb(path):
    for node, text in documented(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(node):
            line = text.splitlines()[0]
            assert not NO_VERB.match(line)
            assert line[0].isupper()
            assert not re.match(r"\w+(?<![si])s\b", line), "an imperative has no s at its end"


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a function reads as an attribute, which a noun describes."""
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)

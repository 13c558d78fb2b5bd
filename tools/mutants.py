"""Small wrong changes to Python source: what `mutate.py` makes and the tests must notice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

ARITHMETIC = "arithmetic"
COMPARISON = "comparison"
OTHER = "other"

OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
}
DROPPED = (ast.Add, ast.Sub, ast.Mult, ast.Div)  # one side is left out as well: `weight * cost` becomes `cost`
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
NAMES = {
    one: other
    for pair in (
        ("min", "max"),
        ("minimum", "maximum"),
        ("fmin", "fmax"),
        ("nanmin", "nanmax"),
        ("argmin", "argmax"),
        ("nanargmin", "nanargmax"),
    )
    for one, other in (pair, pair[::-1])
}


@dataclass(frozen=True)
class Mutant:
    """One wrong change of one expression or statement.

    Attributes
    ----------
    path : str
        File, relative to the tree.
    line : int
        First line of what changes, from 1.
    kind : str
        ``arithmetic``, ``comparison`` or ``other``.
    before, after : str
        Text on both sides of the change.
    start, end : int
        Bytes of the file that ``after`` replaces.
    """

    path: str
    line: int
    kind: str
    before: str
    after: str
    start: int
    end: int

    @property
    def key(self) -> str:
        """Name that stays the same when lines above the change move."""
        return f"{self.path}: {self.before} -> {self.after}"

    def apply(self, source: bytes) -> bytes:
        """Return the source with this change."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants_of(path: str, source: bytes) -> list[Mutant]:
    """List all mutants of a file, in its order.

    Parameters
    ----------
    path : str
        Name of the file within its tree; it goes into the mutants.
    source : bytes
        What the file holds, UTF-8.

    Returns
    -------
    list of Mutant
        Annotations, docstrings, f-strings and `__all__` are left as they are.

    Examples
    --------
    >>> [mutant.after for mutant in mutants_of("x.py", b"y = a * b")]
    ['(a / b)', '(a)', '(b)']
    """
    starts = [0]
    for row in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    found = []
    for node in _changeable(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = ast.unparse(node)
        for kind, changed in _changes(node):
            after = ast.unparse(changed)
            if after != before:
                after = after if isinstance(node, ast.stmt) else f"({after})"
                found.append(Mutant(path, node.lineno, kind, before, after, start, end))
    return found


def python_files(tree: Path, folder: str) -> list[str]:
    """List the Python files of a folder of a tree, relative to the tree."""
    return sorted(str(path.relative_to(tree)) for path in (tree / folder).rglob("*.py"))


def _changeable(node: ast.AST) -> Iterator[ast.expr | ast.AugAssign]:
    """Walk what may be changed."""
    if isinstance(node, ast.JoinedStr):  # its parts have no places of their own in Python 3.11
        return
    if isinstance(node, ast.expr | ast.AugAssign):
        yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment") or _is_declaration(node):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changeable(child)


def _is_declaration(node: ast.AST) -> bool:
    """Tell whether a statement only names types, or names for importing."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return True
    if not isinstance(node, ast.Assign):
        return False
    named_all = any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    return named_all or (isinstance(node.value, ast.BinOp) and _names_types(node.value))


def _names_types(node: ast.expr) -> bool:
    """Tell whether an expression is a union of types, such as ``str | Path``."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr) and _names_types(node.left) and _names_types(node.right)
    text = ast.unparse(node)
    return text == "None" or text.split("[")[0].split(".")[-1][:1].isupper() or text in ("str", "int", "float", "bytes")


def _changes(node: ast.expr | ast.AugAssign) -> Iterator[tuple[str, ast.expr | ast.AugAssign]]:
    match node:
        case ast.AugAssign() if not _is_text(node.value):
            for other in OPERATORS.get(type(node.op), ()):
                yield ARITHMETIC, ast.AugAssign(node.target, other(), node.value)
        case ast.BinOp() if not _is_text(node) and not _names_types(node):
            yield from ((ARITHMETIC, changed) for changed in _other_operators(node))
        case ast.UnaryOp(op=ast.USub() | ast.Invert() | ast.Not(), operand=operand):
            if not isinstance(operand, ast.Constant):
                yield ARITHMETIC if isinstance(node.op, ast.USub) else OTHER, operand
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                for other in COMPARISONS[type(operator)]:
                    changed = deepcopy(node)
                    changed.ops[place] = other()
                    yield COMPARISON, changed
        case ast.BoolOp():
            yield OTHER, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.Constant(value=value) if type(value) in (int, float) and value in (0, 1):
            yield OTHER, ast.Constant(type(value)(1 - value))
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in NAMES:
            changed = deepcopy(node)
            setattr(changed, "id" if isinstance(node, ast.Name) else "attr", NAMES[name])
            yield OTHER, changed


def _other_operators(node: ast.BinOp) -> Iterator[ast.expr]:
    for other in OPERATORS.get(type(node.op), ()):
        yield ast.BinOp(node.left, other(), node.right)
    if isinstance(node.op, DROPPED):
        yield node.left
        if not isinstance(node.op, ast.Div):
            yield node.right


def _is_text(node: ast.expr) -> bool:
    """Tell whether an operation joins texts."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))

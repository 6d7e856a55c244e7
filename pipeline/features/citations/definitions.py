"""Recognize definitions in lines of code, and compare the values of constants."""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping

_KEYWORDS = (
    "(?:def|class|fn|func|function|const|let|var|type|interface|struct|enum|trait|macro_rules!|module|static"
    "|define|val)"
)
_OPERATIONS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Mult: operator.mul,
    ast.Add: operator.add,
}
_SUFFIX = re.compile(r"\s*(?:#|//|;).*$")
_NUMBER = re.compile(r"[-+]?\d[\d_]*(?:\.\d+)?")

Value = str | float | bool


def defines(line: str, name: str) -> bool:
    """Return whether a line of code surely defines a name."""
    word = re.escape(name)
    names = rf"(?:[A-Z]\w*,\s*)*{word}\s*(?:,\s*[A-Z]\w*\s*)*"
    return (
        re.search(rf"(?<![\w.])#?{_KEYWORDS}\s+(?:\([^()]*\)\s*)?(?:\w+\.)?{word}(?!\w)", line) is not None
        or re.match(rf"\s*(?:export\s+)?{names}(?::[^=:]+)?=(?!=)", line) is not None
        or re.match(rf"\s*{word}\s*:\s*[\w\"'\[\]|., ]+$", line) is not None
    )


def find_renamed(line: str, name: str, added: Iterable[str]) -> str | None:
    """Return the new name of a definition if an added line differs from the removed line in that name only."""
    around = re.split(rf"(?<!\w){re.escape(name)}(?!\w)", line, maxsplit=1)
    same = re.compile(r"([A-Za-z_]\w*)".join(map(re.escape, around)))
    found = (same.fullmatch(text) for text in added)
    return next((match[1] for match in found if match and match[1] != name), None)


def read_value(text: str | None) -> Value | None:
    """Return a literal, or a product or sum of numbers; None for any other expression, or without a text."""
    stripped = (text or "").strip()
    if stripped.lower() in ("true", "false"):
        return stripped.lower() == "true"
    try:
        return _evaluate(ast.parse(stripped, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def find_value(line: str, name: str) -> str | None:
    """Return the text of the value that a line assigns to a constant, None if it assigns none."""
    word = re.escape(name)
    keyword = r"(?:export\s+|pub\s+)?(?:(?:const|let|var|static|final|#?define)\s+)?"
    single = re.match(rf"\s*{keyword}{word}\s*(?::[^=:]+)?(?::?=|\s)\s*(.+)$", line)
    if single is not None and ("=" in line or "define" in line):
        return _trim(single[1])
    several = re.match(r"\s*([A-Z]\w*(?:,\s*[A-Z]\w*)+)\s*=\s*(.+)$", line)
    if several is None:
        return None
    names = [part.strip() for part in several[1].split(",")]
    values = [part.strip() for part in _SUFFIX.sub("", several[2]).split(",")]
    return values[names.index(name)] if name in names and len(names) == len(values) else None


def list_values(lines: Iterable[str], name: str) -> list[str | None]:
    """Return the values that lines assign to a constant; None for an assignment that cannot be compared."""
    return [find_value(line, name) for line in lines if defines(line, name)]


def _trim(text: str) -> str:
    """Return an assigned value without its comment and separators."""
    value = text.strip()
    quoted = re.match(r"""("[^"]*"|'[^']*')\s*[;,]?\s*(?:#.*|//.*)?$""", value)
    return quoted[1] if quoted else _SUFFIX.sub("", value).strip().rstrip(",")


def _evaluate(node: ast.expr) -> Value | None:
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool | str):
            return value
        return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _evaluate(node.operand)
        return -inner if isinstance(inner, float) else None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _evaluate(node.left), _evaluate(node.right)
        if isinstance(left, float) and isinstance(right, float):
            return _OPERATIONS[type(node.op)](left, right)
    return None

"""Recognize definitions in lines of code, and compare the values of constants."""

import ast
import re
from collections.abc import Iterable

_KEYWORDS = r"(?:def|class|fn|func|function|const|let|var|type|interface|struct|enum|trait|macro_rules!|module|static|define|val)"
_OPERATIONS = {ast.Mult: lambda left, right: left * right, ast.Add: lambda left, right: left + right}
_SUFFIX = re.compile(r"\s*(?:#|//|;).*$")
_NUMBER = re.compile(r"[-+]?\d[\d_]*(?:\.\d+)?")

Value = str | float | bool


def defines(line: str, name: str) -> bool:
    """Return whether a line of code surely defines a name."""
    word = re.escape(name)
    return (
        re.search(rf"(?<![\w.])#?{_KEYWORDS}\s+(?:\([^()]*\)\s*)?(?:\w+\.)?{word}(?!\w)", line) is not None
        or re.match(rf"\s*(?:export\s+)?(?:[A-Z]\w*,\s*)*{word}\s*(?:,\s*[A-Z]\w*\s*)*(?::[^=:]+)?=(?!=)", line)
        is not None
        or re.match(rf"\s*{word}\s*:\s*[\w\"'\[\]|., ]+$", line) is not None
    )


def find_renamed(line: str, name: str, added: Iterable[str]) -> str | None:
    """Return the new name of a definition if an added line differs from the removed line in that name only."""
    same = re.compile(
        r"([A-Za-z_]\w*)".join(
            re.escape(part) for part in re.split(rf"(?<!\w){re.escape(name)}(?!\w)", line, maxsplit=1)
        )
    )
    found = (same.fullmatch(text) for text in added)
    return next((match[1] for match in found if match and match[1] != name), None)


def read_value(text: str) -> Value | None:
    """Return a literal, or a product or sum of numbers; None for any other expression."""
    stripped = text.strip()
    if stripped.lower() in ("true", "false"):
        return stripped.lower() == "true"
    try:
        return _evaluate(ast.parse(stripped, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def find_value(line: str, name: str) -> str | None:
    """Return the text of the value that a line assigns to a constant, None if it assigns none."""
    word = re.escape(name)
    single = re.match(
        rf"\s*(?:export\s+|pub\s+)?(?:(?:const|let|var|static|final|#?define)\s+)?{word}\s*(?::[^=:]+)?(?::?=|\s)\s*(.+)$",
        line,
    )
    if (single and "=" in line) or (single and "define" in line):
        assert single is not None
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
    cut = text.strip().rstrip(",")
    if cut[:1] in "\"'":
        end = cut.find(cut[0], 1)
        return cut[: end + 1] if (end > 0 and not cut[end + 1 :].strip(" ;,").strip()) or "#" in cut[end:] else cut
    return _SUFFIX.sub("", cut).strip()


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

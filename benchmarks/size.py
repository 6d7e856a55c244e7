"""Count the statements of each folder, and compare them with the budgets in SIZE.md.

Run by `make size`. Statements do not change when code is only formatted in another way; docstrings are not counted.
"""

import argparse
import ast
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PRODUCT: Final = ("config", "pipeline", "reverie", "web", "workers")
TESTS: Final = "tests"
# The programs that the tests of hosts install.
INSTALLED = "node_modules"
DEPTH: Final = 2
# The price of a feature is visible.
DEPTH_OF_FEATURES: Final = 3
# Tests of a fix come before its refactoring.
ROOM_FOR_TESTS: Final = 100
DOCUMENT: Final = "SIZE.md"
MARKS: Final = ("<!-- folders -->\n", "<!-- end of folders -->")
ROW: Final = re.compile(r"^\| `([\w/]+)` \| [\d,]+ \| ([\d,]+) \|$", re.MULTILINE)


def count_statements(source: str) -> int:
    """Count the statements of a module that are no docstrings."""
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    return sum(not _is_text(node) for node in statements)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def measure(root: Path = ROOT) -> dict[str, int]:
    """Return the statements of each folder of the product, and of all tests, by its path."""
    sizes: Counter[str] = Counter()
    for top in (*PRODUCT, TESTS):
        for path in (root / top).rglob("*.py"):
            folders = path.relative_to(root).parent.parts
            if INSTALLED in folders:
                continue
            depth = 1 if top == TESTS else DEPTH_OF_FEATURES if "features" in folders else DEPTH
            sizes["/".join(folders[:depth])] += count_statements(path.read_text(encoding="utf-8"))
    return dict(sizes)


def read_budgets(document: str) -> dict[str, int]:
    """Read the budget of each folder from the table of SIZE.md."""
    return {folder: int(budget.replace(",", "")) for folder, budget in ROW.findall(document)}


def list_excesses(sizes: dict[str, int], budgets: dict[str, int]) -> list[str]:
    """Name each folder that is larger than its budget, or that only one of the two lists."""
    missing = [f"{folder}: has no budget" for folder in sorted(sizes.keys() - budgets.keys())]
    gone = [f"{folder}: has a budget, but no code" for folder in sorted(budgets.keys() - sizes.keys())]
    large = [
        f"{folder}: {sizes[folder]:,} statements, {sizes[folder] - budget:,} above its budget"
        for folder, budget in budgets.items()
        if sizes.get(folder, 0) > budget
    ]
    return [*missing, *gone, *large]


def write_table(document: str, sizes: dict[str, int]) -> str:
    """Return the document with a table of these sizes, each of them the new budget."""
    budgets = {folder: size + ROOM_FOR_TESTS * (folder == TESTS) for folder, size in sizes.items()}
    rows = [f"| `{folder}` | {sizes[folder]:,} | {budgets[folder]:,} |" for folder in sorted(sizes)]
    table = "\n".join(["| folder | statements | budget |", "|---|---|---|", *rows])
    before, rest = document.split(MARKS[0])
    return f"{before}{MARKS[0]}\n{table}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


def main(arguments: list[str] | None = None) -> int:
    """Print each folder with its budget, or make today's sizes the budgets."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.size", description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="rewrite the table of SIZE.md with today's sizes as budgets"
    )
    options = parser.parse_args(arguments)
    file, sizes = ROOT / DOCUMENT, measure()
    if options.write:
        file.write_text(write_table(file.read_text(encoding="utf-8"), sizes), encoding="utf-8")
    budgets = read_budgets(file.read_text(encoding="utf-8"))
    for folder in sorted(sizes, key=lambda folder: -sizes[folder]):
        print(f"{folder:22} {sizes[folder]:7,} statements {budgets.get(folder, 0) - sizes[folder]:+7,} left")
    product = sum(size for folder, size in sizes.items() if folder != TESTS)
    print(f"{'product':22} {product:7,} statements")
    excesses = list_excesses(sizes, budgets)
    print(*excesses, sep="\n", file=sys.stderr)
    return bool(excesses)


if __name__ == "__main__":
    sys.exit(main())
